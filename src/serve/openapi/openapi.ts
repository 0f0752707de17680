import { type ProblemCode, problems, problemType } from '../../base/errors.js';
import type { Resource } from '../../resource/definition/resource.js';
import {
  type ApiResponse,
  type CodeSample,
  component,
  type OpenApiDocument,
  type Operation,
  type Parameter,
  type Responses,
  resolve,
} from './document.js';
import { expand, fill, mapValues, readData, readText, type Sets, type Values } from './template.js';
import { commonValues, filterValues, type OpenApiOptions, resourceValues } from './values.js';

type HeaderData = { readonly headers: object; readonly sets: Sets; readonly names: Readonly<Record<string, string>> };

/** The templates in config/openapi, filled from definitions, settings and the table of problems. */
export function openapi(resources: readonly Resource[], options: OpenApiOptions): OpenApiDocument {
  const values = commonValues(resources, options);
  const { headers, names, sets } = fill(readData('headers.json'), values) as HeaderData;
  // A later component replaces an earlier component of the same header.
  const reference = (name: string) => [names[name] ?? name, component('headers', name)];
  const headersOf = (set: readonly string[]): ApiResponse['headers'] =>
    Object.fromEntries(expand(['every', ...set], sets).map(reference));
  const errors = errorParts(headersOf);
  const common: Values = {
    ...values,
    introduction: fill(readText('introduction.md').trim(), values),
    headers,
    ...prefixed('headers', mapValues(sets, headersOf)),
    ...prefixed('errors', errors.references),
  };
  const parts = resources.map((resource) =>
    resourcePart(resource, { ...common, ...resourceValues(resource, options) }),
  );
  const merged = (kind: keyof ResourcePart): object => Object.assign({}, ...parts.map((part) => part[kind]));
  const document = fill(readData('document.json'), {
    ...common,
    tags: parts.map(({ tag }) => tag),
    hasSync: resources.some(({ sync }) => sync !== undefined),
    paths: merged('paths'),
    schemas: merged('schemas'),
    parameters: merged('parameters'),
    responses: { ...merged('responses'), ...errors.components },
  });
  return withUsedComponents(withSamples(document as OpenApiDocument));
}

/** Responses of success are inlined: of references some generators make clients that return no data. */
function withSamples(document: OpenApiDocument): OpenApiDocument {
  const inline = (response: Responses[string], status: string) =>
    status.startsWith('2') ? resolve(document, response) : response;
  const paths = mapValues(document.paths, (item, path) =>
    mapValues(item, (operation, method) => ({
      ...operation,
      responses: mapValues(operation.responses, inline),
      'x-codeSamples': samplesOf(document, path, method, operation),
    })),
  );
  return { ...document, paths };
}

const samplePerPage = 1000;

/** The variable ID in a path, and a line for a header; without one the language only reads. */
type Language = readonly [lang: string, label: string, id: string, header?: (name: string, value: string) => string];

const entry = (name: string, value: string): string => `    "${name}": '${value}',\n`;
const languages: readonly Language[] = [
  ['shell', 'curl', '$ID', (name, value) => `  -H '${name}: ${value}' \\\n`],
  ['python', 'Python', "{os.environ['ID']}", entry],
  ['javascript', 'JavaScript', `\${ID}`, entry],
  ['powerquery', 'Power Query', '" & ID & "'],
];

/** In each language that can make the operation; a list follows `next` to its end. */
function samplesOf(document: OpenApiDocument, path: string, method: string, operation: Operation): CodeSample[] {
  const parameters = operation.parameters.map((reference) => resolve<Parameter>(document, reference));
  const perPageMax = parameters.find(({ name }) => name === 'perPage')?.schema.maximum;
  const headers = parameters.filter(
    ({ name, required, ...each }) => each.in === 'header' && required && name !== 'Idempotency-Key',
  );
  const body = operation.requestBody?.content['application/json']?.example;
  const kind = method === 'get' ? (perPageMax === undefined ? 'get' : 'list') : 'write';
  return languages.flatMap(([lang, label, id, header]) => {
    if (kind === 'write' && header === undefined) return [];
    const relativePath = path.slice(1).replace('{id}', id);
    const values = {
      method: method.toUpperCase(),
      path: relativePath && `/${relativePath}`,
      relativePath,
      perPage: Math.min(samplePerPage, Number(perPageMax)),
      headers: headers.map(({ name, example }) => header?.(name, String(example))).join(''),
      body: body && JSON.stringify(body, null, 2).replaceAll("'", '\\u0027'), // which would end the text in a shell
    };
    return { lang, label, source: String(fill(readText(`samples/${lang}-${kind}.txt`).trimEnd(), values)) };
  });
}

