import { setTimeout as sleep } from 'node:timers/promises';
import { Problem, Shortage } from '../base/errors.js';
import type { Observe } from '../base/events.js';
import { getErrorCode, isOfOlderConnection } from './connection.js';
import type { ConnectionPool } from './connection-pool.js';
import { getDatabaseErrorKind, getHelp, StatementEnded } from './database-errors.js';
import type { ReadableResource, Replica, ReplicaState } from './replica.js';
import type { Lsn } from './wal-position.js';

// Which server answers a read. `chooseReplica` picks a replica that meets the requirement, `runOnServer` runs the read there, and repeats
// it elsewhere after a failure. A read that must show the workspace's last write can go to the primary.
//
// Example: the last write has position 80, and the page began on B.
//   A has replayed 70 and has no statement in flight: it is left out, because it does not show the write.
//   B has replayed 90 and has 3 statements in flight: its rank is 2 × 3 = 6, so the read goes to B.
//   C has replayed 85 and has 3 statements in flight: its rank is 2 × 3 + 1 = 7, because the page did not begin there.
// If B fails the read, its rank is 1,000,000,006, and the read is repeated on C.

export interface Servers {
  readonly replicas: readonly Replica[];
  readonly observe: Observe;
  /** Serves the few reads for which no replica is current enough; null when the primary has no capacity to spare. */
  readonly lendPrimary: () => ReadTarget | null;
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
  /** The server on which the page began; a page that changed it with each chunk would fail if any of them fails. */
  readonly pageServer?: ReadTarget | Candidate;
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

/** Takes the replica with the lowest rank; among equals chance decides. Null if no healthy replica meets the requirement. */
export function chooseReplica<R extends Candidate>(
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
    const failedPart = failed?.has(replica) ? failedRank : 0;
    const rank = failedPart + 2 * replica.inFlight + Number(replica !== requirement.pageServer);
    if (rank > bestRank) continue;
    equals = rank === bestRank ? equals + 1 : 1;
    bestRank = rank;
    if (Math.random() * equals < 1) best = replica;
  }
  return best;
}

/** A vacuum can cancel a read on two replicas at once, so a third attempt follows. Each of more replicas gets one, and one of them two. */
const attemptsMax = 3;
/** Pause before the next search; a longer one follows a failure of the primary, because all its few reads share it. */
const pauseMs = 20;
const primaryPauseMs = 100;

/**
 * Repeats `work` when the replica fails: twice, or for a begun page until `resumeMs` have passed. The moment of an attempt comes from a
 * probe before the read, so the read sees at least what the probe saw. `updateRequirement` gives the requirement of each later search,
 * because it can change meanwhile. Throws `replica_unavailable`, or `makeTimeout()` for a slow statement.
 */
export async function runOnServer<T>(
  servers: Servers,
  first: Requirement,
  work: (attempt: Attempt) => Promise<T>,
  {
    updateRequirement = () => first,
    makeTimeout = () => new Shortage('no replica'),
  }: { readonly updateRequirement?: () => Requirement; readonly makeTimeout?: () => Problem } = {},
): Promise<T> {
  const search: Search = { failures: 0, cancelled: 0, renewals: 0, obstacleMs: null };
  for (let requirement = first; ; requirement = updateRequirement()) {
    const attempt =
      chooseServerNow(servers, requirement, search) ?? (await waitForServer(servers, updateRequirement, search));
    try {
      return await work(attempt);
    } catch (error) {
      await endAttempt(servers, search, attempt, error, makeTimeout);
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
  const replica = chooseReplica(replicas, requirement, search.failed);
  if (replica === null || search.failed?.has(replica)) return null;
  return { target: replica, replica, asOfMs: replica.state.asOfMs, failures: search.failures, requirement };
}

async function waitForServer(servers: Servers, updateRequirement: () => Requirement, search: Search): Promise<Attempt> {
  const { replicas } = servers;
  for (;;) {
    const requirement = updateRequirement();
    let replica = chooseReplica(replicas, requirement, search.failed);
    if (replica !== null && search.failed?.has(replica)) {
      await Promise.all([replica.probe(), requirement.resumeMs === undefined ? undefined : sleep(pauseMs)]); // the backend may have ended although its server runs
      replica = chooseReplica(replicas, requirement, search.failed);
    }
    const waitedMs = search.obstacleMs === null ? 0 : performance.now() - search.obstacleMs;
    const target = replica ?? takePrimaryOrWait(servers, requirement, waitedMs);
    const { failures } = search;
    if (target !== null) return { target, replica, asOfMs: target.state.asOfMs, failures, requirement };
    // At first a probe must be new; later one of the last pause is enough, so that a server that stays behind is asked less often.
    const probes = replicas.filter(({ state }) => state.healthy).map((each) => each.probe(waitedMs && pauseMs));
    await Promise.race([sleep(pauseMs), ...(waitedMs === 0 ? probes : [])]); // mostly the first probe shows that a replica has caught up
    search.obstacleMs ??= performance.now();
  }
}

/** Returns if the read can be repeated, otherwise throws the error that answers it. */
async function endAttempt(
  { replicas, observe }: Servers,
  search: Search,
  { target, replica, requirement: { resumeMs } }: Attempt,
  error: unknown,
  makeTimeout: () => Problem,
): Promise<void> {
  const kind = error instanceof Problem ? 'permanent' : getDatabaseErrorKind(error);
  if (kind === 'permanent' || kind === 'unfit') throw error;
  const helps = getHelp(error) ?? 'repeat';
  if (replica !== null) observe({ type: 'replica_failed', replica: replica.name, code: getErrorCode(error), helps });
  if (kind === 'timeout') await replica?.probe(); // a timeout can also come from a server that is frozen
  if (kind === 'timeout' && target.state.healthy) throw makeTimeout();
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
  if (isLast) throw search.cancelled === search.failures ? makeTimeout() : new Shortage('no replica');
  if (replica !== null) {
    search.failed ??= new Set();
    search.failed.add(replica);
    void replica.probe(pauseMs); // a dead replica is ejected before other reads choose it
  } else {
    target.pause?.(primaryPauseMs);
    await sleep(primaryPauseMs + pauseMs);
  }
}

/** Returns null if the read must wait for longer. Throws when it has waited for long enough. */
function takePrimaryOrWait(
  { replicas, lendPrimary, freshnessWaitMs = 0, resumeMs = 0 }: Servers,
  requirement: Requirement,
  waitedMs: number,
): ReadTarget | null {
  const hasHealthyReplica = chooseReplica(replicas, {}) !== null;
  const { showsWrite = false, replicasOnly = false, orPrimary = false } = requirement;
  const mayAskPrimary = hasHealthyReplica ? showsWrite && !replicasOnly && waitedMs >= freshnessWaitMs : orPrimary;
  const target = mayAskPrimary ? lendPrimary() : null;
  if (target !== null) return target;
  const waitMaxMs = !hasHealthyReplica ? 0 : showsWrite ? freshnessWaitMs : resumeMs;
  if (waitedMs < Math.max(waitMaxMs, requirement.resumeMs ?? 0)) return null;
  if (!hasHealthyReplica) throw new Shortage('no replica');
  throw new Shortage(showsWrite ? 'write not replayed' : 'page not replayed');
}

/** Makes the function that lends the primary to a read. It returns null while the primary rests, or has served its reads of this second. */
export function makePrimaryLender(
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
