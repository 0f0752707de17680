import { problems, type ShedBound, shedBounds, unfitSqlStates } from './errors.js';

interface EventRow<E> {
  readonly level: 'silent' | 'debug' | 'info' | 'warn' | 'error';
  readonly metrics?: readonly EventMetric<E>[];
  /** Members that make a kind, which is logged once a minute; absent: each event is logged. */
  readonly repeats?: readonly (keyof E)[];
}

/** A counter, or a histogram of `seconds`. An event whose label is null is not counted. */
export interface EventMetric<E> {
  /** Without the prefix `gateway_` and the suffix `_total`. */
  readonly name: string;
  readonly help: string;
  /** By member; known values count from 0 on. */
  readonly labels?: Readonly<Partial<Record<keyof E, readonly string[] | null>>> | undefined;
  readonly seconds?: (event: E) => number;
  readonly amount?: (event: E) => number;
}

interface RequestFinished {
  requestId: string;
  method: string;
  route: string;
  status: number;
  code: string | null;
  durationMs: number;
  complete: boolean;
  tokenId: string | null;
  tokenRefused?: string;
  workspace: string | null;
  /** Of a list that was sent whole; null for other responses. */
  rows: number | null;
  perPage: number | null;
  bytes: number;
  address?: string;
}

/** Without a stack, which would be the same for each request. */
interface DatabaseUnfit {
  requestId: string;
  route: string;
  code: string;
  /** View, column, function or constraint; null if PostgreSQL names none. */
  object: string | null;
  correction: string;
}

interface WorkerDied {
  /** `pid` is the process that writes the line. */
  workerPid: number;
  code: number | null;
  signal: string | null;
  silent: boolean;
  restartMs: number;
}

export interface UnfitServer {
  readonly server: string;
  readonly item: string;
  readonly detail: string;
}

export interface RefusedResource extends UnfitServer {
  readonly resource: string;
  readonly use: 'read' | 'write';
  readonly advice: string;
}

const limitNames = ['token', 'write', 'address', 'refused_token', 'public'] as const;

export type LimitName = (typeof limitNames)[number];

const codes = Object.keys(problems);

const decodeLabels = { resource: null, pointer: null, reason: null };

const event = <E = object>(level: EventRow<E>['level'], more: Omit<EventRow<E>, 'level'> = {}): EventRow<E> => ({
  level,
  ...more,
});

const counter = <E>(name: string, help: string, labels?: EventMetric<E>['labels']): readonly EventMetric<E>[] => [
  { name, help, labels },
];

