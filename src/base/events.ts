import { type ProblemCode, problems, type ShedBound, shedBounds } from './errors.js';

/** SQLSTATEs that functions of the gateway raise; the whole table is in postgres/database-errors.ts. */
type GatewaySqlState = `WG${string}`;

/** The remedy of a fault. A new connection has not prepared the statement; a client can send other values, or ask for less. */
export type Help = 'repeat' | 'new connection' | 'other server' | 'ask the operator' | 'ask the client';

interface EventRow<E> {
  readonly level: 'silent' | 'debug' | 'info' | 'warn' | 'error';
  readonly metrics?: readonly EventMetric<E>[];
  /** Events that are alike in these members are logged once a minute; absent: each event is logged. */
  readonly repeats?: readonly (keyof E)[];
  /** The status shows the fault for a minute. An event with codes has a table: code → fault. */
  readonly faults?: EventFault<E> | Readonly<Partial<Record<ProblemCode | GatewaySqlState, EventFault<E>>>>;
}

/** The row of the remedy is in docs/operate/troubleshooting.md. */
export interface EventFault<E> {
  readonly level: 'failing' | 'degraded';
  readonly remedy: string;
  /** Names the route, resource or server of the fault. Absent: all events are one fault. */
  readonly about?: (event: E) => string;
  readonly sentence: (about: string, count: number, workspaces: string) => string;
}

/** The metric is a counter, or a histogram of `seconds`. An event whose label is null is not counted. */
export interface EventMetric<E> {
  /** The metric's name without the prefix `gateway_` and the suffix `_total`. */
  readonly name: string;
  readonly help: string;
  /** The values of a label, each of which counts from 0 on; null: its values are not known here. */
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
  /** Null for a response that is no list sent whole. */
  rows: number | null;
  perPage: number | null;
  bytes: number;
  address?: string;
}

/** The log leaves out the stack, which would be the same for each request. */
interface DatabaseUnfit {
  requestId: string;
  route: string;
  code: string;
  /** Name of a view, column, function or constraint; null if PostgreSQL names none. */
  object: string | null;
  correction: string;
}

interface WorkerDied {
  /** Differs from `pid`, which is the process that writes the line. */
  workerPid: number;
  code: number | null;
  signal: string | null;
  silent: boolean;
  restartMs: number;
}

