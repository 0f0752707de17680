interface ProblemRow {
  readonly status: number;
  readonly title: string;
  readonly retryAfterSeconds?: number;
}

/** Every error a client can see (RFC 9457). OpenAPI and the docs are compared with it. */
export const problems = {
  invalid_request: { status: 400, title: 'The request is not valid' },
  malformed_json: { status: 400, title: 'The body is not valid JSON' },
  idempotency_key_missing: { status: 400, title: 'The Idempotency-Key header is missing' },
  idempotency_key_invalid: { status: 400, title: 'The Idempotency-Key header is not valid' },
  if_match_invalid: { status: 400, title: 'The If-Match header is not valid' },
  token_missing: { status: 401, title: 'An access token is required' },
  token_invalid: { status: 401, title: 'The access token is not valid' },
  insufficient_scope: { status: 403, title: 'The access token lacks a required scope' },
  not_found: { status: 404, title: 'Not found' },
  method_not_allowed: { status: 405, title: 'Method not allowed' },
  not_acceptable: { status: 406, title: 'Only application/json is available' },
  request_timeout: { status: 408, title: 'The request did not arrive in time' },
  idempotency_in_progress: {
    status: 409,
    title: 'A request with this Idempotency-Key is still running',
    retryAfterSeconds: 1,
  },
  sync_expired: { status: 410, title: 'The sync token has expired' },
  precondition_failed: { status: 412, title: 'The record has changed' },
  payload_too_large: { status: 413, title: 'The body is too large' },
  uri_too_long: { status: 414, title: 'The request target is too long' },
  unsupported_media_type: { status: 415, title: 'The media type of the body is not supported' },
  expectation_failed: { status: 417, title: 'The expectation cannot be met' },
  idempotency_key_reused: { status: 422, title: 'The Idempotency-Key was used for another request' },
  precondition_required: { status: 428, title: 'An If-Match header is required' },
  rate_limited: { status: 429, title: 'Too many requests', retryAfterSeconds: 60 },
  headers_too_large: { status: 431, title: 'The request header is too large' },
  internal: { status: 500, title: 'Internal error' },
  not_implemented: { status: 501, title: 'The transfer coding is not implemented' },
  replica_unavailable: { status: 503, title: 'No read replica can answer now', retryAfterSeconds: 2 },
  primary_unavailable: { status: 503, title: 'The primary cannot take writes now', retryAfterSeconds: 2 },
  overloaded: { status: 503, title: 'The gateway is overloaded', retryAfterSeconds: 1 },
  query_timeout: { status: 504, title: 'The read took longer than the operator allows' },
} as const satisfies Record<string, ProblemRow>;

export type ProblemCode = keyof typeof problems;

export function getProblemType(code: string): string {
  return `urn:workspace-data-api:problem:${code}`;
}

/** Each code of `errors[]` describes a fault of a parameter, header or field. */
export const fieldErrors = {
  unknown_parameter: 'the endpoint has no such parameter',
  repeated_parameter: 'the parameter is given more than once',
  conflicting_parameters: 'two parameters exclude each other',
  empty_value: 'the parameter has no value',
  invalid_encoding: 'the value is not percent-encoded UTF-8',
  invalid_integer: 'the value is not a whole number',
  invalid_boolean: 'the value is neither true nor false',
  invalid_date: 'the value is not a calendar date, YYYY-MM-DD',
  invalid_instant: 'the value is not an RFC 3339 date-time with its offset',
  range_reversed: '`from` is after `to`',
  invalid_cursor: 'the cursor is damaged, or belongs to another list',
  invalid_since: 'the sync token is damaged, or belongs to another workspace or resource',
  invalid_prefix: 'the value is not a list of prefixes of a SHA-256 in hexadecimal',
  repeated_header: 'the header is given more than once',
  invalid_host: 'the Host header is missing or malformed',
  syntax: 'the body is not JSON',
  invalid_utf8: 'the body is not UTF-8',
  too_deep: 'the body is nested too deep',
  duplicate_name: 'an object has the same name twice',
  forbidden_name: 'an object has the name `__proto__`',
  nul: 'a string holds the character NUL',
  lone_surrogate: 'a string holds half of a surrogate pair',
  lossy_number: 'a double cannot hold the number without loss',
  required: 'the field is missing',
  not_nullable: 'the field cannot be null',
  invalid_type: 'another JSON type is expected',
  invalid_format: 'the text does not have the form that the detail names',
  too_short: 'the text is too short',
  too_long: 'the text is too long',
  out_of_range: 'the number is too small or too large',
  read_only: 'the field cannot be written',
  unknown_field: 'there is no such field',
  unknown_reference: 'there is no record with this id',
  taken: 'another record has this value, or these values together, already',
  invalid: 'the value is not valid for another reason',
} as const satisfies Record<string, string>;