/** Without personal data and tokens; log, metrics and docs/reference/metrics-and-events.md follow it. */
export const events = {
  started: event<{ url: string; opsUrl: string }>('info'),
  stopping: event('info'),
  named_statements_off: event('warn'),
  request_finished: event<RequestFinished>('info', {
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
  }),
  request_failed: event<{ requestId: string; error: Error }>('error'),
  value_refused: event<{ requestId: string; error: Error }>('info'),
  database_unfit: event<DatabaseUnfit>('error', {
    repeats: ['route', 'code', 'object'],
    metrics: counter(
      'database_unfit',
      'Requests answered 500 because the database does not fit the gateway, by SQLSTATE.',
      { code: unfitSqlStates },
    ),
  }),
  upkeep_failed: event<{ statement: string; code: string; correction: string }>('error', {
    repeats: ['statement', 'code'],
    metrics: counter(
      'upkeep_failures',
      'Statements of the gateway itself that the primary refuses, by name and SQLSTATE.',
      { statement: null, code: unfitSqlStates },
    ),
  }),
  crashed: event<{ error: Error }>('error'),
  worker_died: event<WorkerDied>('error', {
    metrics: counter('worker_restarts', 'Workers that died or were frozen, and were replaced.'),
  }),
  reloaded: event<{ workers: number }>('info'),
  reload_refused: event<{ reason: string }>('error'),
  log_line_dropped: event('silent', {
    metrics: counter('log_lines_dropped', 'Log lines dropped because stdout is not read, or too slowly.'),
  }),
  log_resumed: event<{ lines: number }>('warn'),
  page_resumed: event<{ resource: string; replica: string }>('warn', {
    repeats: ['resource', 'replica'],
    metrics: counter('pages_resumed', 'Times a page was continued after its replica failed it.', { resource: null }),
  }),
  page_broken: event<{ requestId: string; reason: string }>('warn', {
    repeats: ['reason'],
    metrics: counter('pages_broken', 'Pages that could not be finished; the connection was destroyed.'),
  }),
  decode_failed: event<{ resource: string; row: string; pointer: string; reason: string }>('warn', {
    repeats: ['resource', 'pointer', 'reason'],
    metrics: counter('decode_errors', 'Stored values that could not be decoded.', decodeLabels),
  }),
  limit_hit: event<{ limit: LimitName }>('info', {
    repeats: ['limit'],
    metrics: counter('limit_hits', 'Requests answered 429.', { limit: limitNames }),
  }),
  request_shed: event<{ bound: ShedBound; route: string; workspace: string | null }>('warn', {
    repeats: ['bound', 'workspace'],
    metrics: counter('requests_shed', 'Requests answered 503 overloaded, by the bound they met.', {
      bound: shedBounds,
    }),
  }),
  client_too_slow: event('warn', {
    repeats: [],
    metrics: counter('slow_clients', 'Connections destroyed because the client stopped reading its response.'),
  }),
  replica_admitted: event<{ replica: string }>('info'),
  replica_ejected: event<{ replica: string; reason: string }>('warn', {
    metrics: counter('replica_ejections', 'Times a replica was ejected.', { replica: null }),
  }),
  primary_among_replicas: event<{ replica: string }>('info'),
  replica_failed: event<{ replica: string; code: string }>('warn', {
    repeats: ['replica', 'code'],
    metrics: counter('replica_failures', 'Statements that failed on a replica.', { replica: null, code: null }),
  }),
  primary_failed: event<{ code: string }>('warn', {
    repeats: ['code'],
    metrics: counter('primary_failures', 'Transactions that failed on the primary, and were retried or answered 503.', {
      code: null,
    }),
  }),
  resource_refused: event<RefusedResource>('error', {
    metrics: counter('resource_refusals', 'Times a resource was refused because the database no longer fits.', {
      resource: null,
      use: ['read', 'write'],
    }),
  }),
  resource_admitted: event<Pick<RefusedResource, 'resource' | 'use'>>('info'),
  resource_locked: event<{ resource: string; server: string }>('warn', {
    metrics: counter('resource_locks', 'Times a lock was found that holds a resource.', { resource: null }),
  }),
  resource_unlocked: event<{ resource: string; server: string; seconds: number }>('info'),
  look_failed: event<{ server: string; reason: string }>('warn', {
    repeats: ['server', 'reason'],
    metrics: counter(
      'looks_failed',
      'Times the checks that go on while the gateway serves could not be made, by server.',
      { server: null },
    ),
  }),
  server_unfit: event<UnfitServer>('warn'),
  primary_changed: event<{ server: string }>('warn', {
    metrics: counter('primary_changes', 'Times another server of PRIMARY_URLS became the primary.'),
  }),
  primary_read: event('debug', {
    metrics: counter('primary_reads', 'Reads the primary served because no replica had replayed the last write.'),
  }),
  write_finished: event<{ outcome: string }>('debug', {
    metrics: counter('writes', 'Writes by outcome: created, updated, replayed, or the code of the problem.', {
      outcome: ['created', 'updated', 'replayed', ...codes],
    }),
  }),
  redis_away: event<{ reason: string }>('warn'),
  redis_back: event('info'),
  redis_failed: event('warn', {
    repeats: [],
    metrics: counter('redis_failures', 'Times Redis did not answer and the local share of the limits took over.'),
  }),
};

type Members<Row> = Row extends EventRow<infer E> ? Readonly<E> : never;

export type Event = {
  [T in keyof typeof events]: { readonly type: T } & Members<(typeof events)[T]>;
}[keyof typeof events];

/** Never throws. */
export type Observe = (event: Event) => void;
