import { getProblemType, type ProblemCode, problems } from '../../base/errors.js';
import { type ApiResponse, makeRef, type Responses } from './document.js';
import { mapValues } from './texts.js';

const browserHeaders = ['Cache-Control', 'X-Content-Type-Options', 'Content-Security-Policy', 'Referrer-Policy'];
const everywhere = ['X-Request-Id', 'API-Version', ...browserHeaders, 'Deprecation', 'Sunset', 'Vary'];
const counted = ['RateLimit-Policy', 'RateLimit'];
const countedWithToken = ['RateLimitPolicyWithToken', 'RateLimitWithToken'];
const readHeaders = [...counted, 'Server-Timing', 'Data-As-Of'];
const writeHeaders = [...counted, 'WrittenETag', 'Idempotent-Replayed', 'Dry-Run', 'Server-Timing'];
const compressed = ['NegotiatedVary', 'Content-Encoding'];
/** A valid token is counted for documents and unknown paths, too, instead of its address. */
const documentNotModified = [...countedWithToken, 'Server-Timing', 'NegotiatedVary', 'DocumentETag'];

/** Components of the headers of successful responses. */
export const successHeaders = {
  page: [...readHeaders, 'Link', ...compressed],
  sync: [...readHeaders, ...compressed],
  detail: readHeaders,
  versioned: [...readHeaders, 'ETag'],
  token: [...counted, 'Server-Timing'],
  created: [...writeHeaders, 'Location'],
  updated: writeHeaders,
  options: [...countedWithToken, 'Allow'],
  document: [...documentNotModified, 'Content-Encoding'],
  documentNotModified,
} as const satisfies Readonly<Record<string, readonly string[]>>;

export type SuccessKind = keyof typeof successHeaders;

/** Components that describe a header in another case than the component of its name. */
export const headerOf: Readonly<Record<string, string>> = {
  NegotiatedVary: 'Vary',
  RateLimitWithToken: 'RateLimit',
  RateLimitPolicyWithToken: 'RateLimit-Policy',
  DocumentETag: 'ETag',
  WrittenETag: 'ETag',
};

/** Lets a later component replace an earlier one of the same header. */
export function makeHeaders(names: readonly string[]): ApiResponse['headers'] {
  const all = [...everywhere, ...names];
  return Object.fromEntries(all.map((name) => [headerOf[name] ?? name, makeRef('headers', name)]));
}

type ErrorRow = readonly [codes: readonly ProblemCode[], headers?: readonly string[]];

/** Codes that share one status, and headers. */
const errors = {
  BadRequest: [['invalid_request', 'if_match_invalid'], countedWithToken],
  BadWrite: [
    ['invalid_request', 'malformed_json', 'idempotency_key_missing', 'idempotency_key_invalid', 'if_match_invalid'],
    [...countedWithToken, 'Dry-Run'],
  ],
  BadPublicRequest: [['invalid_request'], countedWithToken],
  Unauthorized: [['token_missing', 'token_invalid'], ['WWW-Authenticate']],
  Forbidden: [['insufficient_scope'], [...counted, 'WWW-Authenticate']],
  NotFound: [['not_found'], [...counted, 'Dry-Run']],
  NoSuchPath: [['not_found'], countedWithToken],
  MethodNotAllowed: [['method_not_allowed'], [...countedWithToken, 'Allow']],
  NotAcceptable: [['not_acceptable'], counted],
  PublicNotAcceptable: [['not_acceptable'], countedWithToken],
  RequestTimeout: [['request_timeout'], countedWithToken],
  Conflict: [['idempotency_in_progress'], [...counted, 'Retry-After']],
  SyncExpired: [['sync_expired'], counted],
  PreconditionFailed: [['precondition_failed'], [...counted, 'ETag', 'Data-As-Of', 'Dry-Run']],
  PayloadTooLarge: [['payload_too_large'], countedWithToken],
  UriTooLong: [['uri_too_long'], countedWithToken],
  UnsupportedMediaType: [['unsupported_media_type'], [...counted, 'Accept-Encoding', 'Accept-Patch']],
  ExpectationFailed: [['expectation_failed'], countedWithToken],
  KeyReused: [['idempotency_key_reused'], counted],
  PreconditionRequired: [['precondition_required'], [...counted, 'Dry-Run']],
  TooManyRequests: [['rate_limited'], [...countedWithToken, 'Retry-After']],
  HeadersTooLarge: [['headers_too_large'], countedWithToken],
  NotImplemented: [['not_implemented'], countedWithToken],
  InternalError: [['internal'], [...countedWithToken, 'Dry-Run']],
  ReadTimeout: [['query_timeout'], countedWithToken],
  ReadUnavailable: [
    ['replica_unavailable', 'overloaded'],
    [...countedWithToken, 'Retry-After'],
  ],
  WriteUnavailable: [
    ['replica_unavailable', 'primary_unavailable', 'overloaded'],
    [...countedWithToken, 'Retry-After', 'Dry-Run'],
  ],
  PublicUnavailable: [['overloaded'], [...countedWithToken, 'Retry-After']],
} as const satisfies Readonly<Record<string, ErrorRow>>;

