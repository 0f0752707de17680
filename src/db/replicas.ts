import { setTimeout as sleep } from 'node:timers/promises';
import { databaseErrorKind, Problem } from '../errors.js';
import type { Observe } from '../events.js';
import { errorCode } from './connection.js';
import type { Replica, ReplicaState } from './replica.js';
import type { Lsn } from './wal-position.js';

/** Requirement of a read on the replica that answers it. */
export interface ReplicaRequirement {
  /** Replicas that failed this read before; used only when no other is left. */
  readonly avoid?: ReadonlySet<Candidate>;
  /** Continuation of a page: the server of its first rows. A page that changed its replica with each chunk would fail with any of them. */
  readonly ofPage?: object;
  /** The view that is read: a replica on which it could not be checked is left out. */
  readonly view?: string;
  /** Read-your-writes: the replica must have replayed this position. */
  readonly replayed?: Lsn;
  /** Continuation of a page: the replica must be known current up to this moment, epoch milliseconds. */
  readonly asOfMs?: number | null;
  /** The read cannot be answered by the primary, because its progress is marked by positions of replay. */
  readonly replicasOnly?: boolean;
  /** Continuation of a page: how long to search for a usable replica after the first failure. Absent: two retries. */
  readonly resumeMs?: number;
}

/** The part of a replica that routing uses. */
export interface Candidate {
  readonly state: ReplicaState;
  readonly inFlight: number;
  mayRead(view: string): boolean;
}

/**
 * Returns the healthy replica that meets the requirement with the fewest statements in flight, of equals the one of the page, else
 * one at random (`random` as Math.random); null when there is none.
 */
export function chooseReplica<R extends Candidate>(
  replicas: readonly R[],
  requirement: ReplicaRequirement,
  random: () => number = Math.random,
): R | null {
  let best: R | null = null;
  let bestRank = Number.POSITIVE_INFINITY;
  let equals = 0;
  for (const replica of replicas) {
    const { healthy, replayed, asOfMs } = replica.state;
    if (!healthy || (requirement.view !== undefined && !replica.mayRead(requirement.view))) continue;
    if (requirement.replayed !== undefined && replayed < requirement.replayed) continue;
    if (requirement.asOfMs != null && (asOfMs ?? 0) < requirement.asOfMs) continue;
    const isAvoided = requirement.avoid?.has(replica) ?? false;
    const rank = Number(isAvoided) * avoidedRank + 2 * replica.inFlight + Number(replica !== requirement.ofPage);
    if (rank > bestRank) continue;
    equals = rank === bestRank ? equals + 1 : 1;
    bestRank = rank;
    if (random() * equals < 1) best = replica;
  }
  return best;
}

/** Beyond any number of statements in flight. */
const avoidedRank = 1e9;

/**
 * Runs `work` on a replica. When the replica fails, not the statement, `work` is repeated on another replica if there is one:
 * twice, or for the continuation of a page until `resumeMs` have passed. `work` must be safe to repeat from its beginning;
 * `failures` counts its failed attempts. Throws Problem `replica_unavailable`.
 */
export async function withReplica<T>(
  replicas: readonly Replica[],
  requirement: ReplicaRequirement,
  observe: Observe,
  work: (replica: Replica, failures: number) => Promise<T>,
): Promise<T> {
  let required = requirement;
  let renewals = 0;
  let giveUpMs = Number.POSITIVE_INFINITY;
  for (let failures = 0; ; ) {
    const replica =
      required.avoid === undefined ? chooseReplica(replicas, required) : await nextReplica(replicas, required);
    if (replica === null) {
      giveUpMs = Math.min(giveUpMs, performance.now() + (requirement.resumeMs ?? 0));
      if (performance.now() >= giveUpMs) throw replicaUnavailable();
      await fresherState(replicas);
      continue;
    }
    try {
      return await work(replica, failures);
    } catch (error) {
      if (error instanceof Problem && error.code === 'overloaded')
        observe({ type: 'request_shed', bound: 'connections' });
      const kind = error instanceof Problem ? 'permanent' : databaseErrorKind(error);
      if (kind === 'permanent') throw error;
      const code = errorCode(error);
      observe({ type: 'replica_failed', replica: replica.name, code });
      if (kind === 'timeout') throw replicaUnavailable();
      if (planIsStale.has(code) && renewals++ < replicas.length) {
        replica.renew();
        continue;
      }
      failures++;
      required = { ...requirement, avoid: new Set([...(required.avoid ?? []), replica]) };
      void replica.probe(pauseMs); // so that a dead replica is out before other reads choose it
      giveUpMs = Math.min(giveUpMs, performance.now() + (requirement.resumeMs ?? 0));
      const isLast = requirement.resumeMs === undefined ? failures >= attemptsMax : performance.now() >= giveUpMs;
      if (isLast) throw replicaUnavailable();
    }
  }
}

/** Attempts of a read before its first byte was sent: a vacuum can conflict with it on two replicas at the same moment. */
const attemptsMax = 3;

/** SQLSTATEs of a prepared statement that DDL made stale, or that is missing: a new connection helps, another replica does not. */
const planIsStale: ReadonlySet<string> = new Set(['0A000', '26000']);

/** Pause between two searches for a replica that can continue a page. */
const pauseMs = 25;

/** Chooses a replica. One that failed this read is probed before it is used again: its backend may be dead, its server alive. */
async function nextReplica(replicas: readonly Replica[], requirement: ReplicaRequirement): Promise<Replica | null> {
  const replica = chooseReplica(replicas, requirement);
  if (replica === null || !requirement.avoid?.has(replica)) return replica;
  await Promise.all([replica.probe(), requirement.resumeMs === undefined ? undefined : sleep(pauseMs)]);
  return chooseReplica(replicas, requirement);
}

/** Probes the healthy replicas, at most every 25 ms, and pauses as long. */
export async function fresherState(replicas: readonly Replica[]): Promise<void> {
  for (const replica of replicas) if (replica.state.healthy) void replica.probe(pauseMs);
  await sleep(pauseMs);
}

/** 503; Retry-After is about the time that a readmission takes. */
export function replicaUnavailable(): Problem {
  return new Problem('replica_unavailable', 'No read replica can answer now; try again.');
}
