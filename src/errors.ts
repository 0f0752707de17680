/**
 * Every error a client can see: code → HTTP status and title (RFC 9457 problem details). The one table; OpenAPI and the
 * docs are held to it by a test.
 */
export const problems = {
  invalid_request: { status: 400, title: 'The request is not valid' },
  malformed_json: { status: 400, title: 'The body is not valid JSON' },
  idempotency_key_missing: { status: 400, title: 'The Idempotency-Key header is missing' },
  idempotency_key_invalid: { status: 400, title: 'The Idempotency-Key header is not valid' },
  if_match_invalid: { status: 400, title: 'The If-Match header is not valid' },
  token_missing: { status: 401, title: 'An access token is required' },
  token_invalid: { status: 401, title: 'The access token is not valid' },
  insufficient_scope: { status: 403, title: 'The access token lacks the scope' },
  not_found: { status: 404, title: 'Not found' },
  method_not_allowed: { status: 405, title: 'Method not allowed' },
  not_acceptable: { status: 406, title: 'Only application/json can be produced' },
  request_timeout: { status: 408, title: 'The request did not arrive in time' },
  idempotency_in_progress: { status: 409, title: 'A request with this Idempotency-Key is still running' },
  precondition_failed: { status: 412, title: 'The precondition does not hold' },
  payload_too_large: { status: 413, title: 'The body is too large' },
  uri_too_long: { status: 414, title: 'The request target is too long' },
  unsupported_media_type: { status: 415, title: 'The media type of the body is not supported' },
  expectation_failed: { status: 417, title: 'The expectation cannot be met' },
  idempotency_key_reused: { status: 422, title: 'The Idempotency-Key was used for another request' },
  precondition_required: { status: 428, title: 'An If-Match header is required' },
  rate_limited: { status: 429, title: 'Too many requests' },
  headers_too_large: { status: 431, title: 'The request header is too large' },
  internal: { status: 500, title: 'Internal error' },
  replica_unavailable: { status: 503, title: 'No read replica can answer now' },
  primary_unavailable: { status: 503, title: 'The primary cannot take writes now' },
  overloaded: { status: 503, title: 'The gateway is at its limits' },
} as const satisfies Record<string, { status: number; title: string }>;

/** A code of the table above. */
export type ProblemCode = keyof typeof problems;

/** One fault among several: where it is, what it is. */
export type FieldError = ({ pointer: string } | { parameter: string } | { header: string }) & {
  code: string;
  detail: string;
};

/** An outcome other than success, thrown anywhere and rendered in one place (http/render). `headers` ride on it. */
export class Problem extends Error {
  readonly code: ProblemCode;
  readonly fieldErrors: readonly FieldError[];
  readonly headers: Readonly<Record<string, string>>;

  constructor(
    code: ProblemCode,
    detail: string,
    extra: { faults?: readonly FieldError[]; headers?: Record<string, string> } = {},
  ) {
    super(detail);
    this.name = 'Problem';
    this.code = code;
    this.fieldErrors = extra.faults ?? [];
    this.headers = extra.headers ?? {};
  }
}

/** 400 with every fault listed; the detail counts them. */
export function invalid(faults: readonly FieldError[], code: ProblemCode = 'invalid_request'): Problem {
  const detail =
    faults.length === 1 ? (faults[0] as FieldError).detail : `${faults.length} things are wrong; see errors.`;
  return new Problem(code, detail, { faults });
}

/** 404 of a record: unknown, malformed and another workspace's id look the same. */
export function notFound(): Problem {
  return new Problem('not_found', 'There is no such record.');
}

/** Why the gateway does not start; every reason is listed. */
export class StartRefused extends Error {}

/** What an error from PostgreSQL or its connection means for the statement that met it. */
export type DatabaseErrorKind = 'retry' | 'timeout' | 'bug';

/**
 * SQLSTATE (PostgreSQL Appendix A), by code or by class, → meaning. Errors without a SQLSTATE come from the connection
 * and mean 'retry'. A read is repeated elsewhere on 'retry'; everything not listed is a bug of ours.
 */
const sqlStates: Readonly<Record<string, DatabaseErrorKind>> = {
  '08': 'retry', // connection exceptions
  '40': 'retry', // serialization failure: on a standby, a conflict with recovery
  '53': 'retry', // insufficient resources: too many connections, disk full
  '57014': 'timeout', // query_canceled: statement_timeout
  '57': 'retry', // operator intervention: shutdown, terminated, starting up
  '58': 'retry', // system errors: I/O
  XX: 'retry', // internal errors, such as a cache lookup that met DDL
  '25006': 'retry', // read-only: the primary has become a standby
  '25P03': 'retry', // idle_in_transaction_session_timeout: we were too busy to go on
  '26000': 'retry', // a prepared statement that is not there: PgBouncer gave us another server connection
  '0A000': 'retry', // "cached plan must not change result type": DDL under a prepared statement
  '55006': 'retry',
  '55P03': 'retry', // lock_timeout
  '23503': 'retry', // foreign key: what a statement before saw is gone; the next run says so properly
};

/** Meaning of an error thrown by pg. */
export function databaseErrorKind(error: unknown): DatabaseErrorKind {
  const code = (error as { code?: unknown }).code;
  if (typeof code !== 'string' || !/^[0-9A-Z]{5}$/.test(code)) return error instanceof TypeError ? 'bug' : 'retry';
  return sqlStates[code] ?? sqlStates[code.slice(0, 2)] ?? 'bug';
}
