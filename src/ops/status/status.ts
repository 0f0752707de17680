import { problems } from '../../errors.js';
import { apiVersion } from '../../http/render.js';
import type { MetricValues } from '../metrics.js';
import type { Readiness } from '../readiness.js';

const minuteMs = 60_000;
const historyMs = 10 * minuteMs;

/** The status of a gateway, or of all workers of a parent; its counts are those of the last ten minutes. */
export interface Status {
  /** Begins to count. */
  start(): Promise<void>;
  report(): Promise<StatusReport>;
  close(): void;
}

/** A sample has about 130 numbers and costs 1 ms; the history takes 1 MB. */
const historyBounds = { everyMs: 5000, keptMs: historyMs };

/** `values` has the current values of the named metrics. */
export function statusOf(values: (names: readonly string[]) => Promise<MetricValues>, sources: StatusSources): Status {
  const history = new StatusHistory(
    async () => sampleOf(await values(sampledMetrics), performance.now()),
    historyBounds,
  );
  return {
    start: () => history.start(),
    report: async () => statusReport(await history.samples(), sources),
    close: () => history.close(),
  };
}

/** How often samples are taken, and for how long they are kept, milliseconds. */
export interface HistoryBounds {
  readonly everyMs: number;
  readonly keptMs: number;
}

/** Keeps a sample per interval in memory. */
export class StatusHistory {
  readonly #read: () => Promise<Sample>;
  readonly #bounds: HistoryBounds;
  readonly #kept: Sample[] = [];
  #timer: NodeJS.Timeout | undefined;
  #newest: Sample | null = null;
  #reading: Promise<Sample> | null = null;

  constructor(read: () => Promise<Sample>, bounds: HistoryBounds) {
    this.#read = read;
    this.#bounds = bounds;
  }

  /** Takes a sample now, and again every interval until closed. */
  async start(): Promise<void> {
    await this.#keep();
    this.#timer = setInterval(() => void this.#keep().catch(() => undefined), this.#bounds.everyMs).unref();
  }

