import { databaseErrorKind, Problem } from '../errors.js';
import type { Observe } from '../events.js';
import { errorCode } from './connection.js';
import type { Replica, ReplicaState } from './replica.js';
import type { Lsn } from './wal-position.js';

/** What a read asks of the replica that answers it. */
export interface ReplicaRequirement {
  /** Replicas that failed this read already: used only when there is no other. */
  readonly avoid?: ReadonlySet<Candidate>;
  /** Read-your-writes: the replica must have replayed this position. */
  readonly replayed?: Lsn;
  /** Continuation of a page: the replica must be known current up to this moment, epoch milliseconds. */
  readonly asOfMs?: number | null;
  /** Continuation of a page: how long to look for a replica that can go on, from the first trouble on. Absent: two retries. */
  readonly resumeMs?: number;
}

/** What routing looks at. */
export interface Candidate {
  readonly state: ReplicaState;
  readonly inFlight: number;
}

/** The healthy replica that meets the need with the fewest statements in flight; null when there is none. Pure. */
export function chooseReplica<R extends Candidate>(replicas: readonly R[], need: ReplicaRequirement): R | null {
  let best: R | null = null;
  let bestAvoided = false;
  for (const replica of replicas) {
    const { healthy, replayed, asOfMs } = replica.state;
    if (!healthy) continue;
    if (need.replayed !== undefined && replayed < need.replayed) continue;
    if (need.asOfMs != null && (asOfMs ?? 0) < need.asOfMs) continue;
    const avoided = need.avoid?.has(replica) ?? false;
    if (best === null || (bestAvoided && !avoided) || (bestAvoided === avoided && replica.inFlight < best.inFlight)) {
      best = replica;
      bestAvoided = avoided;
    }
  }
  return best;
}

/**
 * Does one piece of reading on a replica. When it fails in a way that says nothing about the statement, it is repeated
 * on another replica if there is one: twice, or for the continuation of a page until `resumeMs` have passed. `work` must
 * be repeatable from its beginning; `failures` tells it how often it was begun before. Throws Problem `replica_unavailable`.
 */
export async function withReplica<T>(
  replicas: readonly Replica[],
  need: ReplicaRequirement,
  observe: Observe,
  work: (replica: Replica, failures: number) => Promise<T>,
): Promise<T> {
  const avoid = new Set<Candidate>(need.avoid);
  let renewals = 0;
  let giveUpMs = Number.POSITIVE_INFINITY;
  for (let failures = 0; ; ) {
    const replica = await next(replicas, { ...need, avoid });
    if (replica === null) {
      giveUpMs = Math.min(giveUpMs, performance.now() + (need.resumeMs ?? 0));
      if (performance.now() >= giveUpMs) throw replicaUnavailable();
      await fresherState(replicas);
      continue;
    }
    try {
      return await work(replica, failures);
    } catch (error) {
      if (error instanceof Problem && error.code === 'overloaded')
        observe({ type: 'request_shed', bound: 'connections' });
      const fault = error instanceof Problem ? 'bug' : databaseErrorKind(error);
      if (fault === 'bug') throw error;
      const code = errorCode(error);
      observe({ type: 'replica_failed', replica: replica.name, code });
      if (fault === 'timeout') throw replicaUnavailable();
      if (planIsStale.has(code) && renewals++ < replicas.length) {
        replica.renew();
        continue;
      }
      failures++;
      avoid.add(replica);
      void replica.probe(pauseMs); // so that a dead one is out before others come to it
      giveUpMs = Math.min(giveUpMs, performance.now() + (need.resumeMs ?? 0));
      const isLast = need.resumeMs === undefined ? failures >= attemptsMax : performance.now() >= giveUpMs;
      if (isLast) throw replicaUnavailable();
    }
  }
}

/** Attempts of a read of which nothing was sent: a vacuum may conflict with it on two replicas at the same moment. */
const attemptsMax = 3;

/** DDL under a prepared statement, and a prepared statement that is not there: a new connection helps, not another replica. */
const planIsStale: ReadonlySet<string> = new Set(['0A000', '26000']);

/** How long a page pauses between two looks for a replica that can go on. */
const pauseMs = 25;
const pause = (): Promise<unknown> => new Promise((resolve) => setTimeout(resolve, pauseMs));

/** One that failed already is asked how it is before it is used again: a dead backend is not yet a dead server. */
async function next(replicas: readonly Replica[], need: ReplicaRequirement): Promise<Replica | null> {
  const replica = chooseReplica(replicas, need);
  if (replica === null || !need.avoid?.has(replica)) return replica;
  await Promise.all([replica.probe(), need.resumeMs === undefined ? undefined : pause()]);
  return chooseReplica(replicas, need);
}

/** Probes the healthy replicas, at most every 25 ms, and pauses as long. */
export async function fresherState(replicas: readonly Replica[]): Promise<void> {
  for (const replica of replicas) if (replica.state.healthy) void replica.probe(pauseMs);
  await pause();
}

/** 503 with the time after which a replica may have been readmitted. */
export function replicaUnavailable(): Problem {
  return new Problem('replica_unavailable', 'No read replica can answer now; try again.');
}
