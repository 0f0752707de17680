import { setTimeout as sleep } from 'node:timers/promises';
import { databaseErrorKind, Problem, StatementEnded } from '../base/errors.js';
import type { Observe } from '../base/events.js';
import { errorCode, isOfOlderConnection } from './connection.js';
import type { ConnectionPool } from './connection-pool.js';
import type { Replica, ReplicaState } from './replica.js';
import type { Lsn } from './wal-position.js';

// Which server answers a read? `choose` picks a replica that meets its requirement, and `withServer` runs the read there and repeats it: on
// another replica, or on the primary when no replica shows the workspace's last write.

/** The servers of reads. */
export interface Servers {
  readonly replicas: readonly Replica[];
  readonly observe: Observe;
  /** The primary for one of the few reads for which no replica is current enough; null when there is none to spare. */
  readonly primary?: () => ReadTarget | null;
  /** How long a read waits for a replica to replay the workspace's last write, before the primary is asked. */
  readonly freshnessWaitMs?: number;
  /** How long a page that has begun looks for a replica, and a read waits for one as current as the page before. */
  readonly resumeMs?: number;
}

/** A server that can answer a read: a replica, or the primary. */
export interface ReadTarget {
  readonly name: string;
  readonly short: ConnectionPool;
  readonly long: ConnectionPool;
  readonly state: { readonly asOfMs: number | null; readonly healthy: boolean };
  /** Replaces every connection; statements in flight end on the old connections. */
  renew(): void;
  /** Takes the primary out of the choice for a while. */
  rest?(ms: number): void;
}

/** Requirement of a read on the replica that answers it. */
export interface Requirement {
  /** The server of the page's first rows, which this read continues: a page that changed its replica with each chunk would fail with any of them. */
  readonly ofPage?: object;
  /** The view that is read: a replica on which it could not be checked is left out. */
  readonly view?: string;
  /** The replica must have replayed this position. */
  readonly replayed?: Lsn;
  /** The replica must be known to be current up to this moment, epoch milliseconds. */
  readonly asOfMs?: number | null;
  /** It must show the workspace's last write, and the primary may answer instead of it. */
  readonly showsWrite?: boolean;
  /** The read cannot be answered by the primary, because its progress is marked by positions of replay. */
  readonly replicasOnly?: boolean;
  /** How long to search for a usable replica after the first failure. Absent: two retries. */
  readonly resumeMs?: number;
}

/** One attempt to read, on one server. */
export interface Attempt {
  readonly target: ReadTarget;
  /** The moment up to which the server was known to be current before it was asked, epoch milliseconds. */
  readonly asOfMs: number | null;
  /** Failed attempts before this one. */
  readonly failures: number;
  readonly requirement: Requirement;
  /** The target; null: it is the primary. */
  readonly replica: Replica | null;
}

/** The part of a replica that the choice goes by. */
export interface Candidate {
  readonly state: ReplicaState;
  readonly inFlight: number;
  mayRead(view: string): boolean;
}

/** Beyond any number of statements in flight. */
const failedRank = 1e9;

/**
 * Returns the healthy replica that meets the requirement with the fewest statements in flight, of equals the one of the page, else
 * one at random, and one that failed this read only where no other is left; null when there is none.
 */
export function choose<R extends Candidate>(
  replicas: readonly R[],
  requirement: Requirement,
  failed?: ReadonlySet<Candidate>,
): R | null {
  let best: R | null = null;
  let bestRank = Number.POSITIVE_INFINITY;
  let equals = 0;
  for (const replica of replicas) {
    const { healthy, replayed, asOfMs } = replica.state;
    if (!healthy || (requirement.view !== undefined && !replica.mayRead(requirement.view))) continue;
    if (requirement.replayed !== undefined && replayed < requirement.replayed) continue;
    if (requirement.asOfMs != null && (asOfMs ?? 0) < requirement.asOfMs) continue;
    const hasFailed = failed?.has(replica) ?? false;
    const rank = Number(hasFailed) * failedRank + 2 * replica.inFlight + Number(replica !== requirement.ofPage);
    if (rank > bestRank) continue;
    equals = rank === bestRank ? equals + 1 : 1;
    bestRank = rank;
    if (Math.random() * equals < 1) best = replica;
  }
  return best;
}

/** Attempts of a read before its first byte: a vacuum can conflict with it on two replicas at once. With more replicas each gets one, and one gets another. */
const attemptsMax = 3;

/** SQLSTATEs of a prepared statement that DDL made stale, or that is missing: a new connection helps, another replica does not. */
const planIsStale: ReadonlySet<string> = new Set(['0A000', '26000']);

/** Pause between two searches for a server, and after a failure of the primary, whose few reads all workspaces share. */
const pauseMs = 20;
const primaryPauseMs = 100;

/**
 * Runs `work` on a replica that meets the requirement of the moment, and repeats it when the replica fails: twice, or for the continuation of
 * a page until `resumeMs` have passed. Each probe asks for the position before the read: in one statement both would see the older snapshot.
 * The state of `work` belongs to one attempt. Throws `replica_unavailable`, and `late()` for a statement that takes too long.
 */
export async function withServer<T>(
  servers: Servers,
  required: () => Requirement,
  work: (attempt: Attempt) => Promise<T>,
  late: () => Problem = unavailable,
): Promise<T> {
  const search = newSearch();
  for (;;) {
    const attempt = await nextServer(servers, required, search);
    try {
      return await work(attempt);
    } catch (error) {
      await endAttempt(servers, search, attempt, error, late);
    }
  }
}

