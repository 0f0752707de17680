import { problems, unfitSqlStates } from './errors.js';

/** Every event of a gateway, without personal data and tokens. The log (ops/log) and the metrics (ops/metrics) consume them by the table below. */
export type Event =
  | {
      readonly type: 'request_finished';
      readonly requestId: string;
      readonly method: string;
      readonly route: string;
      readonly status: number;
      readonly code: string | null;
      readonly durationMs: number;
      readonly complete: boolean;
      readonly tokenId: string | null;
      readonly workspace: string | null;
      /** Rows of a list that was sent whole, and the page size; null for other responses. */
      readonly rows: number | null;
      readonly perPage: number | null;
      /** Bytes written to the client's connection, head of the response included. */
      readonly bytes: number;
      /** The client's address; absent unless the operator wants it logged. */
      readonly address?: string;
    }
  | { readonly type: 'request_failed'; readonly requestId: string; readonly error: Error }
  | { readonly type: 'value_refused'; readonly requestId: string; readonly error: Error }
  | {
      readonly type: 'database_unfit';
      readonly requestId: string;
      readonly code: string;
      readonly correction: string;
      readonly error: Error;
    }
  | { readonly type: 'upkeep_failed'; readonly statement: string; readonly code: string; readonly correction: string }
  | { readonly type: 'page_broken'; readonly requestId: string; readonly reason: string }
  | { readonly type: 'page_resumed'; readonly resource: string; readonly replica: string }
  | {
      readonly type: 'decode_failed';
      readonly resource: string;
      readonly row: string;
      readonly pointer: string;
      readonly reason: string;
    }
  | { readonly type: 'decrypt_mismatch'; readonly table: string; readonly column: string; readonly row: string }
  | { readonly type: 'limit_hit'; readonly limit: LimitName }
  | { readonly type: 'request_shed'; readonly bound: ShedBound }
  | { readonly type: 'client_too_slow' }
  | { readonly type: 'replica_admitted'; readonly replica: string }
  | { readonly type: 'replica_ejected'; readonly replica: string; readonly reason: string }
  | { readonly type: 'primary_among_replicas'; readonly replica: string }
  | { readonly type: 'replica_failed'; readonly replica: string; readonly code: string }
  | { readonly type: 'primary_failed'; readonly code: string }
  | ({ readonly type: 'server_unfit' } & UnfitServer)
  | { readonly type: 'primary_changed'; readonly server: string }
  | { readonly type: 'redis_failed' }
  | { readonly type: 'redis_away'; readonly reason: string }
  | { readonly type: 'redis_back' }
  | { readonly type: 'primary_read' }
  | { readonly type: 'write_finished'; readonly outcome: string }
  | {
      readonly type: 'worker_died';
      /** Beside `pid`, which each line of the log has for the process that writes it. */
      readonly workerPid: number;
      readonly code: number | null;
      readonly signal: string | null;
      /** It was killed because it no longer reported. */
      readonly silent: boolean;
      readonly restartMs: number;
    }
  | { readonly type: 'reloaded'; readonly workers: number }
  | { readonly type: 'reload_refused'; readonly reason: string }
  | { readonly type: 'log_line_dropped' }
  | { readonly type: 'log_resumed'; readonly lines: number }
  | { readonly type: 'crashed'; readonly error: Error }
  | { readonly type: 'started'; readonly url: string; readonly opsUrl: string }
  | { readonly type: 'stopping' }
  | { readonly type: 'named_statements_off' };

/** A fault that the check of a start found, and that did not refuse it. */
export interface UnfitServer {
  readonly server: string;
  readonly item: string;
  readonly detail: string;
}

const limitNames = ['token', 'write', 'address', 'refused_token', 'public'] as const;

/** The limit at which a request was answered 429. */
export type LimitName = (typeof limitNames)[number];

const shedBounds = ['connections', 'token_look_ups', 'large_pages'] as const;

/** The bound at which a request was turned away with 503 overloaded. */
export type ShedBound = (typeof shedBounds)[number];

/** Takes an event; never throws. */
export type Observe = (event: Event) => void;

/** Row of the table: the level of the event's log line, and the metrics that the event moves. */
interface EventRow<E> {
  /** `silent`: it has no line. */
  readonly level: 'silent' | 'debug' | 'info' | 'warn' | 'error';
  readonly metrics?: readonly EventMetric<E>[];
  /** Members that make a kind of event, of which the log has one line a minute. Absent: each event has its line. */
  readonly repeats?: readonly (keyof E)[];
}

/** A counter of events, or a histogram where `seconds` is given. An event whose label is null is not counted. */
export interface EventMetric<E> {
  /** Without the prefix `gateway_`, and for counters without `_total`. */
  readonly name: string;
  readonly help: string;
  /** Each label is the member of the event with that name. Its values, if all are known beforehand: they count from 0 on. */
  readonly labels?: Readonly<Partial<Record<keyof E, readonly string[] | null>>> | undefined;
  readonly seconds?: (event: E) => number;
  /** Number that the event adds to a counter. Absent: 1. */
  readonly amount?: (event: E) => number;
}

const codes = Object.keys(problems);