  close(): void {
    clearInterval(this.#timer);
  }

  /** All samples, the oldest first; the last one is of now. */
  async samples(): Promise<readonly [Sample, ...Sample[]]> {
    const now = await this.#fresh();
    return [...this.#kept.filter(({ tickMs }) => tickMs < now.tickMs), now] as unknown as readonly [
      Sample,
      ...Sample[],
    ];
  }

  async #keep(): Promise<void> {
    const sample = await this.#fresh();
    if (sample !== this.#kept.at(-1)) this.#kept.push(sample);
    while ((this.#kept[0] as Sample).tickMs < sample.tickMs - this.#bounds.keptMs) this.#kept.shift();
  }

  /** A sample younger than a tenth of the interval is used again: many readers of the status cost no more than a few. */
  async #fresh(): Promise<Sample> {
    const freshMs = this.#bounds.everyMs / 10;
    if (this.#newest !== null && performance.now() - this.#newest.tickMs < freshMs) return this.#newest;
    this.#reading ??= this.#read().finally(() => {
      this.#reading = null;
    });
    this.#newest = await this.#reading;
    return this.#newest;
  }
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
export interface Traffic {
  readonly requestsPerSecond: number;
  readonly rowsPerSecond: number;
  readonly bytesPerSecond: number;
  readonly p50Seconds: number | null;
  readonly p99Seconds: number | null;
  /** At its end. */
  readonly requestsInFlight: number;
}

export interface Count {
  readonly name: string;
  readonly lastMinute: number;
  readonly lastTenMinutes: number;
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
  const since = (ms: number): Sample => samples.find(({ tickMs }) => tickMs >= now.tickMs - ms) as Sample;
  const minute = countsBetween(since(minuteMs), now);
  const tenMinutes = countsBetween(samples[0] as Sample, now);
  const [readiness, workers] = [sources.readiness(), sources.workers()];
  const lagSecondsMax = sources.lagMaxMs / 1000;
  const replicas = replicasOf(readiness, now, lagSecondsMax / 3);
  const fiveMinutes = countsBetween(since(5 * minuteMs), now);
  const faults = faultsOf({ readiness, replicas, workers, minute, fiveMinutes, lagSecondsMax });
  const listed = (name: keyof Counts): Count[] =>
    [...tenMinutes[name]]
      .filter(([, count]) => count > 0)
      .map(([key, count]) => ({ name: key, lastMinute: minute[name].get(key) ?? 0, lastTenMinutes: count }));
  return {
    at: new Date().toISOString(),
    version: apiVersion,
    level: faults.find(({ level }) => level === 'failing')?.level ?? faults[0]?.level ?? 'well',
    summary: summaryOf(faults),
    faults,
    traffic: trafficBetween(since(minuteMs), now),
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

function summaryOf(faults: readonly Fault[]): string {
  if (faults.length === 0) return 'All is well.';
  return faults.length === 1 ? (faults[0] as Fault).sentence : `${faults.length} things are wrong.`;
}

function trafficBetween(earlier: Sample, later: Sample): Traffic {
  const durations = countBetween('durations', earlier, later);
  const seconds = Math.max(later.tickMs - earlier.tickMs, 1) / 1000;
  const quantile = (q: number): number | null => roundedOrNull(quantileSeconds(durations, q));
  return {
    requestsPerSecond: rounded((durations.get('+Inf') ?? 0) / seconds),
    rowsPerSecond: rounded(totalOf(countBetween('rows', earlier, later)) / seconds),
    bytesPerSecond: rounded(totalOf(countBetween('bytes', earlier, later)) / seconds),
    p50Seconds: quantile(0.5),
    p99Seconds: quantile(0.99),
    requestsInFlight: later.inFlight,
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

/** Counters of the status page: a metric, and the labels by which it is split. The histogram is split by its bounds in seconds. */
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
export type Counts = Readonly<Record<CounterName, ReadonlyMap<string, number>>>;

/** The metrics of the status page at one moment. A map by replica lacks those of which the value is not known. */
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
    counts: mapCounts((_, [metric, ...labels]) => sums(metric, labels)),
    inFlight: sums(gauges.inFlight, []).get('') ?? 0,
    healthy: sums(gauges.healthy, ['replica']),
    lagSeconds: sums(gauges.lagSeconds, ['replica']),
    ageSeconds: sums(gauges.ageSeconds, ['replica']),
  };
}

/** Counts of the time between two samples. */
export function countsBetween(earlier: Sample, later: Sample): Counts {
  return mapCounts((name) => countBetween(name, earlier, later));
}

/** As countsBetween, of a single counter. A count that has fallen, because a worker died, counts as 0. */
function countBetween(name: CounterName, earlier: Sample, later: Sample): ReadonlyMap<string, number> {
  const before = earlier.counts[name];
  return new Map([...later.counts[name]].map(([key, count]) => [key, Math.max(0, count - (before.get(key) ?? 0))]));
}

function mapCounts(
  map: (name: CounterName, row: readonly [string, ...string[]]) => ReadonlyMap<string, number>,
): Counts {
  return Object.fromEntries(
    Object.entries(counters).map(([name, row]) => [name, map(name as CounterName, row)]),
  ) as unknown as Counts;
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
export interface Fault {
  /** `failing` while reads or writes fail. */
  readonly level: 'degraded' | 'failing';
  readonly sentence: string;
}

export interface ReplicaStatus {
  readonly name: string;
  /** `lagging`: used, and near the lag from which on it is not. `primary`: a server of REPLICA_URLS that is no replica now, and no fault. */
  readonly state: 'used' | 'lagging' | 'not used' | 'primary';
  readonly reason: string | null;
  readonly lagSeconds: number | null;
  /** Time since the moment up to which its data is known to be current. */
  readonly dataAgeSeconds: number | null;
}

export interface WorkersStatus {
  readonly configured: number;
  /** Those that report to their parent. */
  readonly reporting: number;
}

interface Facts {
  readonly readiness: Readiness;
  readonly replicas: readonly ReplicaStatus[];
  readonly workers: WorkersStatus | null;
  readonly lagSecondsMax: number;
  readonly minute: Counts;
  readonly fiveMinutes: Counts;
}

interface FaultRow {
  readonly level: Fault['level'];
  readonly sentences: (facts: Facts) => readonly string[];
}

/** Age of the newest data at which it is old, as in the alert GatewayDataOld. */
const ageSecondsMax = 60;
/** Refusals of a minute, as in the alerts GatewayOverloaded and GatewayTokensTried. */
const refusalsMax = 60;

const when = (isWrong: boolean, sentence: string): string[] => (isWrong ? [sentence] : []);

/** The one table of faults. Those of counters follow the alert rules in deploy/prometheus, without their delay. */
const rows: readonly FaultRow[] = [
  {
    level: 'failing',
    sentences: ({ readiness: { reasons } }) => [
      ...when(reasons.includes('no worker'), 'No worker reports: requests are not answered.'),
      ...when(reasons.includes('no healthy replica'), 'Reads fail: no replica can be used.'),
      ...when(reasons.includes('stopping'), 'The gateway is stopping.'),
    ],
  },
  {
    level: 'failing',
    sentences: ({ readiness: { primary } }) =>
      when(primary?.healthy === false, `Writes fail: the primary cannot be used: ${primary?.reason}.`),
  },
  {
    level: 'failing',
    sentences: ({ minute }) =>
      ['replica_unavailable', 'primary_unavailable'].flatMap((code) => {
        const failed = minute.errors.get(code) ?? 0;
        return when(failed > 0, `${count(failed, 'request')} of the last minute failed: 503 ${code}.`);
      }),
  },
  {
    level: 'failing',
    sentences: ({ fiveMinutes }) => {
      const failed = fiveMinutes.errors.get('internal') ?? 0;
      const cause = 'the log has request_failed with the stack, or database_unfit with the correction';
      return when(failed > 0, `${count(failed, 'request')} of the last 5 minutes failed: 500 internal; ${cause}.`);
    },
  },
  {
    level: 'degraded',
    sentences: ({ replicas }) =>
      replicas.flatMap(({ name, state, reason, lagSeconds }) => {
        const lag = lagSeconds === null ? '' : `; its lag is ${duration(lagSeconds)}`;
        return when(state === 'not used', `${name} is not used: ${reason}${lag}.`);
      }),
  },
  {
    level: 'degraded',
    sentences: ({ replicas, lagSecondsMax }) =>
      replicas.flatMap(({ name, state, lagSeconds }) => {
        const lag = `${name} lags ${duration(lagSeconds ?? 0)} behind the primary`;
        return when(state === 'lagging', `${lag}; beyond ${duration(lagSecondsMax)} it is not used.`);
      }),
  },
  {
    level: 'degraded',
    sentences: ({ readiness, replicas }) => {
      if (readiness.primary === null) return []; // without a primary an idle database cannot be told from a late one
      const ages = replicas.flatMap(({ state, dataAgeSeconds }) =>
        dataAgeSeconds !== null && /used|lagging/.test(state) ? dataAgeSeconds : [],
      );
      const newest = Math.min(...ages);
      return when(
        ages.length > 0 && newest > ageSecondsMax,
        `The newest data is ${duration(newest)} old: replay stands still, or the primary is away.`,
      );
    },
  },
  {
    level: 'degraded',
    sentences: ({ readiness: { redis } }) =>
      when(redis?.healthy === false, `Redis is away: ${redis?.reason}. Each gateway enforces its share of the limits.`),
  },
  {
    level: 'degraded',
    sentences: ({ readiness: { unfit } }) =>
      unfit.map(({ server, item, detail }) => `At the start ${server} did not fit: ${item}: ${detail}`),
  },
  {
    level: 'degraded',
    sentences: ({ workers }) => {
      const { configured, reporting } = workers ?? { configured: 0, reporting: 0 };
      return when(reporting > 0 && reporting < configured, `Only ${reporting} of ${configured} workers report.`);
    },
  },
  {
    level: 'degraded',
    sentences: ({ fiveMinutes }) => {
      const restarts = totalOf(fiveMinutes.workerRestarts);
      return when(restarts > 0, `${count(restarts, 'worker')} died in the last 5 minutes, see worker_died in the log.`);
    },
  },
  {
    level: 'degraded',
    sentences: ({ minute }) => {
      const refused = minute.errors.get('overloaded') ?? 0;
      return when(refused > refusalsMax, `Overloaded: ${count(refused, 'request')} of the last minute got 503.`);
    },
  },
  {
    level: 'degraded',
    sentences: ({ minute }) =>
      when(
        (minute.limitHits.get('address') ?? 0) > refusalsMax,
        'A client tries tokens, or repeats a refused token: more than 60 refusals by address in the last minute.',
      ),
  },
  {
    level: 'degraded',
    sentences: ({ fiveMinutes }) => {
      const broken = totalOf(fiveMinutes.brokenPages);
      return when(broken > 0, `${count(broken, 'page')} of the last 5 minutes broke off before the end.`);
    },
  },
  {
    level: 'degraded',
    sentences: ({ fiveMinutes }) => {
      const failed = [...fiveMinutes.decodeErrors].filter(([of, n]) => n > 0 && /unknown_key|bad_tag/.test(of));
      const times = count(totalOf(new Map(failed)), 'time');
      const places = failed.slice(0, 3).map(([of]) => of);
      const more = failed.length > 3 ? ` and ${failed.length - 3} more` : '';
      const sentence = `Stored values did not decode ${times} in the last 5 minutes: ${places.join(', ')}${more}.`;
      return when(failed.length > 0, sentence);
    },
  },
  {
    level: 'degraded',
    sentences: ({ fiveMinutes }) =>
      when(
        totalOf(fiveMinutes.decryptMismatches) > 0,
        'The batched decryption refused a value that node:crypto opened: set DECRYPT=native, and report it.',
      ),
  },
];

/** Everything that is wrong, the worst first. */
function faultsOf(facts: Facts): Fault[] {
  return rows.flatMap(({ level, sentences }) => sentences(facts).map((sentence) => ({ level, sentence })));
}

// Numbers as a reader of the status page takes them in at a glance.

// Not a formatter made at the import: it would load the languages, 6 MB, before any page is asked for.
const whole = (number: number): string => number.toLocaleString('en');
const short = (number: number): string => number.toLocaleString('en', { maximumSignificantDigits: 3 });

/** `1 request`, `2 requests`. */
export function count(number: number, noun: string): string {
  return `${whole(number)} ${noun}${number === 1 ? '' : 's'}`;
}

/** Numbers from 1000 on are whole; smaller ones have three digits. */
export function quantity(number: number): string {
  return number >= 1000 ? whole(Math.round(number)) : short(number);
}

/** In the largest unit of which there is at least one. */
function inUnits(number: number, units: readonly (readonly [name: string, size: number])[]): string {
  const [name, size] = units.find((unit) => number >= unit[1]) ?? (units.at(-1) as readonly [string, number]);
  return `${quantity(number / size)} ${name}`;
}

/** Milliseconds below a second are whole, except durations of less than ten of them. */
export function duration(seconds: number): string {
  return inUnits(seconds, [
    ['d', 86_400],
    ['h', 3600],
    ['min', 60],
    ['s', 1],
    ['ms', 0.001],
  ]);
}

export function bytes(number: number): string {
  return inUnits(number, [
    ['GB', 1e9],
    ['MB', 1e6],
    ['kB', 1e3],
    ['B', 1],
  ]);
}