type ResourcePart = Readonly<Record<'tag' | 'paths' | 'schemas' | 'parameters' | 'responses', object>>;

function resourcePart(resource: Resource, values: Values): ResourcePart {
  const { name, filters } = resource;
  const { filter: filterTemplate, ...template } = readData('resource.json') as Record<string, object>;
  const part = fill(template, values) as ResourcePart;
  const filterParameters = Object.entries(filters).map(([filter, each]) => [
    `${name}.${filter}`,
    fill(filterTemplate, { filter, ...filterValues(each, resource, String(values.timeZone)) }),
  ]);
  return { ...part, parameters: { ...part.parameters, ...Object.fromEntries(filterParameters) } };
}

function prefixed(prefix: string, values: Values): Values {
  return Object.fromEntries(Object.entries(values).map(([name, value]) => [`${prefix}.${name}`, value]));
}

/** Tools do not follow references from extensions: what only `x-other-responses` uses is written out there. */
function withUsedComponents(document: OpenApiDocument): OpenApiDocument {
  const { 'x-other-responses': other, ...rest } = document;
  const used = new Set(JSON.stringify(rest).match(/(?<="\$ref":")[^"]+/g));
  const writtenOut = (value: unknown): unknown => {
    if (typeof value !== 'object' || value === null || Array.isArray(value)) return value;
    const isUnused = '$ref' in value && !used.has(String(value.$ref));
    return isUnused ? writtenOut(resolve(document, value)) : mapValues(value as Values, writtenOut);
  };
  const components = Object.entries(document.components).map(([kind, members]) => {
    const kept = Object.entries(members).filter(([name]) => used.has(`#/components/${kind}/${name}`));
    return [kind, kind === 'securitySchemes' ? members : Object.fromEntries(kept)];
  });
  const smaller = { ...rest, components: Object.fromEntries(components), 'x-other-responses': writtenOut(other) };
  const isDone = JSON.stringify(smaller) === JSON.stringify(document);
  return isDone ? document : withUsedComponents(smaller as OpenApiDocument);
}

type ErrorResponse = { readonly codes: readonly ProblemCode[]; readonly headers: readonly string[] };

function errorParts(headersOf: (names: readonly string[]) => ApiResponse['headers']): {
  readonly components: Record<string, ApiResponse>;
  readonly references: Record<string, Responses>;
} {
  const { responses, sets } = readData('errors.json') as { responses: Record<string, ErrorResponse>; sets: Sets };
  const statuses = mapValues(responses, statusOf);
  const reference = (name: string) => [statuses[name], component('responses', name)] as const;
  return {
    components: mapValues(responses, (response) => errorResponse(response, headersOf(response.headers))),
    references: mapValues(sets, (names) => Object.fromEntries(expand(names, sets).map(reference))),
  };
}

function errorResponse({ codes }: ErrorResponse, headers: ApiResponse['headers']): ApiResponse {
  const rows = codes.map((code) => ({ code, type: problemType(code), ...problems[code] }));
  const properties = {
    type: { type: 'string', enum: rows.map(({ type }) => type) },
    title: { type: 'string', enum: rows.map(({ title }) => title) },
    status: { type: 'integer', enum: [...new Set(rows.map(({ status }) => status))] },
    detail: { type: 'string' },
    code: { type: 'string', enum: codes },
  };
  const [{ type, title, status, code }] = rows as [(typeof rows)[number]];
  const example = { type, title, status, detail: `${title}.`, code, requestId: '0b1d6f0e-7f5c-4b7e-9d5f-1f0c8f1f5d0a' };
  const schema = { type: 'object', allOf: [component('schemas', 'Problem')], properties };
  return {
    description: rows.map((row) => `\`${row.code}\`: ${row.title}.`).join(' '),
    headers,
    content: { 'application/problem+json': { schema, example } },
  };
}

function statusOf({ codes }: ErrorResponse): number {
  const [status, ...others] = new Set(codes.map((code) => problems[code].status));
  if (status === undefined || others.length > 0) throw new Error(`${codes.join(', ')} do not have the same status.`);
  return status;
}
