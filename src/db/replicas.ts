import { databaseFault, Problem } from '../errors.js';
import type { Observe } from '../ops/events.js';
import type { Lsn } from './lsn.js';
import type { Replica, ReplicaState } from './replica.js';

/** What a read asks of the replica that answers it. */
export interface Need {
  /** Replicas that failed this read already: used only when there is no other. */
  readonly avoid?: ReadonlySet<Candidate>;
  /** Read-your-writes: the replica must have replayed this position. */
  readonly replayed?: Lsn;
  /** Continuation of a page: the replica must be known current up to this moment, epoch milliseconds. */
  readonly asOfMs?: number | null;
}

/** What routing looks at. */
export interface Candidate {
  readonly state: ReplicaState;
  readonly inFlight: number;
}

/** The healthy replica that meets the need with the fewest statements in flight; null when there is none. Pure. */
export function choose<R extends Candidate>(replicas: readonly R[], need: Need): R | null {
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
 * Does one piece of reading on a replica, and once more, on another if there is one, when the first failed in a way that
 * says nothing about the statement. `work` must be repeatable from its beginning. Throws Problem `replica_unavailable`.
 */
export async function onReplica<T>(
  replicas: readonly Replica[],
  need: Need,
  observe: Observe,
  work: (replica: Replica) => Promise<T>,
): Promise<T> {
  const avoid = new Set<Candidate>(need.avoid);
  for (let attempt = 1; ; attempt++) {
    const replica = choose(replicas, { ...need, avoid });
    if (replica === null) throw replicaUnavailable();
    try {
      return await work(replica);
    } catch (error) {
      if (error instanceof Problem || databaseFault(error) === 'bug') throw error;
      observe({
        type: 'replica_failed',
        replica: replica.name,
        code: String((error as { code?: unknown }).code ?? 'connection'),
      });
      if (databaseFault(error) === 'timeout' || attempt === 2) throw replicaUnavailable();
      avoid.add(replica);
      await replica.probe(); // tells a dead server from a dead backend before the choice is made again
    }
  }
}

/** 503 with the time after which a replica may have been readmitted. */
export function replicaUnavailable(): Problem {
  return new Problem('replica_unavailable', 'No read replica can answer now; try again.', {
    headers: { 'Retry-After': '2' },
  });
}
