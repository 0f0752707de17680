import { Validator } from '@seriousme/openapi-schema-validator';
import { Ajv2020 } from 'ajv/dist/2020.js';
import addFormats from 'ajv-formats';
import test from 'ava';
import { problems } from '../../src/base/errors.js';
import { readProject } from '../../src/base/paths.js';
import { loadResources } from '../../src/resource/definition/load.js';
import { makeReadSchema } from '../../src/resource/definition/record-schema.js';
import { listLeaves } from '../../src/resource/definition/resource.js';
import { compileBodyChecks } from '../../src/resource/definition/write-validators.js';
import { type ApiResponse, type Method, resolve } from '../../src/serve/openapi/document.js';
import { makeOpenApi } from '../../src/serve/openapi/openapi.js';
import { makeErrorResponses } from '../../src/serve/openapi/responses.js';
import { fill } from '../../src/serve/openapi/texts.js';
import { loadSettings } from '../../src/settings.js';
import { sourcesIn } from '../support/sources.js';
import { words } from '../support/words.js';

const resources = loadResources('');
const settings = loadSettings({}, { primaryUrls: 'postgres://primary/app', publicUrl: 'https://api.example.com' });
const document = makeOpenApi(resources, { version: '1.0.0', ...settings });
const operations = Object.entries(document.paths).flatMap(([path, item]) =>
  Object.entries(item).map(([method, operation]) => ({ path, method: method as Method, operation })),
);

test('the document is valid OpenAPI 3.1 and every reference points to something', async (t) => {
  const outcome = await new Validator().validate(JSON.parse(JSON.stringify(document)));
  t.deepEqual(outcome.errors ?? [], []);
  t.true(outcome.valid);
  for (const reference of references(document)) t.notThrows(() => resolve(document, { $ref: reference }));
});

test('it describes the nine endpoints, sync, the index and itself, and leaves HEAD and OPTIONS to the introduction', (t) => {
  t.deepEqual(
    operations
      .map(({ path, method, operation }) => `${method} ${path} ${operation['x-required-scope'] ?? 'none'}`)
      .filter((each) => !/^get \/sync\/\w+(\/digest|\/ids)? read:/.test(each))
      .sort(),
    [
      ...['get / none', 'get /installaties read:installaties', 'get /installaties/{id} read:installaties'],
      ...['get /klanten read:klanten', 'get /klanten/{id} read:klanten', 'get /logboeken read:logboeken'],
      ...['get /openapi.json none', 'get /token none', 'get /werkbonnen read:werkbonnen'],
      ...['get /werkbonnen/{id} read:werkbonnen', 'patch /installaties/{id} write:installaties'],
      ...['post /installaties write:installaties'],
    ],
  );
  t.regex(document.info.description, /HEAD .* OPTIONS /);
  t.true('204' in document['x-other-responses']);
  t.is(new Set(operations.map(({ operation }) => operation.operationId)).size, operations.length);
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
    const schema = document.components.schemas[
      resource.record.replace(/^./, (letter) => letter.toUpperCase())
    ] as unknown as ObjectSchema;
    for (const { path, field } of listLeaves(resource)) {
      let at = schema;
      for (const name of path) {
        t.true(at.required.includes(name), `${resource.name} ${path.join('.')}`);
        at = at.properties[name] as ObjectSchema;
      }
      t.is(at.description, field.description);
    }
    const others = Object.keys(schema.properties).filter((name) => !(name in resource.fields));
    t.deepEqual(others, listLeaves(resource).some(({ field }) => field.codec) ? ['decodeErrors'] : []);
  }
});

