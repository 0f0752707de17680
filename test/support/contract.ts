import { Ajv2020, type ValidateFunction } from 'ajv/dist/2020.js';
import addFormats from 'ajv-formats';
import type { JsonSchema } from '../../src/resource/definition/field-types.js';
import {
  type ApiResponse,
  type Header,
  type MediaType,
  type Method,
  type OpenApiDocument,
  type Responses,
  resolve,
} from '../../src/serve/openapi/document.js';

export interface Exchange {
  readonly method: string;
  readonly path: string;
  readonly status: number;
  readonly headers: Readonly<Record<string, string>>;
  readonly body: string;
}

/** The document does not describe the response; the message names every violation. */
export class ContractViolation extends Error {
  override readonly name = 'ContractViolation';
  constructor(exchange: Exchange, violations: readonly string[]) {
    const { method, path, status, body } = exchange;
    super(
      `${method} ${path} → ${status} breaks the contract:\n  ${violations.join('\n  ')}\n  body: ${body.slice(0, 500)}`,
    );
  }
}

/** No operation describes these headers of HTTP and of CORS. */
const httpHeaders = /^(?:connection|content-length|content-type|date|keep-alive|transfer-encoding|access-control-.*)$/;

export function contractValidator(document: OpenApiDocument): (exchange: Exchange) => void {
  const conforms = schemaValidator(document);
  const cuts = new Map<MediaType, MediaType>();
  return (exchange) => {
    const reference = responsesFor(document, exchange)[String(exchange.status)];
    if (!reference || (exchange.status === 204 && exchange.method !== 'OPTIONS'))
      throw new ContractViolation(exchange, ['the document describes no such status here']);
    const response = resolve(document, reference);
    const violations = [...headerFaults(exchange, response), ...bodyFaults(exchange, response)];
    if (violations.length > 0) throw new ContractViolation(exchange, violations);
  };

  function headerFaults({ headers }: Exchange, response: ApiResponse): string[] {
    const described = new Map(Object.entries(response.headers).map(([name, header]) => [name.toLowerCase(), header]));
    const unknown = Object.keys(headers).filter((name) => !described.has(name) && !httpHeaders.test(name));
    const faults = unknown.map((name) => `header ${name}: not described`);
    for (const [name, reference] of described) {
      const header = resolve<Header>(document, reference);
      const value = headers[name];
      if (value === undefined && header['x-always-sent']) faults.push(`header ${name}: missing`);
      if (value === undefined) continue;
      faults.push(
        ...conforms(header.schema, typed(value, header.schema)).map((f) => `header ${name}: ${f} (${value})`),
      );
    }
    return faults;
  }

  function bodyFaults({ method, path, status, headers, body }: Exchange, response: ApiResponse): string[] {
    const type = headers['content-type'];
    const [described] = Object.entries(response.content ?? {});
    if (!described) {
      if (body !== '') return ['there is a body where none may be'];
      return type === undefined ? [] : ['there is a content type without a body'];
    }
    const [mediaType, media] = described;
    const faults =
      type?.replace(/; *charset=utf-8$/i, '') === mediaType ? [] : [`content type ${type}, not ${mediaType}`];
    if (method === 'HEAD') return body === '' ? faults : [...faults, 'the answer to HEAD has a body'];
    const isCut = status === 200 && new URLSearchParams(path.split('?')[1]).has('fields');
    return [...faults, ...contentFaults(conforms, isCut ? cut(media) : media, body, headers['x-request-id'])];
  }

  /** Lets the records of a page lack the members that were not asked for. */
  function cut(media: MediaType): MediaType {
    const known = cuts.get(media);
    if (known !== undefined) return known;
    type Shape = JsonSchema & { readonly properties: Record<string, JsonSchema>; readonly items: JsonSchema };
    const page = resolve(document, media.schema) as Shape;
    const records = page.properties.data as Shape;
    const { required, ...record } = resolve(document, records.items) as Shape;
    const properties = { ...page.properties, data: { ...records, items: record } };
    const made = { schema: { ...page, properties } };
    cuts.set(media, made);
    return made;
  }
}

