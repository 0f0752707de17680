import type { JsonSchema } from '../../resource/definition/field-types.js';
import type { Resource } from '../../resource/definition/resource.js';
import {
  type ApiParameter,
  type CodeSample,
  type Components,
  makeRef,
  type OpenApiDocument,
  type Operation,
  type Responses,
  resolve,
} from './document.js';
import { makeOperation, makeResourceSection, type OperationWords } from './operations.js';
import { makeErrorResponses, makeErrors, makeHeaders, type SuccessKind, successHeaders } from './responses.js';
import { fillFile, mapValues, readData, type TemplateValues } from './texts.js';
import { apiTitle, makeDocumentValues, type OpenApiOptions, parseContact } from './values.js';

/** Composes definitions, settings, the table of problems, and the components and texts in config/openapi. */
export function makeOpenApi(resources: readonly Resource[], options: OpenApiOptions): OpenApiDocument {
  const { version, publicUrl, apiContact, timeZone } = options;
  const values = makeDocumentValues(resources, options);
  const fixed = readData('components.json', values) as Omit<Components, 'securitySchemes'>;
  const texts = readData('api.json', values) as ApiTexts;
  const sections = resources.map((resource) => makeResourceSection(resource, options));
  const mergeSections = <Kind extends 'paths' | 'schemas' | 'parameters' | 'responses'>(kind: Kind) =>
    Object.assign({}, ...sections.map((section) => section[kind])) as (typeof sections)[number][Kind];
  const { Problem, Pagination, ...syncSchemas } = fixed.schemas as Record<string, object>;
  const hasSync = resources.some(({ sync }) => sync !== undefined);
  const document: OpenApiDocument = {
    openapi: '3.1.0',
    'x-time-zone': timeZone,
    info: {
      title: apiTitle,
      version,
      description: fillFile('introduction.md', values).trim(),
      ...(apiContact !== '' && { contact: parseContact(apiContact) }),
      license: { name: 'MIT', identifier: 'MIT' },
    },
    servers: [{ url: `${publicUrl}/api/v1`, ...(publicUrl ? { description: 'Version 1 of the API.' } : texts.server) }],
    tags: [texts.documentTag, ...sections.map(({ tag }) => tag), ...(hasSync ? [texts.syncTag] : [])],
    paths: { ...mergeSections('paths'), ...makeFixedPaths(options, texts) },
    components: {
      securitySchemes: { bearer: texts.bearer, ...(options.basicAuth && { basic: texts.basic }) },
      schemas: { Problem, Pagination, ...mergeSections('schemas'), ...syncSchemas } as Components['schemas'],
      parameters: { ...fixed.parameters, ...mergeSections('parameters') },
      headers: fixed.headers,
      responses: { ...mergeSections('responses'), ...makeErrorResponses(), ...addHeaders(fixed.responses) },
    },
    'x-other-responses': { 204: makeRef('responses', 'Options'), ...makeErrors('other') },
  };
  return keepUsedComponents(addSamples(document));
}

type ApiTag = OpenApiDocument['tags'][number];
type FixedPath = '/' | '/token' | '/openapi.json';
type ApiTexts = Readonly<Record<FixedPath, OperationWords> & Record<'documentTag' | 'syncTag', ApiTag>> &
  Readonly<Record<'server', { description: string }> & Record<'bearer' | 'basic', JsonSchema>>;

function makeFixedPaths(options: OpenApiOptions, texts: ApiTexts) {
  const makePath = (path: FixedPath, response: 'Index' | 'Token' | 'OpenApi') => {
    const isDocument = response !== 'Token';
    const get = makeOperation(options, {
      words: texts[path],
      tag: texts.documentTag.name,
      ...(isDocument && { scope: null }),
      parameters: isDocument ? ['ifNoneMatch'] : [],
      responses: { 200: response, ...(isDocument && { 304: 'DocumentNotModified' }) },
      errors: isDocument ? 'public' : 'token',
    });
    return { [path]: { get } };
  };
  return { ...makePath('/', 'Index'), ...makePath('/token', 'Token'), ...makePath('/openapi.json', 'OpenApi') };
}

