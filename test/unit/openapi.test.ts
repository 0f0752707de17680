import { Validator } from '@seriousme/openapi-schema-validator';
import { Ajv2020 } from 'ajv/dist/2020.js';
import addFormats from 'ajv-formats';
import test from 'ava';
import { leaves } from '../../src/definition/resource.js';
import { resources } from '../../src/definition/resources/all.js';
import { problems } from '../../src/errors.js';
import { type ApiResponse, type Method, type OpenApiDocument, resolve } from '../../src/openapi/document.js';
import { openapi } from '../../src/openapi/openapi.js';

const document = openapi(resources, {
  version: '1.0.0',
  publicUrl: 'https://api.example.com',
  perPageDefault: 100,
  perPageMax: 10000,
});
const operations = Object.entries(document.paths).flatMap(([path, item]) =>
  Object.entries(item).map(([method, operation]) => ({ path, method: method as Method, operation })),
);

test('the document is valid OpenAPI 3.1 and every reference points to something', async (t) => {
  const outcome = await new Validator().validate(JSON.parse(JSON.stringify(document)));
  t.deepEqual(outcome.errors ?? [], []);
  t.true(outcome.valid);
  for (const reference of references(document)) t.notThrows(() => resolve(document, { $ref: reference }));
});

test('it describes the nine endpoints and itself, each with HEAD beside GET, and OPTIONS', (t) => {
  const described = operations.filter(({ method }) => method !== 'head' && method !== 'options');
  t.deepEqual(
    described
      .map(({ path, method, operation }) => `${method} ${path} ${operation['x-required-scope'] ?? 'none'}`)
      .sort(),
    [
      'get /installaties read:installaties',
      'get /installaties/{id} read:installaties',
      'get /klanten read:klanten',
      'get /klanten/{id} read:klanten',
      'get /logboeken read:logboeken',
      'get /openapi.json none',
      'get /werkbonnen read:werkbonnen',
      'get /werkbonnen/{id} read:werkbonnen',
      'patch /installaties/{id} write:installaties',
      'post /installaties write:installaties',
    ],
  );
  for (const item of Object.values(document.paths)) t.true('get' in item && 'head' in item && 'options' in item);
  const ids = operations.map(({ operation }) => operation.operationId);
  t.is(new Set(ids).size, ids.length);
});

test('every code of the table of problems appears, under its own status', (t) => {
  const described = new Map<string, string>();
  const everywhere = [...operations.map(({ operation }) => operation.responses), document['x-other-responses']];
  for (const responses of everywhere) {
    for (const [status, reference] of Object.entries(responses)) {
      const response = resolve<ApiResponse>(document, reference);
      for (const code of codesOf(response)) described.set(code, status);
    }
  }
  t.deepEqual(
    [...described].sort(),
    Object.entries(problems)
      .map(([code, { status }]) => [code, String(status)] as [string, string])
      .sort(),
  );
});

test('every member of every resource appears, required, and nothing else but decodeErrors', (t) => {
  for (const resource of resources) {
    const schema = document.components.schemas[resource.record] as unknown as ObjectSchema;
    for (const { path, field } of leaves(resource)) {
      let at = schema;
      for (const name of path) {
        t.true(at.required.includes(name), `${resource.name} ${path.join('.')}`);
        at = at.properties[name] as ObjectSchema;
      }
      t.is(at.description, field.description);
    }
    const others = Object.keys(schema.properties).filter((name) => !(name in resource.fields));
    t.deepEqual(others, leaves(resource).some(({ field }) => field.codec) ? ['decodeErrors'] : []);
  }
});

test('every query parameter of a list is described, and every component is used', (t) => {
  for (const resource of resources) {
    const names = document.paths[`/${resource.name}`]?.get?.parameters.map(
      (each) => resolve<{ name: string }>(document, each as never).name,
    );
    t.deepEqual(names, ['perPage', 'page', 'cursor', 'total', ...Object.keys(resource.filters), 'X-Request-Id']);
  }
  const used = new Set(references(document));
  const { securitySchemes: _, ...components } = document.components;
  for (const [kind, members] of Object.entries(components)) {
    for (const name of Object.keys(members)) t.true(used.has(`#/components/${kind}/${name}`), `${kind}/${name}`);
  }
});

test('bodies for writes take exactly the writable fields', (t) => {
  const create = document.components.schemas['installatie.create'] as unknown as ObjectSchema;
  const patch = document.components.schemas['installatie.patch'] as unknown as ObjectSchema;
  const writable = [
    'customerId',
    'naam',
    'omschrijving',
    'locatie',
    'merk',
    'type',
    'serienummer',
    'bouwjaar',
    'inbedrijfstelling',
  ];
  t.deepEqual(Object.keys(create.properties), writable);
  t.deepEqual(Object.keys(patch.properties), writable);
  t.deepEqual(create.required, ['customerId', 'naam']);
  t.is(patch.required, undefined as never);
  t.deepEqual(
    Object.keys((document.components.schemas['installatie.written'] as unknown as ObjectSchema).properties).sort(),
    [...writable, 'id', 'version', 'createdAt', 'updatedAt'].sort(),
  );
});

test('every example fits its schema, and every schema is strict JSON Schema', (t) => {
  const ajv = new Ajv2020({ allErrors: true, strict: true, allowUnionTypes: true });
  addFormats.default(ajv);
  ajv.addVocabulary(Object.keys(document)); // ajv compiles the whole document on the way to a part of it
  ajv.addSchema(document, 'document');
  let count = 0;
  walk(document, [], (value, path) => {
    if (!('schema' in value)) return;
    const schema = { $ref: `document#/${[...path, 'schema'].map(escaped).join('/')}` };
    const validate = ajv.compile(schema);
    if ('example' in value) t.true(validate(value.example), `${path.join('/')}: ${JSON.stringify(validate.errors)}`);
    count++;
  });
  t.true(count > 60);
});

interface ObjectSchema {
  readonly description: string;
  readonly required: readonly string[];
  readonly properties: Readonly<Record<string, unknown>>;
}

function codesOf(response: ApiResponse): string[] {
  const schema = response.content?.['application/problem+json']?.schema as
    | { properties: { code: { enum: string[] } } }
    | undefined;
  return schema?.properties.code.enum ?? [];
}

function references(root: OpenApiDocument): string[] {
  const found: string[] = [];
  walk(root, [], (value) => {
    if (typeof value.$ref === 'string') found.push(value.$ref);
  });
  return found;
}

function walk(
  value: unknown,
  path: readonly string[],
  visit: (value: Record<string, unknown>, path: readonly string[]) => void,
): void {
  if (typeof value !== 'object' || value === null) return;
  if (!Array.isArray(value)) visit(value as Record<string, unknown>, path);
  for (const [key, member] of Object.entries(value)) walk(member, [...path, key], visit);
}

function escaped(step: string): string {
  return encodeURIComponent(step.replaceAll('~', '~0').replaceAll('/', '~1'));
}