export type ErrorName = keyof typeof errors;

type ErrorNames = readonly ErrorName[];
const tooLarge: ErrorNames = ['PayloadTooLarge', 'UriTooLong', 'HeadersTooLarge'];
const ofAny: ErrorNames = [...tooLarge, 'RequestTimeout', 'ExpectationFailed', 'NotImplemented', 'InternalError'];
const ofToken: ErrorNames = ['Unauthorized', 'NotAcceptable', 'TooManyRequests', ...ofAny];
const ofAddress: ErrorNames = ['TooManyRequests', ...ofAny, 'PublicUnavailable'];
const ofKey: ErrorNames = ['Conflict', 'KeyReused'];
const list: ErrorNames = ['BadRequest', 'Forbidden', ...ofToken, 'ReadUnavailable', 'ReadTimeout'];
const create: ErrorNames = ['BadWrite', 'UnsupportedMediaType', 'Forbidden', ...ofToken, ...ofKey, 'WriteUnavailable'];

/** Errors of an operation by its kind. The lists before it group the errors by their cause, such as the token or the Idempotency-Key. */
const errorSets = {
  token: ['BadRequest', ...ofToken, 'ReadUnavailable'],
  list,
  detail: [...list, 'NotFound'],
  sync: [...list, 'SyncExpired'],
  create,
  update: [...create, 'NotFound', 'PreconditionFailed', 'PreconditionRequired'],
  public: ['BadPublicRequest', 'PublicNotAcceptable', ...ofAddress],
  other: ['BadPublicRequest', 'NoSuchPath', 'MethodNotAllowed', ...ofAddress],
} as const satisfies Readonly<Record<string, ErrorNames>>;

export type ErrorSet = keyof typeof errorSets;

export function makeErrors(set: ErrorSet): Responses {
  return Object.fromEntries(errorSets[set].map((name) => [getErrorStatus(errors[name]), makeRef('responses', name)]));
}

export function makeErrorResponses(): Record<string, ApiResponse> {
  return mapValues<ErrorRow, ApiResponse>(errors, makeErrorResponse);
}

function makeErrorResponse([codes, headers = []]: ErrorRow): ApiResponse {
  const rows = codes.map((code) => ({ code, type: getProblemType(code), ...problems[code] }));
  const properties = {
    type: { type: 'string', enum: rows.map(({ type }) => type) },
    title: { type: 'string', enum: rows.map(({ title }) => title) },
    status: { type: 'integer', enum: [...new Set(rows.map(({ status }) => status))] },
    detail: { type: 'string' },
    code: { type: 'string', enum: codes },
  };
  const [{ type, title, status, code }] = rows as [(typeof rows)[number]];
  const example = { type, title, status, detail: `${title}.`, code, requestId: '0b1d6f0e-7f5c-4b7e-9d5f-1f0c8f1f5d0a' };
  const schema = { type: 'object', allOf: [makeRef('schemas', 'Problem')], properties };
  return {
    description: rows.map((row) => `\`${row.code}\`: ${row.title}.`).join(' '),
    headers: makeHeaders(headers),
    content: { 'application/problem+json': { schema, example } },
  };
}

function getErrorStatus([codes]: ErrorRow): number {
  const [status, ...others] = new Set(codes.map((code) => problems[code].status));
  if (status === undefined || others.length > 0) throw new Error(`${codes.join(', ')} do not have the same status.`);
  return status;
}
