import { problems } from '../errors.js';
import { apiVersion } from '../http/render.js';
import type { MetricValues } from './metrics.js';
import type { Readiness } from './readiness.js';

const minuteMs = 60_000;

/** The status of a gateway, or of all workers of a parent; its counts are those of the last ten minutes. */
export interface Status {
  /** Begins to count. */
  start(): Promise<void>;
  report(): Promise<StatusReport>;
  close(): void;
}

/** A sample has about 130 numbers and costs 1 ms; the history takes 1 MB. */
const everyMs = 5000;
const historyMs = 10 * minuteMs;

/** `values` has the current values of the named metrics. */
export function statusOf(values: (names: readonly string[]) => Promise<MetricValues>, sources: StatusSources): Status {
  let kept: readonly Sample[] = [];
  let timer: NodeJS.Timeout | undefined;
  const samples = async () => recent([...kept, sampleOf(await values(sampledMetrics), performance.now())]);
  const keep = async (): Promise<void> => {
    kept = await samples();
  };
  return {
    start: async () => {
      await keep();
      timer = setInterval(() => void keep().catch(() => undefined), everyMs).unref();
    },
    report: async () => statusReport(await samples(), sources),
    close: () => clearInterval(timer),
  };
}

/** The samples of the ten minutes before the last one. */
export function recent(samples: readonly Sample[]): readonly Sample[] {
  const { tickMs: nowMs } = samples.at(-1) as Sample;
  return samples.filter(({ tickMs }) => tickMs >= nowMs - historyMs);
}

/** Body of /status.json. Counts of nothing but 0 in the last ten minutes are left out. */
export interface StatusReport {
  readonly at: string;
  readonly version: string;
  /** `failing` while reads or writes fail, `degraded` while something else is wrong. */
  readonly level: 'well' | Fault['level'];
  /** One sentence. */
  readonly summary: string;
  readonly faults: readonly Fault[];
  /** Over the last minute. */
  readonly traffic: Traffic;
  readonly replicas: readonly ReplicaStatus[];
  /** A replica with a larger lag is not used; with more than a third of it, it is lagging. */
  readonly lagSecondsMax: number;
  readonly primary: Readiness['primary'];
  readonly redis: Readiness['redis'];
  /** Null without workers. */
  readonly workers: WorkersStatus | null;
  /** Problems answered, by code. */
  readonly errors: readonly (Count & { readonly status: number })[];
  /** Requests answered 429, by limit. */
  readonly limitHits: readonly Count[];
  /** Requests answered 503 overloaded, by bound. */
  readonly shed: readonly Count[];
  /** Writes by outcome: created, updated, replayed, or the code of the problem. */
  readonly writes: readonly Count[];
}

/** The quantiles are null without requests. */
interface Traffic {
  readonly requestsPerSecond: number;
  readonly rowsPerSecond: number;
  readonly bytesPerSecond: number;
  readonly p50Seconds: number | null;
  readonly p99Seconds: number | null;
  /** At its end. */
  readonly requestsInFlight: number;
}

interface Count {
  readonly name: string;
  readonly lastMinute: number;
  readonly lastTenMinutes: number;
}

interface ReplicaStatus {
  readonly name: string;
  /** `lagging`: used, and near the lag from which on it is not. `primary`: a server of REPLICA_URLS that is no replica now, and no fault. */
  readonly state: 'used' | 'lagging' | 'not used' | 'primary';
  readonly reason: string | null;
  readonly lagSeconds: number | null;
  /** Time since the moment up to which its data is known to be current. */
  readonly dataAgeSeconds: number | null;
}

interface WorkersStatus {
  readonly configured: number;
  /** Those that report to their parent. */
  readonly reporting: number;
}

/** The parts of a gateway, or of the parent of workers, that its status tells of beside the metrics. */
export interface StatusSources {
  readonly readiness: () => Readiness;
  readonly workers: () => WorkersStatus | null;
  readonly lagMaxMs: number;
}

