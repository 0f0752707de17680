import type { Need } from '../db/replicas.js';
import type { Replica } from '../db/replica.js';
import type { Source } from '../db/source.js';
import type { WritePosition, WritePositions } from '../db/write-positions.js';
import { Problem } from '../errors.js';
import type { Observe } from '../ops/events.js';

/** Where a read goes: to a replica that meets the need, or, when none has replayed the workspace's last write, to the primary. */
export type Route = { readonly need: Need } | { readonly primary: Source };

/** What read-your-writes works with. */
export interface Freshness {
  readonly replicas: readonly Replica[];
  readonly positions: WritePositions;
  /** Capped reads on the primary; null without a primary. */
  readonly primary: Source | null;
  readonly primaryReadsPerSecond: number;
  readonly waitMs: number;
  readonly observe: Observe;
}

/** Decides where a read of a workspace's written resources goes. Throws replica_unavailable. */
export type FreshnessRouter = (workspace: string) => Promise<Route>;

const pollMs = 15;

/**
 * After a write, reads of the same workspace must see it, whichever replica is behind: a replica that has replayed the
 * write's position; else one that does within `waitMs`; else the primary, so many times a second; else 503. The position is
 * asked for in a statement of its own before the read: in one statement both would see the snapshot from before.
 */
export function freshnessRouter(freshness: Freshness): FreshnessRouter {
  const mayAskPrimary = perSecond(freshness.primaryReadsPerSecond);
  return async (workspace) => {
    const position = freshness.positions.of(workspace);
    if (position === undefined) return { need: {} };
    const need: Need = position.lsn === null ? { asOfMs: position.atMs } : { replayed: position.lsn };
    if (someReplayed(freshness.replicas, position) || (await replayedInTime(freshness, position))) return { need };
    if (freshness.primary === null || !mayAskPrimary()) throw notReplayedYet();
    freshness.observe({ type: 'primary_read' });
    return { primary: freshness.primary };
  };
}

function someReplayed(replicas: readonly Replica[], { lsn, atMs }: WritePosition): boolean {
  return replicas.some(({ state }) => state.healthy && (lsn === null ? (state.asOfMs ?? 0) >= atMs : state.replayed >= lsn));
}

async function replayedInTime({ replicas, waitMs }: Freshness, position: WritePosition): Promise<boolean> {
  for (const startedMs = performance.now(); performance.now() - startedMs < waitMs; ) {
    await Promise.race(replicas.filter(({ state }) => state.healthy).map((replica) => replica.probe()));
    if (someReplayed(replicas, position)) return true;
    await new Promise((resolve) => setTimeout(resolve, pollMs));
  }
  return false;
}

/** At most `quota` in any second of the clock. */
function perSecond(quota: number): () => boolean {
  let second = 0;
  let used = 0;
  return () => {
    const now = Math.floor(performance.now() / 1000);
    if (now !== second) used = 0;
    second = now;
    return used++ < quota;
  };
}

function notReplayedYet(): Problem {
  const detail = 'No replica has caught up with your last write yet, and the primary serves only a few reads.';
  return new Problem('replica_unavailable', detail, { headers: { 'Retry-After': '1' } });
}