export type FieldErrorCode = keyof typeof fieldErrors;

export type FieldError = ({ pointer: string } | { parameter: string } | { header: string }) & {
  code: FieldErrorCode;
  detail: string;
};

export const shedBounds = ['connections', 'token_look_ups', 'large_pages'] as const;

/** The bound at which a request was refused with 503 overloaded. */
export type ShedBound = (typeof shedBounds)[number];

/** An outcome other than success, which any code can throw; serve/app.ts answers it with its `headers`. */
export class Problem extends Error {
  readonly fieldErrors: readonly FieldError[];
  readonly headers: Readonly<Record<string, string>>;
  readonly bound: ShedBound;

  /** `cause` is an error of PostgreSQL, for the log. */
  constructor(
    readonly code: ProblemCode,
    detail: string,
    extra: {
      faults?: readonly FieldError[];
      headers?: Record<string, string>;
      cause?: unknown;
      bound?: ShedBound;
    } = {},
  ) {
    super(detail, 'cause' in extra ? { cause: extra.cause } : {});
    this.name = 'Problem';
    this.fieldErrors = extra.faults ?? [];
    this.bound = extra.bound ?? 'connections';
    const { retryAfterSeconds }: ProblemRow = problems[code];
    this.headers = { ...(retryAfterSeconds && { 'Retry-After': String(retryAfterSeconds) }), ...extra.headers };
  }
}

/** Makes a 400 with every fault; `cause` is the error of PostgreSQL that showed it. */
export function makeInvalid(
  faults: readonly FieldError[],
  code: ProblemCode = 'invalid_request',
  cause?: Error,
): Problem {
  const detail =
    faults.length === 1 ? (faults[0] as FieldError).detail : `The request has ${faults.length} errors; see errors.`;
  return new Problem(code, detail, { faults, ...(cause && { cause }) });
}

/** Makes a 404 for a record: unknown, malformed and foreign ids look the same. */
export function makeNotFound(): Problem {
  return new Problem('not_found', 'There is no such record.');
}

/** /status names the fault, for the operator. */
const unfitDetail = 'The database does not fit this resource now; its operator is told. Try again.';

/** Reasons why a server cannot serve now. The usual Retry-After of a read is about the time of a readmission. */
const shortages = {
  'no replica': ['replica_unavailable', 'No read replica can answer now; try again.'],
  'page not replayed': ['replica_unavailable', 'No replica has caught up with your previous page yet; try again.'],
  'write not replayed': [
    'replica_unavailable',
    'No replica has caught up with your last write yet, and the primary serves only a few reads.',
    { 'Retry-After': '1' },
  ],
  'slow resource': ['replica_unavailable', 'The database answers too slowly for this resource now; try again.'],
  'locked resource': ['replica_unavailable', 'A change of the database holds this resource now; try again.'],
  'unfit for reads': ['replica_unavailable', unfitDetail],
  'unfit for writes': ['primary_unavailable', unfitDetail],
  'no answer': ['replica_unavailable', 'The database cannot answer now; try again.'],
  'no look-up': ['replica_unavailable', 'Tokens cannot be looked up now; try again.'],
  /** The write may have happened: the same request with the same Idempotency-Key returns its outcome. */
  'no primary': ['primary_unavailable', 'The primary cannot take writes now; try again with the same Idempotency-Key.'],
  'no connection': ['overloaded', 'No database connection became free in time.'],
  stopping: ['overloaded', 'The gateway is stopping.'],
} as const satisfies Readonly<Record<string, readonly [ProblemCode, detail: string, headers?: Record<string, string>]>>;

export class Shortage extends Problem {
  constructor(reason: keyof typeof shortages) {
    const [code, detail, headers = {}] = shortages[reason];
    super(code, detail, { headers });
  }
}

/** The gateway does not start; the message lists every reason. Exit code 1: another start can succeed. */
export class StartRefused extends Error {
  override readonly name: string = 'StartRefused';
}

/** The settings or definitions are unusable; the message names no secret. Exit code 2: another start fails too. */
export class SettingsError extends StartRefused {
  override readonly name = 'SettingsError';
}

/** The client closed the connection: its statement is cancelled. */
export class ClientGone extends Error {
  constructor() {
    super('the client closed the connection');
  }
}
