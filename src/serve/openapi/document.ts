import { splitPointer } from '../../base/members.js';
import type { JsonSchema } from '../../resource/definition/field-types.js';

export interface OpenApiDocument {
  readonly openapi: string;
  /** Zone in which the days of filters by moments begin: a day of the API is not a day in UTC. */
  readonly 'x-time-zone': string;
  readonly info: Readonly<Record<'title' | 'version' | 'description', string>> & {
    readonly contact?: object;
    readonly license: object;
  };
  readonly servers: readonly { readonly url: string; readonly description: string }[];
  readonly tags: readonly { readonly name: string; readonly description: string }[];
  readonly paths: Paths;
  readonly components: Components;
  /** Responses of OPTIONS (204), and of requests that match no operation. */
  readonly 'x-other-responses': Responses;
}

export type Paths = Readonly<Record<string, Readonly<Partial<Record<Method, Operation>>>>>;
export type Method = 'get' | 'post' | 'patch';
export type Responses = Readonly<Record<string, RefObject | ApiResponse>>;

export interface Components {
  readonly schemas: Readonly<Record<string, JsonSchema>>;
  readonly parameters: Readonly<Record<string, ApiParameter>>;
  readonly headers: Readonly<Record<string, Header>>;
  readonly responses: Readonly<Record<string, ApiResponse>>;
  readonly securitySchemes: Readonly<Record<string, JsonSchema>>;
}

/** Is a type alias, so that a reference is a JsonSchema as well. */
export type RefObject = { readonly $ref: string };

export interface Operation {
  readonly operationId: string;
  readonly summary: string;
  readonly description: string;
  readonly tags: readonly string[];
  readonly 'x-required-scope'?: string;
  readonly security: readonly object[];
  readonly parameters: readonly RefObject[];
  readonly requestBody?: { readonly description: string; readonly content: Content };
  readonly responses: Responses;
  readonly 'x-codeSamples': readonly CodeSample[];
}

export type CodeSample = Readonly<Record<'lang' | 'label' | 'source', string>>;

type Content = Readonly<Record<string, MediaType>>;

export type MediaType = { readonly schema: JsonSchema; readonly example?: unknown };

export interface Header extends MediaType {
  readonly description: string;
  /** Replaces `required`, which OpenAPI 2.0 refuses in a header of a response. */
  readonly 'x-always-sent'?: boolean;
}

export interface ApiParameter extends MediaType {
  readonly description: string;
  readonly required?: boolean;
  readonly name: string;
  readonly in: 'query' | 'path' | 'header';
  readonly style?: 'form';
  readonly explode?: boolean;
}

export interface ApiResponse {
  readonly description: string;
  readonly headers: Readonly<Record<string, RefObject | Header>>;
  readonly content?: Content;
}

/** Follows a reference into the document (RFC 6901 fragment). */
export function resolve<T extends object>(document: OpenApiDocument, value: T | RefObject): T {
  if (!('$ref' in value) || typeof value.$ref !== 'string') return value as T;
  let target: unknown = document;
  for (const step of splitPointer(value.$ref)) target = (target as Record<string, unknown>)[step];
  if (target === undefined) throw new Error(`${value.$ref} points to nothing.`);
  return target as T;
}

export function makeRef(kind: keyof Components, name: string): RefObject {
  return { $ref: `#/components/${kind}/${name}` };
}