/** `samples` are in the order of time; the last one is of now. */
export function statusReport(samples: readonly Sample[], sources: StatusSources): StatusReport {
  const now = samples.at(-1) as Sample;
  const since = (minutes: number): Sample =>
    samples.find(({ tickMs }) => tickMs >= now.tickMs - minutes * minuteMs) as Sample;
  const [minute, five, ten] = [1, 5, 10].map((minutes) => countsBetween(since(minutes), now)) as [
    Counts,
    Counts,
    Counts,
  ];
  const [readiness, workers] = [sources.readiness(), sources.workers()];
  const lagSecondsMax = sources.lagMaxMs / 1000;
  const replicas = replicasOf(readiness, now, lagSecondsMax / 3);
  const faults = faultsOf({ readiness, replicas, workers, lagSecondsMax }, { minute, five });
  const listed = (name: keyof Counts): Count[] =>
    [...ten[name]]
      .filter(([, count]) => count > 0)
      .map(([key, count]) => ({ name: key, lastMinute: minute[name].get(key) ?? 0, lastTenMinutes: count }));
  return {
    at: new Date().toISOString(),
    version: apiVersion,
    level: faults.find(({ level }) => level === 'failing')?.level ?? faults[0]?.level ?? 'well',
    summary: faults.length > 1 ? `${faults.length} things are wrong.` : (faults[0]?.sentence ?? 'All is well.'),
    faults,
    traffic: trafficOf(minute, (now.tickMs - since(1).tickMs) / 1000, now.inFlight),
    replicas,
    lagSecondsMax,
    primary: readiness.primary,
    redis: readiness.redis,
    workers,
    errors: listed('errors').map((row) => ({ status: problems[row.name as keyof typeof problems].status, ...row })),
    limitHits: listed('limitHits'),
    shed: listed('shed'),
    writes: listed('writes'),
  };
}

function trafficOf({ durations, rows, bytes }: Counts, seconds: number, requestsInFlight: number): Traffic {
  const perSecond = (count: number): number => rounded(count / Math.max(seconds, 0.001));
  return {
    requestsPerSecond: perSecond(durations.get('+Inf') ?? 0),
    rowsPerSecond: perSecond(totalOf(rows)),
    bytesPerSecond: perSecond(totalOf(bytes)),
    p50Seconds: roundedOrNull(quantileSeconds(durations, 0.5)),
    p99Seconds: roundedOrNull(quantileSeconds(durations, 0.99)),
    requestsInFlight,
  };
}

/** The primary among the replicas is the server that is not healthy and of which the metrics say nothing. */
function replicasOf({ replicas }: Readiness, sample: Sample, laggingSeconds: number): ReplicaStatus[] {
  return replicas.map(({ name, healthy, reason }) => {
    const lagSeconds = roundedOrNull(sample.lagSeconds.get(name));
    const isLagging = (lagSeconds ?? 0) > laggingSeconds;
    const state = healthy ? (isLagging ? 'lagging' : 'used') : sample.healthy.has(name) ? 'not used' : 'primary';
    return { name, state, reason, lagSeconds, dataAgeSeconds: roundedOrNull(sample.ageSeconds.get(name)) };
  });
}

/** Three significant digits. */
const rounded = (value: number): number => Number(value.toPrecision(3));
const roundedOrNull = (value: number | null | undefined): number | null => (value == null ? null : rounded(value));

/** Counters of the status: a metric, and the labels by which it is split. The histogram is split by its bounds in seconds. */
const counters = {
  durations: ['gateway_request_seconds', 'le'],
  rows: ['gateway_rows_total'],
  bytes: ['gateway_response_bytes_total'],
  errors: ['gateway_problems_total', 'code'],
  limitHits: ['gateway_limit_hits_total', 'limit'],
  shed: ['gateway_requests_shed_total', 'bound'],
  writes: ['gateway_writes_total', 'outcome'],
  decodeErrors: ['gateway_decode_errors_total', 'resource', 'pointer', 'reason'],
  decryptMismatches: ['gateway_decrypt_mismatches_total'],
  brokenPages: ['gateway_pages_broken_total'],
  workerRestarts: ['gateway_worker_restarts_total'],
} as const satisfies Record<string, readonly [metric: string, ...labels: string[]]>;

const gauges = {
  healthy: 'gateway_replica_healthy',
  lagSeconds: 'gateway_replica_lag_seconds',
  ageSeconds: 'gateway_data_age_seconds',
  inFlight: 'gateway_requests_in_flight',
} as const;

type CounterName = keyof typeof counters;

/** Counts by the values of their labels, joined by a space; without labels the key is empty. */
type Counts = Readonly<Record<CounterName, ReadonlyMap<string, number>>>;

/** The metrics of the status at one moment. A map by replica lacks those of which the value is not known. */
export interface Sample {
  /** By performance.now(), which no change of the clock moves. */
  readonly tickMs: number;
  readonly counts: Counts;
  readonly inFlight: number;
  readonly healthy: ReadonlyMap<string, number>;
  readonly lagSeconds: ReadonlyMap<string, number>;
  readonly ageSeconds: ReadonlyMap<string, number>;
}

/** Names of the metrics that a sample needs. */
export const sampledMetrics: readonly string[] = [
  ...Object.values(counters).map(([metric]) => metric),
  ...Object.values(gauges),
];