/** The metrics of an event that moves one counter. */
const counter = <E>(name: string, help: string, labels?: EventMetric<E>['labels']): readonly EventMetric<E>[] => [
  { name, help, labels },
];

/** The one table of events. docs/monitoring.md is compared with it. */
export const events: { readonly [T in Event['type']]: EventRow<Extract<Event, { type: T }>> } = {
  started: { level: 'info' },
  stopping: { level: 'info' },
  named_statements_off: { level: 'warn' },
  request_finished: {
    level: 'info',
    metrics: [
      {
        name: 'request_seconds',
        help: 'Duration of requests until the last byte was handed over.',
        labels: { method: null, route: null, status: null },
        seconds: ({ durationMs }) => durationMs / 1000,
      },
      { name: 'problems', help: 'Problems answered, by code.', labels: { code: codes } },
      {
        name: 'rows',
        help: 'Rows of lists that were sent whole.',
        labels: { route: null },
        amount: ({ rows }) => rows ?? 0,
      },
      {
        name: 'response_bytes',
        help: "Bytes of responses, as written to clients' connections.",
        labels: { route: null },
        amount: ({ bytes }) => bytes,
      },
    ],
  },
  request_failed: { level: 'error' },
  value_refused: { level: 'info' },
  database_unfit: {
    level: 'error',
    metrics: counter(
      'database_unfit',
      'Requests answered 500 because the database does not fit the gateway, by SQLSTATE.',
      {
        code: unfitSqlStates,
      },
    ),
  },
  upkeep_failed: {
    level: 'error',
    repeats: ['statement', 'code'],
    metrics: counter(
      'upkeep_failures',
      'Statements of the gateway itself that the primary refuses, by name and SQLSTATE.',
      {
        statement: null,
        code: unfitSqlStates,
      },
    ),
  },
  crashed: { level: 'error' },
  worker_died: {
    level: 'error',
    metrics: counter('worker_restarts', 'Workers that died or were frozen, and were replaced.'),
  },
  reloaded: { level: 'info' },
  reload_refused: { level: 'error' },
  log_line_dropped: {
    level: 'silent',
    metrics: counter('log_lines_dropped', 'Log lines dropped because stdout is not read, or too slowly.'),
  },
  log_resumed: { level: 'warn' },
  page_resumed: {
    level: 'warn',
    repeats: ['resource', 'replica'],
    metrics: counter('pages_resumed', 'Times a page was continued after its replica failed it.', { resource: null }),
  },
  page_broken: {
    level: 'warn',
    repeats: ['reason'],
    metrics: counter('pages_broken', 'Pages that could not be finished; the connection was destroyed.'),
  },
  decode_failed: {
    level: 'warn',
    repeats: ['resource', 'pointer', 'reason'],
    metrics: counter('decode_errors', 'Stored values that could not be decoded.', {
      resource: null,
      pointer: null,
      reason: null,
    }),
  },
  decrypt_mismatch: {
    level: 'error',
    repeats: ['table', 'column'],
    metrics: counter('decrypt_mismatches', 'Cells that only node:crypto could decrypt; its value was used.'),
  },
  limit_hit: {
    level: 'info',
    repeats: ['limit'],
    metrics: counter('limit_hits', 'Requests answered 429.', { limit: limitNames }),
  },
  request_shed: {
    level: 'warn',
    repeats: ['bound'],
    metrics: counter('requests_shed', 'Requests answered 503 overloaded, by the bound they met.', {
      bound: shedBounds,
    }),
  },
  client_too_slow: {
    level: 'warn',
    repeats: [],
    metrics: counter('slow_clients', 'Connections destroyed because the client stopped reading its response.'),
  },
  replica_admitted: { level: 'info' },
  replica_ejected: {
    level: 'warn',
    metrics: counter('replica_ejections', 'Times a replica was ejected.', { replica: null }),
  },
  primary_among_replicas: { level: 'info' },
  replica_failed: {
    level: 'warn',
    repeats: ['replica', 'code'],
    metrics: counter('replica_failures', 'Statements that failed on a replica, and were retried or answered 503.', {
      replica: null,
      code: null,
    }),
  },
  primary_failed: {
    level: 'warn',
    repeats: ['code'],
    metrics: counter('primary_failures', 'Transactions that failed on the primary, and were retried or answered 503.', {
      code: null,
    }),
  },
  server_unfit: { level: 'warn' },
  primary_changed: {
    level: 'warn',
    metrics: counter('primary_changes', 'Times another server of PRIMARY_URLS became the primary.'),
  },
  primary_read: {
    level: 'debug',
    metrics: counter('primary_reads', 'Reads the primary served because no replica had replayed the last write.'),
  },
  write_finished: {
    level: 'debug',
    metrics: counter('writes', 'Writes by outcome: created, updated, replayed, or the code of the problem.', {
      outcome: ['created', 'updated', 'replayed', ...codes],
    }),
  },
  redis_away: { level: 'warn' },
  redis_back: { level: 'info' },
  redis_failed: {
    level: 'warn',
    repeats: [],
    metrics: counter('redis_failures', 'Times Redis did not answer and the local share of the limits took over.'),
  },
};
