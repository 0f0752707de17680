import type { JsonSchema, Resource } from '../definition/resource.js';
import { type ApiResponse, component, type MediaType } from './document.js';
import { headersOf } from './headers.js';
import { exampleRecord } from './record-example.js';

const read = ['Server-Timing', 'Data-As-Of'];
const json = (schema: JsonSchema, example?: unknown): Record<string, MediaType> => ({
  'application/json': { schema, ...(example === undefined ? {} : { example }) },
});

/** Responses of every outcome that is no error, as components. */
export function successComponents(resources: readonly Resource[], perPageDefault: number): Record<string, ApiResponse> {
  return {
    ...Object.assign({}, ...resources.map((resource) => ofResource(resource, perPageDefault))),
    NotModified: {
      description: 'The record is as you know it; no body.',
      headers: headersOf('always', [...read, 'ETag']),
    },
    Options: { description: 'The methods of the path; no body.', headers: headersOf('never', ['Allow']) },
    OpenApi: {
      description: 'This document.',
      headers: headersOf('never', ['Server-Timing', 'NegotiatedVary', 'Content-Encoding']),
      content: json({
        type: 'object',
        required: ['openapi', 'info', 'paths'],
        properties: {
          openapi: { type: 'string', pattern: '^3\\.1\\.' },
          info: { type: 'object' },
          paths: { type: 'object' },
        },
      }),
    },
  };
}

function ofResource(resource: Resource, perPage: number): Record<string, ApiResponse> {
  const { name, record } = resource;
  const example = exampleRecord(resource);
  const etag = resource.version ? ['ETag'] : [];
  const responses: Record<string, ApiResponse> = {
    [`${name}.page`]: {
      description: `A page of ${name}. It is whole if it ends in \`"complete":true}}\`.`,
      headers: headersOf('always', [...read, 'Link', 'NegotiatedVary', 'Content-Encoding']),
      content: json(component('schemas', `${name}.page`), examplePage(example, perPage)),
    },
  };
  if (resource.detail) {
    responses[record] = {
      description: `The ${record}.`,
      headers: headersOf('always', [...read, ...etag]),
      content: json(component('schemas', record), example),
    };
  }
  if (resource.writeView) {
    // Both shapes are closed objects, so that exactly one of them fits.
    const schema = { oneOf: [component('schemas', record), component('schemas', `${record}.written`)] };
    responses[`${record}.created`] = {
      description: `The new ${record}; only what the write scope may see if the token lacks \`read:${name}\`.`,
      headers: headersOf('always', ['ETag', 'Location', 'Idempotent-Replayed', 'WriteTiming']),
      content: json(schema, example),
    };
    responses[`${record}.updated`] = {
      description: `The ${record} after the change; only what the write scope may see if the token lacks \`read:${name}\`.`,
      headers: headersOf('always', ['ETag', 'Idempotent-Replayed', 'WriteTiming']),
      content: json(schema, example),
    };
  }
  return responses;
}

function examplePage(record: object, perPage: number): object {
  const pagination = {
    page: 1,
    perPage,
    count: 1,
    hasMore: false,
    nextCursor: 'y4Qq7wZ0m1JpXw3n',
    next: null,
    complete: true,
  };
  return { data: [record], pagination };
}

/** Schema of a list's body. */
export function pageSchema(resource: Resource, perPageMax: number): JsonSchema {
  return {
    type: 'object',
    description: `A page of ${resource.name}. Members in this order; the last bytes, \`"complete":true}}\`, say that it is whole.`,
    additionalProperties: false,
    required: ['data', 'pagination'],
    properties: {
      data: { type: 'array', maxItems: perPageMax, items: component('schemas', resource.record) },
      pagination: component('schemas', 'pagination'),
    },
  };
}

/** Schema of `pagination` in every list's body, its members in the order they are sent in. */
export function paginationSchema(perPageMax: number): JsonSchema {
  return {
    type: 'object',
    description: 'Where the page stands in the list and how to go on. Members in this order.',
    additionalProperties: false,
    required: ['page', 'perPage', 'count', 'hasMore', 'nextCursor', 'next', 'complete'],
    properties: {
      page: { type: ['integer', 'null'], minimum: 1, description: 'Number of the page; null when reached by cursor.' },
      perPage: { type: 'integer', minimum: 1, maximum: perPageMax, description: 'Records a full page holds.' },
      count: { type: 'integer', minimum: 0, maximum: perPageMax, description: 'Records in this page.' },
      hasMore: { type: 'boolean', description: 'Whether records follow.' },
      nextCursor: {
        type: 'string',
        pattern: '^[A-Za-z0-9_-]+$',
        description:
          'Where this page ended, opaque; `cursor` continues there, also when records are added behind the last page.',
      },
      next: {
        type: ['string', 'null'],
        format: 'uri',
        description: 'Absolute address of the next page; null on the last page.',
      },
      total: { type: 'integer', minimum: 0, description: 'Records in the whole list; only present with `total=true`.' },
      complete: { type: 'boolean', const: true, description: 'Always true and always last: the page is whole.' },
    },
    if: { type: 'object', properties: { hasMore: { const: true } } },
    // biome-ignore lint/suspicious/noThenProperty: a keyword of JSON Schema.
    then: { type: 'object', properties: { next: { type: 'string' } } },
    else: { type: 'object', properties: { next: { type: 'null' } } },
  };
}
