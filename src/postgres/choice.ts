import { setTimeout as sleep } from 'node:timers/promises';
import { Problem, Shortage } from '../base/errors.js';
import type { Observe } from '../base/events.js';
import { getErrorCode, isOfOlderConnection } from './connection.js';
import type { ConnectionPool } from './connection-pool.js';
import { getDatabaseErrorKind, getHelp, StatementEnded } from './database-errors.js';
import type { ReadableResource, Replica, ReplicaState } from './replica.js';
import type { Lsn } from './wal-position.js';

// `choose` picks a replica that meets the requirement; `runOnServer` runs the read there, and repeats it elsewhere or on the primary.

export interface Servers {
  readonly replicas: readonly Replica[];
  readonly observe: Observe;
  /** Serves the few reads for which no replica is current enough; null when the primary has no capacity to spare. */
  readonly primary?: () => ReadTarget | null;
  /** Wait for a replica to replay the workspace's last write; then the primary is asked. */
  readonly freshnessWaitMs?: number;
  /** Time limit for a begun page to find a replica, and for a read to find one as current as the page before. */
  readonly resumeMs?: number;
}

export interface ReadTarget {
  readonly name: string;
  readonly short: ConnectionPool;
  readonly long: ConnectionPool;
  readonly state: { readonly asOfMs: number | null; readonly healthy: boolean };
  renew(): void;
  pause?(ms: number): void;
}

export interface Requirement {
  /** Identifies the replica that the page began on; a page that changed it with each chunk would fail with any of them. */
  readonly ofPage?: object;
  readonly resource?: ReadableResource;
  readonly replayed?: Lsn;
  readonly asOfMs?: number | null;
  /** The answer must show the workspace's last write, and the primary may give it. */
  readonly showsWrite?: boolean;
  /** The primary answers while no replica can be used. */
  readonly orPrimary?: boolean;
  /** The read marks its progress by replay positions, which the primary lacks. */
  readonly replicasOnly?: boolean;
  /** Time limit of the search after the first failure; absent: two retries. */
  readonly resumeMs?: number;
}

export interface Attempt {
  readonly target: ReadTarget;
  /** The server's moment before it was asked, in epoch milliseconds. */
  readonly asOfMs: number | null;
  readonly failures: number;
  readonly requirement: Requirement;
  /** Null if the target is the primary. */
  readonly replica: Replica | null;
}

export interface Candidate {
  readonly state: ReplicaState;
  readonly inFlight: number;
  mayRead(resource: ReadableResource): boolean;
}

/** Ranks a failed replica behind any number of statements in flight. */
const failedRank = 1e9;

/** Prefers healthy replicas with the fewest statements in flight, then the page's replica, then chance; a failed one comes last. */
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
    if (!healthy || (requirement.resource && !replica.mayRead(requirement.resource))) continue;
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

/** A vacuum can conflict with a read on two replicas at once. More replicas get one attempt each, and one a second. */
const attemptsMax = 3;
/** Pause before the next search; a longer one follows a failure of the primary, because all its few reads share it. */
const pauseMs = 20;
const primaryPauseMs = 100;

/**
 * Repeats `work` when the replica fails: twice, or for a begun page until `resumeMs` have passed. The probe precedes the read, because in
 * one statement both see the older snapshot. `now` returns the requirement after the `first` look. Throws `replica_unavailable`, or
 * `late()` for a slow statement.
 */
export async function runOnServer<T>(
  servers: Servers,
  first: Requirement,
  work: (attempt: Attempt) => Promise<T>,
  {
    now = () => first,
    late = () => new Shortage('no replica'),
  }: { readonly now?: () => Requirement; readonly late?: () => Problem } = {},
): Promise<T> {
  const search: Search = { failures: 0, cancelled: 0, renewals: 0, obstacleMs: null };
  for (let requirement = first; ; requirement = now()) {
    const attempt = chooseServerNow(servers, requirement, search) ?? (await waitForServer(servers, now, search));
    try {
      return await work(attempt);
    } catch (error) {
      await endAttempt(servers, search, attempt, error, late);
    }
  }
}

