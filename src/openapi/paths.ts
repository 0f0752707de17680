import type { Resource } from '../definition/resource.js';
import { component, type Operation, type PathItem } from './document.js';
import { errorReferences } from './errors.js';
import { listParameters, orderProse, parameters } from './parameters.js';
import { exampleBody } from './record-example.js';

/** Every path with its operations, relative to the server's address. */
export function paths(resources: readonly Resource[]): Record<string, PathItem> {
  const items: Record<string, PathItem> = {};
  for (const resource of resources) {
    items[`/${resource.name}`] = listPath(resource);
    if (resource.detail) items[`/${resource.name}/{id}`] = detailPath(resource);
  }
  items['/openapi.json'] = documentPath();
  return items;
}

function listPath(resource: Resource): PathItem {
  const { name } = resource;
  const get: Operation = {
    operationId: `list${capital(name)}`,
    summary: `List ${name}`,
    ...scoped(
      `read:${name}`,
      `${resource.description} In the order of ${orderProse(resource)}, ascending. Filters combine.`,
    ),
    tags: [name],
    parameters: listParameters(resource),
    responses: { 200: component('responses', `${name}.page`), ...errorReferences('list') },
  };
  const write = resource.writeView ? { post: create(resource) } : {};
  return { get, head: headOf(get), ...write, options: options(name, capital(name), []) };
}

function detailPath(resource: Resource): PathItem {
  const { name, record } = resource;
  const versioned = resource.version !== undefined;
  const get: Operation = {
    operationId: `get${capital(record)}`,
    summary: `Read one ${record}`,
    ...scoped(`read:${name}`, 'An identifier that is unknown, malformed or of another workspace gives 404 alike.'),
    tags: [name],
    parameters: parameters('id', ...(versioned ? ['ifNoneMatch', 'ifMatch'] : []), 'requestId'),
    responses: {
      200: component('responses', record),
      ...(versioned ? { 304: component('responses', 'NotModified') } : {}),
      ...errorReferences(versioned ? 'versionedDetail' : 'detail'),
    },
  };
  const write = resource.writeView ? { patch: update(resource) } : {};
  return { get, head: headOf(get), ...write, options: options(name, capital(record), ['id']) };
}

function create(resource: Resource): Operation {
  const { name, record } = resource;
  const schema = component('schemas', `${record}.create`);
  return {
    operationId: `create${capital(record)}`,
    summary: `Create one ${record}`,
    ...scoped(`write:${name}`, 'Safe to repeat with the same `Idempotency-Key`, also after a lost or a 5xx answer.'),
    tags: [name],
    parameters: parameters('idempotencyKey', 'requestId'),
    requestBody: {
      required: true,
      description: 'UTF-8, at most 64 KiB and 20 levels deep, without duplicate members.',
      content: { 'application/json': { schema, example: exampleBody(resource) } },
    },
    responses: { 201: component('responses', `${record}.created`), ...errorReferences('create') },
  };
}

function update(resource: Resource): Operation {
  const { name, record } = resource;
  const media = {
    schema: component('schemas', `${record}.patch`),
    example: { naam: 'Koelcel eerste verdieping', locatie: null },
  };
  return {
    operationId: `update${capital(record)}`,
    summary: `Change one ${record}`,
    ...scoped(
      `write:${name}`,
      'Only if the version in `If-Match` is still the current one. Safe to repeat with the same `Idempotency-Key`, although `If-Match` is stale by then. An empty object changes nothing.',
    ),
    tags: [name],
    parameters: parameters('id', 'idempotencyKey', 'ifMatchRequired', 'requestId'),
    requestBody: {
      required: true,
      description: 'UTF-8, at most 64 KiB and 20 levels deep, without duplicate members.',
      content: { 'application/json': media, 'application/merge-patch+json': media },
    },
    responses: { 200: component('responses', `${record}.updated`), ...errorReferences('update') },
  };
}

function documentPath(): PathItem {
  const get: Operation = {
    operationId: 'getOpenapi',
    summary: 'Read this document',
    description: 'The OpenAPI 3.1 description of this API. No token is needed.',
    tags: ['openapi.json'],
    security: [],
    parameters: parameters('requestId'),
    responses: { 200: component('responses', 'OpenApi'), ...errorReferences('public') },
  };
  return { get, head: headOf(get), options: options('openapi.json', 'Openapi', []) };
}

/** HEAD answers as GET does, without the body. */
function headOf(get: Operation): Operation {
  const what = get.operationId.replace(/^(list|get)/, '');
  return {
    ...get,
    operationId: `head${what}`,
    summary: `${get.summary}: headers only`,
    description: `As GET, without the body. ${get.description}`,
  };
}

function options(tag: string, what: string, own: readonly string[]): Operation {
  return {
    operationId: `options${what}`,
    summary: 'Ask which methods there are',
    description: 'No token is needed.',
    tags: [tag],
    security: [],
    parameters: parameters(...own, 'requestId'),
    responses: { 204: component('responses', 'Options'), ...errorReferences('options') },
  };
}

function scoped(scope: string, description: string): Pick<Operation, 'description' | 'x-required-scope' | 'security'> {
  return {
    description: `${description} Needs the scope \`${scope}\`.`,
    'x-required-scope': scope,
    security: [{ bearer: [scope] }],
  };
}

function capital(name: string): string {
  return name.charAt(0).toUpperCase() + name.slice(1);
}