test('programs find the time zone, the states and references, and a sentence for each member of a record, also within lists', (t) => {
  t.is(document['x-time-zone'], 'Europe/Amsterdam');
  const order = document.components.schemas.Werkbon as unknown as ObjectSchema;
  const { status, installationId } = order.properties as Record<string, object>;
  t.like(status, { type: 'string', enum: ['gepland', 'in_uitvoering', 'afgerond', 'gefactureerd'] });
  t.like(installationId, { type: 'string', 'x-references': 'installaties' });
  t.regex(String(document.components.parameters['werkbonnen.status']?.description), /One of: gepland, in_uitvoering,/);
  const silent: string[] = [];
  for (const { record } of [...resources, ...loadResources('config/apps/second/resources')])
    walk(
      document.components.schemas[record.replace(/^./, (letter) => letter.toUpperCase())],
      [record],
      (schema, path) => {
        const isMember = path.at(-2) === 'properties' && path.at(-1) !== 'syncVersion';
        if (isMember && typeof schema.description !== 'string') silent.push(path.join('/'));
      },
    );
  t.deepEqual(silent, []);
});

test('a state that can be missing lists null, and a write takes no other value', (t) => {
  const state = { column: 'state', type: 'text', values: ['open', 'done'], description: 'State.', write: {} } as const;
  t.like(makeReadSchema({ ...state, nullable: true }), { type: ['string', 'null'], enum: ['open', 'done', null] });
  t.like(makeReadSchema(state), { type: 'string', enum: ['open', 'done'] });
  const [orders] = resources;
  const fields = { ...orders?.fields, state: { ...state, nullable: true } };
  const { patch } = compileBodyChecks({ ...(orders as (typeof resources)[number]), fields });
  t.deepEqual(
    ['open', null].flatMap((value) => patch({ state: value })),
    [],
  );
  t.deepEqual(patch({ state: 'gone' }), [
    { pointer: '/state', code: 'invalid', detail: 'This must be one of: open, done, null.' },
  ]);
  t.deepEqual(
    patch({ state: 3 }).map(({ code }) => code),
    ['invalid_type'],
  );
});

test('every query parameter of a list is described, and operations use every component', (t) => {
  for (const resource of resources) {
    const names = document.paths[`/${resource.name}`]?.get?.parameters.map(
      (each) => resolve<{ name: string }>(document, each as never).name,
    );
    const always = words('perPage page cursor total order fields');
    t.deepEqual(names, [...always, ...Object.keys(resource.filters), 'X-Request-Id']);
  }
  const { 'x-other-responses': other, ...rest } = document; // tools do not follow references from an extension
  const used = new Set(references(rest));
  for (const reference of references(other)) t.true(used.has(reference), reference);
  const { securitySchemes: _, ...components } = document.components;
  for (const [kind, members] of Object.entries(components))
    for (const name of Object.keys(members)) t.true(used.has(`#/components/${kind}/${name}`), `${kind}/${name}`);
});

test('responses of success stand in their operations: some generators make clients without data of references', (t) => {
  for (const { operation } of operations)
    for (const [status, response] of Object.entries(operation.responses))
      t.is('$ref' in response, !status.startsWith('2'), `${operation.operationId} ${status}`);
});

test('bodies for writes take exactly the writable fields', (t) => {
  const create = document.components.schemas.InstallatieCreate as unknown as ObjectSchema;
  const patch = document.components.schemas.InstallatiePatch as unknown as ObjectSchema;
  const writable = 'customerId naam omschrijving locatie merk type serienummer bouwjaar inbedrijfstelling'.split(' ');
  t.deepEqual(Object.keys(create.properties), writable);
  t.deepEqual(Object.keys(patch.properties), writable);
  t.deepEqual(create.required, ['customerId', 'naam']);
  t.is(patch.required, undefined as never);
  t.deepEqual(
    Object.keys((document.components.schemas.InstallatieWritten as unknown as ObjectSchema).properties).sort(),
    [...writable, 'id', 'version', 'createdAt', 'updatedAt'].sort(),
  );
});