export function sampleOf(values: MetricValues, tickMs: number): Sample {
  const sums = (metric: string, labels: readonly string[]): Map<string, number> => {
    const sum = new Map<string, number>();
    for (const { labels: of, value } of values.find(({ name }) => name === metric)?.values ?? []) {
      if (labels.some((label) => of[label] === undefined)) continue; // sum and count of a histogram have no bound
      const key = labels.map((label) => of[label]).join(' ');
      sum.set(key, (sum.get(key) ?? 0) + value);
    }
    return sum;
  };
  return {
    tickMs,
    counts: mapCounts((name) => sums(counters[name][0], counters[name].slice(1))),
    inFlight: sums(gauges.inFlight, []).get('') ?? 0,
    healthy: sums(gauges.healthy, ['replica']),
    lagSeconds: sums(gauges.lagSeconds, ['replica']),
    ageSeconds: sums(gauges.ageSeconds, ['replica']),
  };
}

/** Counts of the time between two samples. A count that has fallen, because a worker died, counts as 0. */
export function countsBetween({ counts: before }: Sample, { counts: after }: Sample): Counts {
  return mapCounts(
    (name) => new Map([...after[name]].map(([key, count]) => [key, Math.max(0, count - (before[name].get(key) ?? 0))])),
  );
}

function mapCounts(map: (name: CounterName) => ReadonlyMap<string, number>): Counts {
  return Object.fromEntries(Object.keys(counters).map((name) => [name, map(name as CounterName)])) as unknown as Counts;
}

export const totalOf = (counts: ReadonlyMap<string, number>): number =>
  [...counts.values()].reduce((sum, count) => sum + count, 0);

/**
 * The duration that the fraction `q` of all requests did not exceed, by linear interpolation within its bucket as Prometheus'
 * histogram_quantile() does it; null without requests, and the largest bound for a duration beyond it.
 */
export function quantileSeconds(durations: ReadonlyMap<string, number>, q: number): number | null {
  const requests = durations.get('+Inf') ?? 0;
  if (requests === 0) return null;
  let [lower, below] = [0, 0];
  for (const [bound, count] of durations) {
    if (bound === '+Inf') return lower;
    if (count >= q * requests) return lower + ((Number(bound) - lower) * (q * requests - below)) / (count - below);
    [lower, below] = [Number(bound), count];
  }
  return lower;
}

/** Something that is wrong, as a sentence. */
interface Fault {
  /** `failing` while reads or writes fail. */
  readonly level: 'degraded' | 'failing';
  readonly sentence: string;
}

interface State {
  readonly readiness: Readiness;
  readonly replicas: readonly ReplicaStatus[];
  readonly workers: WorkersStatus | null;
  readonly lagSecondsMax: number;
}

type Level = Fault['level'];

/** Age of the newest data at which it is old, as in the alert GatewayDataOld. */
const ageSecondsMax = 60;

const when = (isWrong: boolean, sentence: string): string[] => (isWrong ? [sentence] : []);

/** Faults of the state of the gateway and its servers. */
const stateFaults: readonly (readonly [Level, (state: State) => readonly string[]])[] = [
  [
    'failing',
    ({ readiness: { reasons } }) => [
      ...when(reasons.includes('no worker'), 'No worker reports: requests are not answered.'),
      ...when(reasons.includes('no healthy replica'), 'Reads fail: no replica can be used.'),
      ...when(reasons.includes('stopping'), 'The gateway is stopping.'),
    ],
  ],
  [
    'failing',
    ({ readiness: { primary } }) =>
      when(primary?.healthy === false, `Writes fail: the primary cannot be used: ${primary?.reason}.`),
  ],
  [
    'degraded',
    ({ replicas, lagSecondsMax }) =>
      replicas.flatMap(({ name, state, reason, lagSeconds }) => {
        const lag = lagSeconds === null ? '' : duration(lagSeconds);
        return [
          ...when(state === 'not used', `${name} is not used: ${reason}${lag && `; its lag is ${lag}`}.`),
          ...when(
            state === 'lagging',
            `${name} lags ${lag} behind the primary; beyond ${duration(lagSecondsMax)} it is not used.`,
          ),
        ];
      }),
  ],
  [
    'degraded',
    ({ readiness: { primary }, replicas }) => {
      if (primary === null) return []; // without a primary an idle database cannot be told from a late one
      const used = replicas.filter(({ state }) => state === 'used' || state === 'lagging');
      const newest = Math.min(...used.map(({ dataAgeSeconds }) => dataAgeSeconds ?? Number.POSITIVE_INFINITY));
      return when(
        Number.isFinite(newest) && newest > ageSecondsMax,
        `The newest data is ${duration(newest)} old: replay stands still, or the primary is away.`,
      );
    },
  ],
  [
    'degraded',
    ({ readiness: { redis } }) =>
      when(redis?.healthy === false, `Redis is away: ${redis?.reason}. Each gateway enforces its share of the limits.`),
  ],
  [
    'degraded',
    ({ readiness: { unfit } }) =>
      unfit.map(({ server, item, detail }) => `At the start ${server} did not fit: ${item}: ${detail}`),
  ],
  [
    'degraded',
    ({ workers }) => {
      const { configured, reporting } = workers ?? { configured: 0, reporting: 0 };
      return when(reporting > 0 && reporting < configured, `Only ${reporting} of ${configured} workers report.`);
    },
  ],
];

