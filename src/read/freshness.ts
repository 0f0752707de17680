import type { Awaitable } from '../awaitable.js';
import type { Heartbeat } from '../db/heartbeat.js';
import type { ReadTarget } from '../db/read-target.js';
import type { Replica } from '../db/replica.js';
import { chooseReplica, type ReplicaRequirement } from '../db/replicas.js';
import { sameHistory, type WritePosition } from '../db/wal-position.js';
import type { WritePositions } from '../db/write-positions.js';
import { Problem } from '../errors.js';
import type { Observe } from '../events.js';

/** The server of a read: a replica that meets the requirement, or the primary when no replica has replayed the workspace's last write. */
export type Route = { readonly requirement: ReplicaRequirement } | { readonly primary: ReadTarget };

/** Dependencies and bounds of read-your-writes. */
export interface Freshness {
  readonly replicas: readonly Replica[];
  readonly positions: WritePositions;
  readonly heartbeat: Heartbeat;
  /** Capped reads on the primary; null without a primary, or while it does not answer. */
  readonly primary: () => ReadTarget | null;
  readonly primaryReadsPerSecond: number;
  readonly waitMs: number;
  readonly observe: Observe;
}

/**
 * Routes a read of a resource that clients write: to a replica that meets the given requirement and shows the workspace's
 * last write, or to the primary. Throws replica_unavailable, at the earliest when the requirement's `resumeMs` have passed.
 */
export type FreshnessRouter = (workspace: string, requirement?: ReplicaRequirement) => Awaitable<Route>;

const pollMs = 15;

/**
 * After a write, reads of the same workspace must see it, whichever replica is behind: a replica that has replayed the
 * write's position; else one that does within `waitMs`; else the primary, so many times a second; else 503. The position is
 * asked for in a statement of its own before the read: in one statement both would see the snapshot from before.
 */
export function freshnessRouter(freshness: Freshness): FreshnessRouter {
  const { replicas, positions, heartbeat, waitMs, observe } = freshness;
  const mayAskPrimary = perSecond(freshness.primaryReadsPerSecond);
  /** The route that needs no wait; null where no replica is current enough. */
  const settled = (position: WritePosition | undefined, requirement: ReplicaRequirement): Route | null => {
    if (position === undefined) return { requirement };
    const whole = Object.assign({}, requirement, requirementOf(position, heartbeat, requirement));
    // Without any healthy replica the read fails for that reason, with its own answer.
    const mayRead = chooseReplica(replicas, whole) !== null || chooseReplica(replicas, {}) === null;
    return mayRead ? { requirement: whole } : null;
  };
  const caughtUp = async (
    awaited: ReturnType<WritePositions['of']>,
    requirement: ReplicaRequirement,
  ): Promise<Route> => {
    const position = await awaited;
    for (const startedMs = performance.now(); ; await pause(pollMs)) {
      const route = settled(position, requirement);
      if (route !== null) return route;
      const waitedMs = performance.now() - startedMs;
      if (waitedMs < waitMs) {
        await Promise.race([someProbe(replicas), pause(waitMs - waitedMs)]);
        continue;
      }
      const primary = freshness.primary();
      if (primary !== null && !requirement.replicasOnly && mayAskPrimary()) {
        observe({ type: 'primary_read' });
        return { primary };
      }
      if (waitedMs >= (requirement.resumeMs ?? 0)) throw notReplayedYet();
    }
  };
  return (workspace, requirement = {}) => {
    const position = positions.of(workspace);
    return (position instanceof Promise ? null : settled(position, requirement)) ?? caughtUp(position, requirement);
  };
}

/**
 * The position that a replica must have replayed. A position of another history than the primary's cannot be compared with
 * those of its replicas (a failover can even lose the write): then the replica must show the primary of a moment after the write.
 */
function requirementOf(
  position: WritePosition,
  { newest }: Heartbeat,
  { asOfMs, replayed = 0n }: ReplicaRequirement,
): ReplicaRequirement {
  const comparable = newest === undefined || sameHistory(position, newest);
  return comparable
    ? { replayed: position.lsn > replayed ? position.lsn : replayed }
    : { asOfMs: Math.max(position.atMs, asOfMs ?? 0) };
}

function someProbe(replicas: readonly Replica[]): Promise<void> {
  return Promise.race(replicas.filter(({ state }) => state.healthy).map((replica) => replica.probe()));
}

const pause = (ms: number): Promise<void> => new Promise((resolve) => setTimeout(resolve, ms));

/** Returns true for at most `quota` calls in any second, whenever the second begins. */
export function perSecond(quota: number, now: () => number = () => performance.now()): () => boolean {
  const usedAt = new Array<number>(quota).fill(Number.NEGATIVE_INFINITY); // a ring of the last `quota` uses
  let oldest = 0;
  return () => {
    const atMs = now();
    if (quota === 0 || atMs - (usedAt[oldest] as number) < 1000) return false;
    usedAt[oldest] = atMs;
    oldest = (oldest + 1) % quota;
    return true;
  };
}

function notReplayedYet(): Problem {
  const detail = 'No replica has caught up with your last write yet, and the primary serves only a few reads.';
  return new Problem('replica_unavailable', detail, { headers: { 'Retry-After': '1' } });
}