test('every example fits its schema, and every schema is strict JSON Schema', (t) => {
  const ajv = new Ajv2020({ allErrors: true, strict: true, allowUnionTypes: true });
  ajv.addVocabulary(['x-record', 'x-references']);
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

test('responses may gain members within version 1, bodies of writes must not', (t) => {
  const closed: string[] = [];
  walk(document.components, [], (value, path) => {
    if (value.additionalProperties === false || 'unevaluatedProperties' in value) closed.push(path.join('/'));
  });
  t.deepEqual(closed, ['schemas/InstallatieCreate', 'schemas/InstallatiePatch']);
});

test('every integer has a format, and no schema decides by if', (t) => {
  const wrong: string[] = [];
  walk(document, [], (value, path) => {
    const integer = [value.type].flat().includes('integer') && !('enum' in value);
    if ('if' in value || (integer && !/^int(32|64)$/.test(String(value.format)))) wrong.push(path.join('/'));
  });
  t.deepEqual(wrong, []);
});

test('pagination of a last page is valid, and of a page that is not whole is not', (t) => {
  const ajv = new Ajv2020({ strict: true, allowUnionTypes: true });
  ajv.addVocabulary(['x-record', 'x-references']);
  addFormats.default(ajv);
  const validate = ajv.compile(document.components.schemas.Pagination as object);
  const page = {
    page: 1,
    perPage: 1,
    count: 1,
    hasMore: true,
    nextCursor: 'a',
    endCursor: 'a',
    next: 'https://a.nl/x',
    complete: true,
  };
  t.true(validate(page));
  t.true(validate({ ...page, hasMore: false, nextCursor: null, next: null }));
  t.false(validate({ ...page, complete: false }));
});

test('dates, moments and numbers may be null, because infinity and NaN are; whole numbers and ids are not unless the column is NULL', (t) => {
  const {
    Klant: klant,
    Installatie: installatie,
    Werkbon: werkbon,
  } = document.components.schemas as Record<string, { properties: Record<string, { type: unknown }> }>;
  t.deepEqual(klant?.properties.createdAt?.type, ['string', 'null']);
  t.deepEqual(werkbon?.properties.datum?.type, ['string', 'null']);
  t.deepEqual(makeReadSchema({ column: 'hours', type: 'number', description: 'Hours.' }).type, ['number', 'null']);
  t.is(installatie?.properties.version?.type, 'integer');
  t.is(werkbon?.properties.id?.type, 'string');
});

test('page has no default: a client that sent it beside cursor would get 400', (t) => {
  t.false('default' in (document.components.parameters.page?.schema ?? {}));
});

test('no text and no code of the document names a resource: names come from the definitions', (t) => {
  const names = new RegExp(resources.flatMap(({ name, record }) => [name, record]).join('|'), 'i');
  const files = [...sourcesIn('config/openapi', ''), ...sourcesIn('src/serve/openapi', '.ts')];
  t.true(files.length > 10, String(files.length));
  const named = files.filter(({ text }) => names.test(text)).map(({ path }) => path);
  t.deepEqual(named, []);
});

test('the document uses every component of the texts, and of the table of errors', (t) => {
  const fixed = JSON.parse(readProject('config/openapi/components.json')) as Record<string, Record<string, object>>;
  const { headers, responses, parameters, schemas } = document.components;
  const used: Record<string, object> = { headers, parameters, schemas };
  const unused = Object.entries(used).flatMap(([kind, members]) =>
    Object.keys(fixed[kind] as object).filter((name) => !(name in members)),
  );
  const errors = Object.keys(makeErrorResponses()).filter((name) => !(name in responses));
  t.deepEqual([...unused, ...errors], ['Allow', 'NoSuchPath', 'MethodNotAllowed'], 'these stand in x-other-responses');
  const other = JSON.stringify(document['x-other-responses']);
  for (const text of ['not_found', 'method_not_allowed', 'Methods of the path']) t.true(other.includes(text), text);
});

test('a text is filled with values by their names', (t) => {
  t.is(fill('{{name}}s and {{count}}', { name: 'a', count: 2 }), 'as and 2');
  t.throws(() => fill('{{nothing}}', {}), { message: /\{\{nothing\}\}/ });
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

function references(root: object): string[] {
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
