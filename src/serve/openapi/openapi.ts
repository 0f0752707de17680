import type { Resource } from '../../resource/definition/resource.js';
import {
  type ApiParameter,
  type CodeSample,
  type Components,
  component,
  type OpenApiDocument,
  type Operation,
  type Responses,
  resolve,
} from './document.js';
import { operation, resourcePart } from './operations.js';
import { errorResponses, errorsOf, headersOf, type SuccessKind, successHeaders } from './responses.js';
import { fillFile, mapValues, readData, type TemplateValues } from './texts.js';
import { apiTitle, contactOf, documentValues, type OpenApiOptions } from './values.js';

/** Of definitions, settings, the table of problems, and the components and texts in config/openapi. */
export function openapi(resources: readonly Resource[], options: OpenApiOptions): OpenApiDocument {
  const { version, publicUrl, apiContact, timeZone } = options;
  const values = documentValues(resources, options);
  const fixed = readData('components.json', values) as Omit<Components, 'securitySchemes'>;
  const parts = resources.map((resource) => resourcePart(resource, options));
  const merged = <Kind extends 'paths' | 'schemas' | 'parameters' | 'responses'>(kind: Kind) =>
    Object.assign({}, ...parts.map((part) => part[kind])) as (typeof parts)[number][Kind];
  const { Problem, Pagination, ...ofSync } = fixed.schemas as Record<string, object>;
  const hasSync = resources.some(({ sync }) => sync !== undefined);
  const document: OpenApiDocument = {
    openapi: '3.1.0',
    'x-time-zone': timeZone,
    info: {
      title: apiTitle,
      version,
      description: fillFile('introduction.md', values).trim(),
      ...(apiContact !== '' && { contact: contactOf(apiContact) }),
      license: { name: 'MIT', identifier: 'MIT' },
    },
    servers: [{ url: `${publicUrl}/api/v1`, description: publicUrl ? 'Version 1 of the API.' : unnamedHost }],
    tags: [documentTag, ...parts.map(({ tag }) => tag), ...(hasSync ? [syncTag] : [])],
    paths: { ...merged('paths'), ...fixedPaths(options) },
    components: {
      securitySchemes: securitySchemes(options, values),
      schemas: { Problem, Pagination, ...merged('schemas'), ...ofSync } as Components['schemas'],
      parameters: { ...fixed.parameters, ...merged('parameters') },
      headers: fixed.headers,
      responses: { ...merged('responses'), ...errorResponses(), ...withHeaders(fixed.responses) },
    },
    'x-other-responses': { 204: component('responses', 'Options'), ...errorsOf('other') },
  };
  return withUsedComponents(withSamples(document));
}

const unnamedHost =
  'Version 1, on the host from which you read this description. The operator names the host by PUBLIC_URL.';
const documentTag = {
  name: 'Token and description',
  description: 'The token of the request, the index of the API, and this description.',
};
const syncTag = {
  name: 'Sync',
  description:
    'Keeps a copy of a resource and misses no change: a full sync, then passes over what changed, and a digest that finds deletions.',
};

function securitySchemes(
  { basicAuth }: OpenApiOptions,
  { rateLimitPerMinute, writeLimit }: TemplateValues,
): Components['securitySchemes'] {
  const bearer = {
    type: 'http',
    scheme: 'bearer',
    bearerFormat: 'wdg_ and 49 letters and digits',
    description: `An access token of a workspace, in the Authorization header only. Each operation names the scope that the token must have (\`x-required-scope\`). A token has ${rateLimitPerMinute} requests a minute, over all operations${writeLimit}.`,
  };
  const basic = { type: 'http', scheme: 'basic', description: 'The same token as password, with any user name.' };
  return { bearer, ...(basicAuth && { basic }) };
}

function fixedPaths(options: OpenApiOptions) {
  const describe = (operationId: string, summary: string, description: string, response: string) => {
    const isDocument = response !== 'Token';
    const get = operation(options, {
      ...{ operationId, summary, description, tag: documentTag.name, ...(isDocument && { scope: null }) },
      parameters: isDocument ? ['ifNoneMatch'] : [],
      responses: { 200: response, ...(isDocument && { 304: 'DocumentNotModified' }) },
      errors: isDocument ? 'public' : 'token',
    });
    return { get };
  };
  return {
    '/': describe(
      ...(['getIndex', 'Read the index of the API'] as const),
      'The name and the version of the API, and the addresses of its lists, with and without the slash. It needs no token.',
      'Index',
    ),
    '/token': describe(
      ...(['getToken', 'Read the token'] as const),
      'The name, the workspace, the scopes, the expiry and the limits of the token that the request carries.',
      'Token',
    ),
    '/openapi.json': describe(
      ...(['getOpenapi', 'Read this document'] as const),
      'The OpenAPI 3.1 description of this API. It needs no token.',
      'OpenApi',
    ),
  };
}

/** Of the responses in config/openapi/components.json. */
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

function withHeaders(responses: Components['responses']): Components['responses'] {
  const namesOf = (name: string) => successHeaders[fixedHeaders[name] as SuccessKind];
  return mapValues(responses, (response, name) => ({ ...response, headers: headersOf(namesOf(name)) }));
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
      body: body ? JSON.stringify(body, null, 2).replaceAll("'", '\\u0027') : '', // which would end the text in a shell
    };
    return { lang, label, source: fillFile(`samples/${lang}-${kind}.txt`, values).trimEnd() };
  });
}

/** Tools do not follow references from extensions: what only `x-other-responses` uses is written out there. */
function withUsedComponents(document: OpenApiDocument): OpenApiDocument {
  const { 'x-other-responses': responses, ...kept } = document;
  const used = new Set(JSON.stringify(kept).match(/(?<="\$ref":")[^"]+/g));
  const writtenOut = (value: unknown): unknown => {
    if (typeof value !== 'object' || value === null || Array.isArray(value)) return value;
    const isUnused = '$ref' in value && !used.has(String(value.$ref));
    return isUnused ? writtenOut(resolve(document, value)) : mapValues(value as TemplateValues, writtenOut);
  };
  const components = Object.entries(document.components).map(([kind, members]) => {
    const kept = Object.entries(members).filter(([name]) => used.has(`#/components/${kind}/${name}`));
    return [kind, kind === 'securitySchemes' ? members : Object.fromEntries(kept)];
  });
  const smaller = { ...kept, components: Object.fromEntries(components), 'x-other-responses': writtenOut(responses) };
  const isDone = JSON.stringify(smaller) === JSON.stringify(document);
  return isDone ? document : withUsedComponents(smaller as OpenApiDocument);
}