function contentFaults(
  conforms: (schema: JsonSchema, value: unknown) => string[],
  media: MediaType,
  text: string,
  requestId: string | undefined,
): string[] {
  let value: unknown;
  try {
    value = JSON.parse(text);
  } catch {
    return ['the body is not JSON'];
  }
  const faults = conforms(media.schema, value).map((fault) => `body ${fault}`);
  const { data, pagination, code, type, requestId: named } = (value ?? {}) as Record<string, unknown>;
  // The document cannot say it: with a choice of schemas, generators of clients drop the members beside it.
  const { hasMore, nextCursor, next } = (pagination ?? {}) as Record<string, unknown>;
  if (typeof hasMore === 'boolean' && [nextCursor, next].some((onward) => (typeof onward === 'string') !== hasMore))
    faults.push('body /pagination: nextCursor and next are not null exactly when hasMore is false');
  if (data !== undefined && !(text.startsWith('{"data":[') && text.endsWith('"complete":true}}')))
    faults.push('body: not in the order of a list');
  if (Array.isArray(data) && (pagination as { count?: unknown } | undefined)?.count !== data.length)
    faults.push('body /pagination/count: not the number of records');
  if (typeof code === 'string' && !String(type).endsWith(`:${code}`))
    faults.push('body /type: it does not end with the code');
  if (typeof code === 'string' && named !== requestId) faults.push('body /requestId: it differs from the header');
  return faults;
}

/** Finds the operation that describes the responses to a method. Methods are case-sensitive (RFC 9110 §9.1): "get" is not GET. */
const operationMethods: Readonly<Record<string, Method>> = { GET: 'get', HEAD: 'get', POST: 'post', PATCH: 'patch' };

function responsesFor(document: OpenApiDocument, { method, path }: Exchange): Responses {
  const [target = ''] = path.split('?');
  const base = new URL(document.servers[0]?.url ?? '', 'http://localhost').pathname;
  // The root of the server shows the index as well.
  const below =
    target === base || target === '/' ? '/' : target.startsWith(`${base}/`) ? target.slice(base.length) : '';
  const matches = (template: string): boolean => {
    const segments = below.split('/');
    const parts = template.split('/');
    return (
      parts.length === segments.length &&
      parts.every((part, i) => (part.startsWith('{') ? segments[i] !== '' : part === segments[i]))
    );
  };
  // A path without parameters goes before a path with parameters (OpenAPI 3.1.1 §4.8.8.2); here they never compete.
  const item = Object.entries(document.paths).find(([template]) => matches(template))?.[1];
  const as = operationMethods[method];
  return (as && item?.[as]?.responses) ?? document['x-other-responses'];
}

/** Compiles each schema once; the result names the faults of a value. The schema can refer into the document. */
function schemaValidator(document: OpenApiDocument): (schema: JsonSchema, value: unknown) => string[] {
  const code = { optimize: false }; // each test file compiles the schemas, and optimizing takes longer than it saves
  const validateSchema = false; // it compiles the schema of schemas first; test/unit/openapi.test.ts holds the document against that
  const ajv = new Ajv2020({ allErrors: true, strict: true, allowUnionTypes: true, validateSchema, code });
  ajv.addVocabulary(['x-record', 'x-references']);
  addFormats.default(ajv);
  // Each by itself: of a single schema with all of them ajv would compile those that no response of the test file needs.
  for (const [name, schema] of Object.entries(document.components.schemas))
    ajv.addSchema(absolute(closed(schema)) as JsonSchema, `${inDocument}/components/schemas/${name}`);
  const compiled = new Map<JsonSchema | string, ValidateFunction>();
  return (schema, value) => {
    const key = typeof schema.$ref === 'string' ? schema.$ref : schema;
    const validate = compiled.get(key) ?? ajv.compile(absolute(closed(schema)) as JsonSchema);
    compiled.set(key, validate);
    if (validate(value)) return [];
    return (validate.errors ?? []).map(
      ({ instancePath, message, params }) => `${instancePath || '/'}: ${message} ${JSON.stringify(params)}`,
    );
  };
}

/**
 * Closes objects to members that they do not name: here such a member is a violation. Alternatives of a closed object see the members
 * around them.
 */
function closed(value: unknown, around = false): unknown {
  if (Array.isArray(value)) return value.map((item) => closed(item, around));
  if (typeof value !== 'object' || value === null) return value;
  const schema = value as Record<string, unknown>;
  const close = schema.type === 'object' && 'properties' in schema && !('additionalProperties' in schema) && !around;
  const copy = Object.entries(schema).map(([key, member]) => [
    key,
    closed(member, (close || around) && ['oneOf', 'anyOf', 'allOf'].includes(key)),
  ]);
  return Object.fromEntries(close ? [...copy, ['unevaluatedProperties', false]] : copy);
}

const inDocument = 'urn:document:';

/** Lets the schema refer into the document instead of into itself. */
function absolute(schema: unknown): unknown {
  if (Array.isArray(schema)) return schema.map(absolute);
  if (typeof schema !== 'object' || schema === null) return schema;
  return Object.fromEntries(
    Object.entries(schema).map(([key, value]) => [
      key,
      key === '$ref' && typeof value === 'string' ? value.replace(/^#/, inDocument) : absolute(value),
    ]),
  );
}

function typed(value: string, schema: JsonSchema): unknown {
  return schema.type === 'integer' && /^-?[0-9]+$/.test(value) ? Number(value) : value;
}