interface Search {
  failed?: Set<Replica>;
  failures: number;
  cancelled: number;
  renewals: number;
  /** Time of the first wait or failure, by performance.now(). */
  obstacleMs: number | null;
}

/** Finds a replica that has not failed this read; null: the read must wait. */
function chooseServerNow({ replicas }: Servers, requirement: Requirement, search: Search): Attempt | null {
  const replica = choose(replicas, requirement, search.failed);
  return replica === null || search.failed?.has(replica) ? null : startAttempt(replica, replica, requirement, search);
}

function startAttempt(
  target: ReadTarget,
  replica: Replica | null,
  requirement: Requirement,
  { failures }: Search,
): Attempt {
  return { target, replica, asOfMs: target.state.asOfMs, failures, requirement };
}

async function waitForServer(servers: Servers, required: () => Requirement, search: Search): Promise<Attempt> {
  const { replicas } = servers;
  for (;;) {
    const requirement = required();
    let replica = choose(replicas, requirement, search.failed);
    if (replica !== null && search.failed?.has(replica)) {
      await Promise.all([replica.probe(), requirement.resumeMs === undefined ? undefined : sleep(pauseMs)]); // its backend may be dead, its server alive
      replica = choose(replicas, requirement, search.failed);
    }
    const waitedMs = search.obstacleMs === null ? 0 : performance.now() - search.obstacleMs;
    const target = replica ?? takePrimaryOrWait(servers, requirement, waitedMs);
    if (target !== null) return startAttempt(target, replica, requirement, search);
    const probes = replicas.filter(({ state }) => state.healthy).map((each) => each.probe(waitedMs && pauseMs));
    await Promise.race([sleep(pauseMs), ...(waitedMs === 0 ? probes : [])]); // mostly one probe is enough
    search.obstacleMs ??= performance.now();
  }
}

/** Returns if the read can be repeated, otherwise throws the error that answers it. */
async function endAttempt(
  { replicas, observe }: Servers,
  search: Search,
  { target, replica, requirement: { resumeMs } }: Attempt,
  error: unknown,
  late: () => Problem,
): Promise<void> {
  const kind = error instanceof Problem ? 'permanent' : getDatabaseErrorKind(error);
  if (kind === 'permanent' || kind === 'unfit') throw error;
  const [code, helps = 'repeat'] = [getErrorCode(error), getHelp(error)];
  if (replica !== null) observe({ type: 'replica_failed', replica: replica.name, code, helps });
  if (kind === 'timeout') await replica?.probe(); // a frozen server also lets statements time out
  if (kind === 'timeout' && target.state.healthy) throw late();
  if (helps === 'new connection') {
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
  if (isLast) throw search.cancelled === search.failures ? late() : new Shortage('no replica');
  if (replica !== null) {
    search.failed ??= new Set();
    search.failed.add(replica);
    void replica.probe(pauseMs); // ejects a dead replica before other reads choose it
  } else {
    target.pause?.(primaryPauseMs);
    await sleep(primaryPauseMs + pauseMs);
  }
}

function takePrimaryOrWait(
  { replicas, primary, freshnessWaitMs = 0, resumeMs = 0 }: Servers,
  requirement: Requirement,
  waitedMs: number,
): ReadTarget | null {
  const hasHealthyReplica = choose(replicas, {}) !== null;
  const { showsWrite = false, replicasOnly = false, orPrimary = false } = requirement;
  const mayAskPrimary = hasHealthyReplica ? showsWrite && !replicasOnly && waitedMs >= freshnessWaitMs : orPrimary;
  if (mayAskPrimary) {
    const target = primary?.() ?? null;
    if (target !== null) return target;
  }
  const waitMaxMs = !hasHealthyReplica ? 0 : showsWrite ? freshnessWaitMs : resumeMs;
  if (waitedMs < Math.max(waitMaxMs, requirement.resumeMs ?? 0)) return null;
  if (!hasHealthyReplica) throw new Shortage('no replica');
  throw new Shortage(showsWrite ? 'write not replayed' : 'page not replayed');
}

export function usePrimary(
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
    pause: (ms) => {
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