export interface ServerStatus {
  readonly healthy: boolean;
  readonly reason: string | null;
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

/** Reasons to refuse a token that worked: a row is missing. */
export const tokenLosses = {
  'no owner': "the token's user or workspace is gone, or may have no tokens",
  unknown: 'the token itself is gone',
} as const;

const codes = Object.keys(problems);

const decodeLabels = { resource: null, pointer: null, reason: null };

const define = <E = object>(level: EventRow<E>['level'], more: Omit<EventRow<E>, 'level'> = {}): EventRow<E> => ({
  level,
  ...more,
});

const countAs = <E>(name: string, help: string, labels?: EventMetric<E>['labels']): readonly EventMetric<E>[] => [
  { name, help, labels },
];

const countNoun = (count: number, noun: string, were = ''): string =>
  `${count} ${noun}${count === 1 ? '' : 's'}${were && (count === 1 ? ' was' : ' were')}`;

const defineAnswered = (level: 'failing' | 'degraded', remedy: string, what: string): EventFault<RequestFinished> => ({
  level,
  remedy,
  about: ({ method, route }) => `${method} ${route}`,
  sentence: (about, count) => `${countNoun(count, 'request', 'were')} answered ${what}: ${about}`,
});

/** No event has personal data or tokens; log, status, metrics and docs/reference/metrics-and-events.md follow this table. */
export const events = {
  /** The limit of open files is below what the settings allow. */
  descriptors_few: define<{ max: number; needed: number }>('warn'),
  started: define<{ url: string; opsUrl: string }>('info'),
  stopping: define('info'),
  named_statements_off: define('warn'),
  request_finished: define<RequestFinished>('info', {
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
    faults: {
      internal: defineAnswered('failing', 'internal', '500 internal'),
      replica_unavailable: defineAnswered('failing', 'reads-refused', '503 replica_unavailable'),
      primary_unavailable: defineAnswered('failing', 'writes-refused', '503 primary_unavailable'),
      query_timeout: defineAnswered('failing', 'too-slow', '504 query_timeout'),
      overloaded: defineAnswered('degraded', 'overloaded', '503 overloaded'),
    },
  }),
  request_failed: define<{ requestId: string; error: Error }>('error'),
  ops_failed: define<{ path: string; error: Error }>('error', { repeats: ['path'] }),
  value_refused: define<{ requestId: string; error: Error }>('info'),
  database_unfit: define<DatabaseUnfit>('error', {
    repeats: ['route', 'code', 'object'],
    metrics: countAs(
      'database_unfit',
      'Requests answered 500 because the database does not fit the gateway, by SQLSTATE.',
      { code: null },
    ),
    faults: {
      level: 'failing',
      remedy: 'database-unfit',
      about: ({ correction, code }) => `${correction.replace(/\.$/, '')} (${code})`,
      sentence: (about, count) => `the database refused ${countNoun(count, 'statement')}: ${about}`,
    },
  }),
  upkeep_failed: define<{ statement: string; code: string; correction: string }>('error', {
    repeats: ['statement', 'code'],
    metrics: countAs(
      'upkeep_failures',
      'Statements of the gateway itself that the primary refuses, by name and SQLSTATE.',
      { statement: null, code: null },
    ),
    faults: {
      level: 'degraded',
      remedy: 'upkeep',
      about: ({ statement, code }) => `${statement} (${code})`,
      sentence: (about, count) => `the primary refused ${about}: ${countNoun(count, 'time')}`,
    },
  }),
  reads_unregistered: define<{ requests: number }>('error', {
    metrics: [
      {
        name: 'reads_unregistered',
        help: 'Requests that the register of reads had no room for, because the primary was away for long.',
        amount: ({ requests }) => requests,
      },
    ],
  }),
  crashed: define<{ error: Error }>('error'),
  worker_died: define<WorkerDied>('error', {
    metrics: countAs('worker_restarts', 'Workers that died or were frozen, and were replaced.'),
  }),
  worker_refused: define<{ reason: string }>('error'),
  reloaded: define<{ workers: number }>('info'),
  reload_refused: define<{ reason: string }>('error'),
  log_line_dropped: define('silent', {
    metrics: countAs('log_lines_dropped', 'Log lines dropped because stdout is not read, or too slowly.'),
    faults: {
      level: 'degraded',
      remedy: 'lacks-log',
      sentence: (_, count) => `${countNoun(count, 'line', 'were')} lost from the log: stdout is not read`,
    },
  }),
  log_resumed: define<{ lines: number }>('warn'),
  page_resumed: define<{ resource: string; replica: string }>('warn', {
    repeats: ['resource', 'replica'],
    metrics: countAs('pages_resumed', 'Times a page was continued after its replica failed it.', { resource: null }),
  }),
  page_broken: define<{ requestId: string; reason: string }>('warn', {
    repeats: ['reason'],
    metrics: countAs('pages_broken', 'Pages that could not be finished; the connection was destroyed.'),
    faults: {
      level: 'degraded',
      remedy: 'pages-break',
      about: ({ reason }) => reason,
      sentence: (about, count) => `${countNoun(count, 'page')} broke: ${about}`,
    },
  }),
  /** An `error` is one of our own code; the log leaves out its message, which can quote the value. */
  decode_failed: define<{ resource: string; row: string; pointer: string; reason: string; error?: Error }>('warn', {
    repeats: ['resource', 'pointer', 'reason'],
    metrics: countAs('decode_errors', 'Stored values that could not be decoded.', decodeLabels),
    faults: {
      level: 'degraded',
      remedy: 'undecodable',
      about: ({ resource, pointer, reason }) => `${resource} ${pointer} (${reason})`,
      sentence: (about, count) => `${countNoun(count, 'value')} could not be decoded: ${about}`,
    },
  }),
  known_token_refused: define<{ reason: keyof typeof tokenLosses; workspace: string }>('error', {
    repeats: ['reason'],
    metrics: countAs(
      'known_tokens_refused',
      'Requests answered 401 whose token worked in the last ten minutes, and is neither revoked nor expired.',
      { reason: Object.keys(tokenLosses) },
    ),
    faults: {
      level: 'failing',
      remedy: 'tokens-refused',
      about: ({ reason }) => tokenLosses[reason],
      sentence: (about, count, workspaces) =>
        `${countNoun(count, 'request', 'were')} answered 401 though the token worked in the last ten minutes: ${about}, of ${workspaces}`,
    },
  }),
  limit_hit: define<{ limit: LimitName }>('info', {
    repeats: ['limit'],
    metrics: countAs('limit_hits', 'Requests answered 429.', { limit: limitNames }),
  }),
  request_shed: define<{ bound: ShedBound; route: string; workspace: string | null }>('warn', {
    repeats: ['bound', 'workspace'],
    metrics: countAs('requests_shed', 'Requests answered 503 overloaded, by the bound they met.', {
      bound: shedBounds,
    }),
  }),
  client_refused: define<{ max: number }>('warn', {
    repeats: ['max'],
    metrics: countAs('clients_refused', 'Connections of clients that were closed at once, because too many are open.'),
    faults: {
      level: 'degraded',
      remedy: 'lacks-descriptors',
      about: ({ max }) => String(max),
      sentence: (max, count) =>
        `${countNoun(count, 'connection', 'were')} closed at once, because clients hold ${max} already`,
    },
  }),
  client_too_slow: define('warn', {
    repeats: [],
    metrics: countAs('slow_clients', 'Connections destroyed because the client stopped reading its response.'),
  }),
  replica_admitted: define<{ replica: string }>('info'),
  replica_ejected: define<{ replica: string; reason: string }>('warn', {
    metrics: countAs('replica_ejections', 'Times a replica was ejected.', { replica: null }),
  }),
  primary_among_replicas: define<{ replica: string }>('info'),
  replica_failed: define<{ replica: string; code: string; helps: Help }>('warn', {
    repeats: ['replica', 'code'],
    metrics: countAs('replica_failures', 'Statements that failed on a replica.', { replica: null, code: null }),
    faults: {
      WG006: {
        level: 'failing',
        remedy: 'wall-key',
        about: ({ replica }) => replica,
        sentence: (about, count) =>
          `the wall refused the WALL_KEY of this gateway ${countNoun(count, 'time')}: ${about}`,
      },
    },
  }),
  primary_failed: define<{ code: string; obstacle?: string }>('warn', {
    repeats: ['code'],
    metrics: countAs('primary_failures', 'Transactions that failed on the primary, and were retried or answered 503.', {
      code: null,
    }),
  }),
  catalog_changed: define<{ replica: string }>('info'),
  resource_refused: define<RefusedResource>('error', {
    metrics: countAs('resource_refusals', 'Times a resource was refused because the database no longer fits.', {
      resource: null,
      use: ['read', 'write'],
    }),
  }),
  resource_admitted: define<Pick<RefusedResource, 'resource' | 'use'>>('info'),
  resource_locked: define<{ resource: string; server: string }>('warn', {
    metrics: countAs('resource_locks', 'Times a lock was found that holds a resource.', { resource: null }),
  }),
  resource_unlocked: define<{ resource: string; server: string; seconds: number }>('info'),
  look_failed: define<{ server: string; reason: string }>('warn', {
    repeats: ['server', 'reason'],
    metrics: countAs(
      'looks_failed',
      'Times the checks that go on while the gateway serves could not be made, by server.',
      { server: null },
    ),
    faults: {
      level: 'degraded',
      remedy: 'looks-fail',
      about: ({ server }) => server,
      sentence: (about) => `${about} could not be asked whether it still fits`,
    },
  }),
  server_unfit: define<UnfitServer>('warn'),
  primary_changed: define<{ server: string }>('warn', {
    metrics: countAs('primary_changes', 'Times another server of PRIMARY_URLS became the primary.'),
  }),
  primary_read: define('debug', {
    metrics: countAs(
      'primary_reads',
      'Reads that the primary served: no replica had replayed the last write, or none could look a token up.',
    ),
  }),
  write_finished: define<{ outcome: string }>('debug', {
    metrics: countAs('writes', 'Writes by outcome: created, updated, replayed, dry_run, or the code of the problem.', {
      outcome: ['created', 'updated', 'replayed', 'dry_run', ...codes],
    }),
  }),
  redis_away: define<{ reason: string }>('warn'),
  redis_back: define('info'),
  redis_failed: define('warn', {
    repeats: [],
    metrics: countAs('redis_failures', 'Times Redis did not answer and the local share of the limits took over.'),
  }),
};

type EventMembers<Row> = Row extends EventRow<infer E> ? Readonly<E> : never;

export type Event = {
  [T in keyof typeof events]: { readonly type: T } & EventMembers<(typeof events)[T]>;
}[keyof typeof events];

/** Never throws. */
export type Observe = (event: Event) => void;
