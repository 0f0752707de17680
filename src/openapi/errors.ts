import { type ProblemCode, problems } from '../errors.js';
import { type ApiResponse, component, type Responses } from './document.js';
import { headersOf, type RateLimited } from './headers.js';
import { narrowedProblem, problemExample } from './problem.js';

interface ErrorResponse {
  readonly codes: readonly ProblemCode[];
  readonly rate: RateLimited;
  readonly headers?: readonly string[];
}

/** Every error response by component name. The status comes from the table of problems. */
const errorResponses = {
  BadRequest: { codes: ['invalid_request', 'if_match_invalid'], rate: 'whenAuthenticated' },
  BadWrite: {
    codes: [
      'invalid_request',
      'malformed_json',
      'idempotency_key_missing',
      'idempotency_key_invalid',
      'if_match_invalid',
    ],
    rate: 'whenAuthenticated',
  },
  BadPublicRequest: { codes: ['invalid_request'], rate: 'never' },
  Unauthorized: { codes: ['token_missing', 'token_invalid'], rate: 'never', headers: ['WWW-Authenticate'] },
  Forbidden: { codes: ['insufficient_scope'], rate: 'always', headers: ['WWW-Authenticate'] },
  NotFound: { codes: ['not_found'], rate: 'always' },
  NoSuchPath: { codes: ['not_found'], rate: 'never' },
  MethodNotAllowed: { codes: ['method_not_allowed'], rate: 'never', headers: ['Allow'] },
  NotAcceptable: { codes: ['not_acceptable'], rate: 'always' },
  PublicNotAcceptable: { codes: ['not_acceptable'], rate: 'never' },
  RequestTimeout: { codes: ['request_timeout'], rate: 'whenAuthenticated' },
  Conflict: { codes: ['idempotency_in_progress'], rate: 'always', headers: ['Retry-After'] },
  PreconditionFailed: { codes: ['precondition_failed'], rate: 'always', headers: ['ETag', 'ReadMoment'] },
  PayloadTooLarge: { codes: ['payload_too_large'], rate: 'whenAuthenticated' },
  UriTooLong: { codes: ['uri_too_long'], rate: 'whenAuthenticated' },
  UnsupportedMediaType: {
    codes: ['unsupported_media_type'],
    rate: 'always',
    headers: ['Accept-Encoding', 'Accept-Patch'],
  },
  ExpectationFailed: { codes: ['expectation_failed'], rate: 'whenAuthenticated' },
  KeyReused: { codes: ['idempotency_key_reused'], rate: 'always' },
  PreconditionRequired: { codes: ['precondition_required'], rate: 'always' },
  TooManyRequests: { codes: ['rate_limited'], rate: 'whenAuthenticated', headers: ['Retry-After'] },
  HeadersTooLarge: { codes: ['headers_too_large'], rate: 'whenAuthenticated' },
  InternalError: { codes: ['internal'], rate: 'whenAuthenticated' },
  ReadUnavailable: {
    codes: ['replica_unavailable', 'overloaded'],
    rate: 'whenAuthenticated',
    headers: ['Retry-After'],
  },
  WriteUnavailable: {
    codes: ['replica_unavailable', 'primary_unavailable', 'overloaded'],
    rate: 'whenAuthenticated',
    headers: ['Retry-After'],
  },
  PublicUnavailable: { codes: ['overloaded'], rate: 'never', headers: ['Retry-After'] },
} as const satisfies Record<string, ErrorResponse>;

type ErrorName = keyof typeof errorResponses;

/** What HTTP itself can refuse, on any path. */
const transport = [
  'PayloadTooLarge',
  'RequestTimeout',
  'UriTooLong',
  'ExpectationFailed',
  'HeadersTooLarge',
  'InternalError',
] as const;
const authenticated = ['Unauthorized', 'Forbidden', 'NotAcceptable', 'TooManyRequests', ...transport] as const;
const list = ['BadRequest', ...authenticated, 'ReadUnavailable'] as const;
const write = [
  'BadWrite',
  ...authenticated,
  'Conflict',
  'UnsupportedMediaType',
  'KeyReused',
  'WriteUnavailable',
] as const;

/** The errors of each kind of operation; `other` is what a request that fits no operation gets. */
const errorsOf = {
  list,
  detail: [...list, 'NotFound'],
  versionedDetail: [...list, 'NotFound', 'PreconditionFailed'],
  create: write,
  update: [...write, 'NotFound', 'PreconditionFailed', 'PreconditionRequired'],
  public: ['BadPublicRequest', 'PublicNotAcceptable', ...transport, 'PublicUnavailable'],
  options: ['BadPublicRequest', ...transport, 'PublicUnavailable'],
  other: ['BadPublicRequest', 'NoSuchPath', 'MethodNotAllowed', ...transport, 'PublicUnavailable'],
} as const satisfies Record<string, readonly ErrorName[]>;

/** The error responses of a kind of operation, by status, ascending. */
export function errorReferences(kind: keyof typeof errorsOf): Responses {
  return Object.fromEntries(errorsOf[kind].map((name) => [String(statusOf(name)), component('responses', name)]));
}

/** All error responses as components. */
export function errorComponents(): Record<string, ApiResponse> {
  return Object.fromEntries(Object.keys(errorResponses).map((name) => [name, errorResponse(name as ErrorName)]));
}

function errorResponse(name: ErrorName): ApiResponse {
  const { codes, rate, headers }: ErrorResponse = errorResponses[name];
  const code = codes[0] as ProblemCode;
  return {
    description: codes.map((each) => `\`${each}\`: ${problems[each].title}.`).join(' '),
    headers: headersOf(rate, headers),
    content: { 'application/problem+json': { schema: narrowedProblem(codes), example: problemExample(code) } },
  };
}

function statusOf(name: ErrorName): number {
  const [code, ...others] = errorResponses[name].codes as readonly ProblemCode[];
  const { status } = problems[code as ProblemCode];
  if (others.some((other) => problems[other].status !== status))
    throw new Error(`The codes of ${name} differ in status.`);
  return status;
}