/** The search of one read for a server: what failed, how many of the failures were cancelled statements, and when the first wait or failure began. */
const newSearch = () => ({
  ...{ failed: new Set<Replica>(), failures: 0, cancelled: 0, renewals: 0 },
  obstacleMs: null as number | null,
});
type Search = ReturnType<typeof newSearch>;

/** Waits for a server. Throws replica_unavailable after a wait that is long enough. */
async function nextServer(servers: Servers, required: () => Requirement, search: Search): Promise<Attempt> {
  const { replicas } = servers;
  for (;;) {
    const requirement = required();
    let replica = choose(replicas, requirement, search.failed);
    if (replica !== null && search.failed.has(replica)) {
      await Promise.all([replica.probe(), requirement.resumeMs === undefined ? undefined : sleep(pauseMs)]); // its backend may be dead, its server alive
      replica = choose(replicas, requirement, search.failed);
    }
    const waitedMs = search.obstacleMs === null ? 0 : performance.now() - search.obstacleMs;
    const target = replica ?? primaryOrWait(servers, requirement, waitedMs);
    if (target !== null)
      return { target, replica, asOfMs: target.state.asOfMs, failures: search.failures, requirement };
    const probes = replicas.filter(({ state }) => state.healthy).map((each) => each.probe(waitedMs && pauseMs));
    await Promise.race([sleep(pauseMs), ...(waitedMs === 0 ? probes : [])]); // mostly one probe is enough
    search.obstacleMs ??= performance.now();
  }
}

/** Returns where the read can be repeated, else throws what it is answered. */
async function endAttempt(
  { replicas, observe }: Servers,
  search: Search,
  { target, replica, requirement: { resumeMs } }: Attempt,
  error: unknown,
  late: () => Problem,
): Promise<void> {
  const kind = error instanceof Problem ? 'permanent' : databaseErrorKind(error);
  if (kind === 'permanent') throw error;
  const code = errorCode(error);
  if (replica !== null) observe({ type: 'replica_failed', replica: replica.name, code });
  if (kind === 'timeout') await replica?.probe(); // a frozen server is a fault of its own
  if (kind === 'timeout' && target.state.healthy) throw late();
  if (planIsStale.has(code)) {
    target.renew();
    if (search.renewals++ < replicas.length) return;
  }
  if (!isOfOlderConnection(error, search.obstacleMs ?? 0)) search.failures++;
  if (error instanceof StatementEnded) search.cancelled++;
  search.obstacleMs ??= performance.now();
  const isLast =
    resumeMs === undefined
      ? search.failures >= Math.max(attemptsMax, replicas.length + 1)
      : performance.now() - search.obstacleMs >= resumeMs;
  if (isLast) throw search.cancelled === search.failures ? late() : unavailable();
  if (replica !== null) {
    search.failed.add(replica);
    void replica.probe(pauseMs); // so that a dead replica is out before other reads choose it
  } else {
    target.rest?.(primaryPauseMs);
    await sleep(primaryPauseMs + pauseMs);
  }
}

/** The primary for a read that no replica can answer, or null: it waits. Throws replica_unavailable after a wait that is long enough. */
function primaryOrWait(
  { replicas, primary, freshnessWaitMs = 0, resumeMs = 0 }: Servers,
  requirement: Requirement,
  waitedMs: number,
): ReadTarget | null {
  const hasHealthyReplica = choose(replicas, {}) !== null;
  const { showsWrite = false, replicasOnly = false } = requirement;
  if (hasHealthyReplica && showsWrite && !replicasOnly && waitedMs >= freshnessWaitMs) {
    const target = primary?.() ?? null;
    if (target !== null) return target;
  }
  const waitMaxMs = !hasHealthyReplica ? 0 : showsWrite ? freshnessWaitMs : resumeMs;
  if (waitedMs < Math.max(waitMaxMs, requirement.resumeMs ?? 0)) return null;
  if (!hasHealthyReplica) throw unavailable();
  if (!showsWrite) throw unavailable('No replica is as current as the page before yet; try again.');
  const detail = 'No replica has caught up with your last write yet, and the primary serves only a few reads.';
  throw unavailable(detail, { 'Retry-After': '1' });
}

/** The primary as the server of so many reads in each second of the clock, while it answers. It is always current. */
export function primaryReads(
  pool: ConnectionPool,
  isReachable: () => boolean,
  readsPerSecond: number,
  observe: Observe,
): () => ReadTarget | null {
  let restsUntilMs = 0;
  const target: ReadTarget = {
    name: 'primary',
    short: pool,
    long: pool,
    get state() {
      return { asOfMs: Date.now(), healthy: true };
    },
    renew: () => pool.renew(),
    rest: (ms) => {
      restsUntilMs = performance.now() + ms;
    },
  };
  let [second, used] = [0, 0];
  return () => {
    const nowMs = performance.now();
    const now = Math.floor(nowMs / 1000);
    if (now !== second) [second, used] = [now, 0];
    if (!isReachable() || nowMs < restsUntilMs || used >= readsPerSecond) return null;
    used++;
    observe({ type: 'primary_read' });
    return target;
  };
}

/** 503; without another Retry-After it is about the time that a readmission takes. */
export function unavailable(
  detail = 'No read replica can answer now; try again.',
  headers?: Readonly<Record<string, string>>,
): Problem {
  return new Problem('replica_unavailable', detail, headers && { headers });
}