/** Which headers the responses in config/openapi/components.json have. */
const fixedHeaders: Readonly<Record<string, SuccessKind>> = {
  NotModified: 'versioned',
  Options: 'options',
  Token: 'token',
  Index: 'document',
  OpenApi: 'document',
  DocumentNotModified: 'documentNotModified',
  Digest: 'sync',
  Ids: 'sync',
};

function addHeaders(responses: Components['responses']): Components['responses'] {
  const listHeaders = (name: string) => makeHeaders(successHeaders[fixedHeaders[name] as SuccessKind]);
  return mapValues(responses, (response, name) => ({ ...response, headers: listHeaders(name) }));
}

/** Adds samples. Inlines successful responses: from references some generators make clients that return no data. */
function addSamples(document: OpenApiDocument): OpenApiDocument {
  const inline = (response: Responses[string], status: string) =>
    status.startsWith('2') ? resolve(document, response) : response;
  const paths = mapValues(document.paths, (item, path) =>
    mapValues(item, (operation, method) => ({
      ...operation,
      responses: mapValues(operation.responses, inline),
      'x-codeSamples': listSamples(document, path, method, operation),
    })),
  );
  return { ...document, paths };
}

const samplePerPage = 1000;

/** A language has the variable ID in a path, and a line for a header; a language without that line only reads. */
type Language = readonly [lang: string, label: string, id: string, header?: (name: string, value: string) => string];

const composeEntry = (name: string, value: string): string => `    "${name}": '${value}',\n`;
const languages: readonly Language[] = [
  ['shell', 'curl', '$ID', (name, value) => `  -H '${name}: ${value}' \\\n`],
  ['python', 'Python', "{os.environ['ID']}", composeEntry],
  ['javascript', 'JavaScript', `\${ID}`, composeEntry],
  ['powerquery', 'Power Query', '" & ID & "'],
];

/** Lists a sample in each language that can make the operation; for a list it follows `next` to the end. */
function listSamples(document: OpenApiDocument, path: string, method: string, operation: Operation): CodeSample[] {
  const parameters = operation.parameters.map((reference) => resolve<ApiParameter>(document, reference));
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
      body: body ? JSON.stringify(body, null, 2).replaceAll("'", '\\u0027') : '', // a quotation mark would end the text in a shell
    };
    return { lang, label, source: fillFile(`samples/${lang}-${kind}.txt`, values).trimEnd() };
  });
}

/** Drops unused components. Tools do not follow references from extensions, so `x-other-responses` gets its own written out. */
function keepUsedComponents(document: OpenApiDocument): OpenApiDocument {
  const { 'x-other-responses': responses, ...described } = document;
  const usedReferences = new Set(JSON.stringify(described).match(/(?<="\$ref":")[^"]+/g));
  const writeOut = (value: unknown): unknown => {
    if (typeof value !== 'object' || value === null || Array.isArray(value)) return value;
    const isUnused = '$ref' in value && !usedReferences.has(String(value.$ref));
    return isUnused ? writeOut(resolve(document, value)) : mapValues(value as TemplateValues, writeOut);
  };
  const components = Object.entries(document.components).map(([kind, members]) => {
    const usedMembers = Object.entries(members).filter(([name]) => usedReferences.has(`#/components/${kind}/${name}`));
    return [kind, kind === 'securitySchemes' ? members : Object.fromEntries(usedMembers)];
  });
  const reduced = {
    ...described,
    components: Object.fromEntries(components),
    'x-other-responses': writeOut(responses),
  };
  const isDone = JSON.stringify(reduced) === JSON.stringify(document); // a component that was dropped may have been the last to use another
  return isDone ? document : keepUsedComponents(reduced as OpenApiDocument);
}
