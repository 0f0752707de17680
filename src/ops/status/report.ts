import { problems } from '../../errors.js';
import { apiVersion } from '../../http/render.js';
import type { Readiness } from '../readiness.js';
import { type Fault, faultsOf, type ReplicaStatus, type WorkersStatus } from './faults.js';
import { type Counts, countBetween, countsBetween, quantileSeconds, type Sample, totalOf } from './sample.js';

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
  /** The last ten minutes, the oldest first; each point has the traffic since the one before. */
  readonly history: readonly HistoryPoint[];
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

export interface HistoryPoint extends Traffic {
  readonly secondsAgo: number;
  /** By replica; lacks those of which the lag was not known. */
  readonly lagSeconds: Readonly<Record<string, number>>;
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

const minuteMs = 60_000;
export const historyMs = 10 * minuteMs;

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
    history: samples.slice(1).map((sample, i) => ({
      secondsAgo: rounded((now.tickMs - sample.tickMs) / 1000),
      ...trafficBetween(samples[i] as Sample, sample),
      lagSeconds: Object.fromEntries([...sample.lagSeconds].map(([name, lag]) => [name, rounded(lag)])),
    })),
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
