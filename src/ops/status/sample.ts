import type { MetricValues } from '../metrics.js';

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
export function countBetween(name: CounterName, earlier: Sample, later: Sample): ReadonlyMap<string, number> {
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