interface CountFault {
  readonly level: Level;
  readonly of: 'minute' | 'five';
  readonly counter: CounterName;
  /** The keys of the counter; absent: all. */
  readonly key?: RegExp;
  /** More than so many are a fault; default: 0. */
  readonly above?: number;
  readonly sentence: (number: number, keys: readonly string[]) => string;
}

/** Faults by counters. They follow the alert rules in deploy/prometheus, without their delay. */
const countFaults: readonly CountFault[] = [
  ...['replica_unavailable', 'primary_unavailable'].map(
    (code): CountFault => ({
      level: 'failing',
      of: 'minute',
      counter: 'errors',
      key: new RegExp(code),
      sentence: (n) => `${count(n, 'request')} of the last minute failed: 503 ${code}.`,
    }),
  ),
  {
    level: 'failing',
    of: 'five',
    counter: 'errors',
    key: /internal/,
    sentence: (n) =>
      `${count(n, 'request')} of the last 5 minutes failed: 500 internal; the log has request_failed with the stack, or database_unfit with the correction.`,
  },
  {
    level: 'degraded',
    of: 'five',
    counter: 'workerRestarts',
    sentence: (n) => `${count(n, 'worker')} died in the last 5 minutes, see worker_died in the log.`,
  },
  {
    level: 'degraded',
    of: 'minute',
    counter: 'errors',
    key: /overloaded/,
    above: 60,
    sentence: (n) => `Overloaded: ${count(n, 'request')} of the last minute got 503.`,
  },
  {
    level: 'degraded',
    of: 'minute',
    counter: 'limitHits',
    key: /address/,
    above: 60,
    sentence: () =>
      'A client tries tokens, or repeats a refused token: more than 60 refusals by address in the last minute.',
  },
  {
    level: 'degraded',
    of: 'five',
    counter: 'brokenPages',
    sentence: (n) => `${count(n, 'page')} of the last 5 minutes broke off before the end.`,
  },
  {
    level: 'degraded',
    of: 'five',
    counter: 'decodeErrors',
    key: /unknown_key|bad_tag/,
    sentence: (n, keys) => {
      const more = keys.length > 3 ? ` and ${keys.length - 3} more` : '';
      return `Stored values did not decode ${count(n, 'time')} in the last 5 minutes: ${keys.slice(0, 3).join(', ')}${more}.`;
    },
  },
  {
    level: 'degraded',
    of: 'five',
    counter: 'decryptMismatches',
    sentence: () =>
      'The batched decryption refused a value that node:crypto opened: set DECRYPT=native, and report it.',
  },
];

/** Everything that is wrong, the worst first. */
function faultsOf(state: State, counts: Readonly<Record<CountFault['of'], Counts>>): Fault[] {
  const faults = [
    ...stateFaults.flatMap(([level, sentences]) => sentences(state).map((sentence) => ({ level, sentence }))),
    ...countFaults.flatMap(({ level, of, counter, key = /^/, above = 0, sentence }) => {
      const counted = [...counts[of][counter]].filter(([name, n]) => n > 0 && key.test(name));
      const total = totalOf(new Map(counted));
      return total > above ? [{ level, sentence: sentence(total, counted.map(([name]) => name)) }] : []; // biome-ignore format: one line
    }),
  ];
  return faults.sort((a, b) => Number(b.level === 'failing') - Number(a.level === 'failing'));
}

/** `1 request`, `2 requests`. */
function count(number: number, noun: string): string {
  return `${number.toLocaleString('en')} ${noun}${number === 1 ? '' : 's'}`;
}

const units = [
  ['d', 86_400],
  ['h', 3600],
  ['min', 60],
  ['s', 1],
  ['ms', 0.001],
] as const;

/** In the largest unit of which there is at least one, with three digits. */
export function duration(seconds: number): string {
  const [name, size] = units.find((unit) => seconds >= unit[1]) ?? (['ms', 0.001] as const);
  return `${(seconds / size).toLocaleString('en', { maximumSignificantDigits: 3 })} ${name}`;
}
