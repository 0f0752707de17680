import { after } from '../awaitable.js';
import type { ReadTarget } from '../db/read-target.js';
import type { Replica } from '../db/replica.js';
import {
  chooseReplica,
  fresherState,
  type ReplicaRequirement,
  replicaUnavailable,
  withReplica,
} from '../db/replicas.js';
import type { TextRow } from '../db/row.js';
import type { Caller, Statement, Values } from '../db/statement.js';
import type { WritePositions } from '../db/write-positions.js';
import type { CompiledResource } from '../definition/compiled.js';
import { databaseErrorKind, Problem } from '../errors.js';
import type { Observe } from '../events.js';
import type { ChunkMemory } from './chunk-memory.js';
import type { FreshnessRouter, Route } from './freshness.js';
import type { PageMemory } from './page-memory.js';
import type { ListRequest } from './parse.js';
import type { RunningCounts } from './running-counts.js';

/** Dependencies and bounds of reads; made once per gateway. */
export interface ReadDeps {
  readonly replicas: readonly Replica[];
  /** Chooses the server of a read of a written resource, so that a workspace sees its own writes. */
  readonly routeWritten: FreshnessRouter;
  /** The workspace's last write through any gateway; undefined when there is none. */
  readonly lastWrite: WritePositions['of'];
  /** Whether the last sample of the primary's position succeeded: without samples no replica can be shown to have moved on. */
  readonly primaryReachable: () => boolean;
  readonly chunkMemory: ChunkMemory;
  readonly pageMemory: PageMemory;
  readonly runningCounts: RunningCounts;
  readonly observe: Observe;
  readonly queueWaitMs: number;
  readonly chunkRowsMax: number;
  readonly chunkBytes: number;
  readonly chunkWaitMs: number;
  readonly resumeMs: number;
  readonly skipRowsMax: number;
}

/** The part of a page that a statement reads, with its requirement on the replica. */
export type PagePhase =
  /** Nothing has been sent. `asOfMs` of the requirement is that of the page before. */
  | { readonly kind: 'first'; readonly requirement: ReplicaRequirement }
  /** Rows have been sent: the rest must be as current as they are. */
  | {
      readonly kind: 'continuation';
      readonly requirement: ReplicaRequirement;
      /** The page began on the primary, because no replica had replayed the workspace's last write. */
      readonly onPrimary: boolean;
    };

/** The phase of a read without requirement. */
export const anywhere: PagePhase = { kind: 'first', requirement: {} };

/** One attempt to read, on one server. */
export interface Attempt {
  readonly target: ReadTarget;
  /** The moment up to which the server was known to be current before it was asked, epoch milliseconds. */
  readonly asOfMs: number | null;
  /** Failed attempts before this one. */
  readonly failures: number;
  readonly requirement: ReplicaRequirement;
  readonly onPrimary: boolean;
}

/** The phase of the statements that continue the page of an attempt. */
export function continuationOf({ resumeMs }: ReadDeps, { target, requirement, asOfMs, onPrimary }: Attempt): PagePhase {
  const ofPage = Object.assign({}, requirement, { ofPage: target, asOfMs, resumeMs });
  return { kind: 'continuation', requirement: ofPage, onPrimary };
}

/**
 * Runs `work` on a replica, or for a written resource on the primary when no replica has replayed the workspace's last write.
 * A continuation keeps the requirement of the first rows, so it does not wait for later writes.
 */
export function withReadTarget<T>(
  deps: ReadDeps,
  { compiled, caller }: { compiled: CompiledResource; caller: Caller },
  phase: PagePhase,
  work: (attempt: Attempt) => Promise<T>,
): Promise<T> {
  const attempt = (target: ReadTarget, requirement: ReplicaRequirement, onPrimary: boolean, failures = 0): Attempt => {
    return { target, asOfMs: target.state.asOfMs, failures, requirement, onPrimary };
  };
  const requirement = readable(deps.replicas, compiled.resource.view, provable(deps, phase));
  const isSettled = compiled.write === null || (phase.kind === 'continuation' && !phase.onPrimary);
  const read = (route: Route): Promise<T> => {
    if ('primary' in route)
      return work(attempt(route.primary, requirement, true)).catch((error) => {
        throw error instanceof Problem || databaseErrorKind(error) === 'permanent' ? error : replicaUnavailable();
      });
    const onReplica = (): Promise<T> =>
      withReplica(deps.replicas, route.requirement, deps.observe, (replica, failures) =>
        work(attempt(replica, route.requirement, false, failures)),
      );
    const isEarly = phase.kind === 'first' && isAhead(deps, route.requirement);
    return after(isEarly ? untilCurrent(deps, route.requirement) : undefined, onReplica);
  };
  const route = isSettled ? { requirement } : deps.routeWritten(caller.workspace, requirement);
  return after(route, read);
}

/**
 * Requires a replica on which the view could be checked. Throws replica_unavailable where there is none, as while a lock on a table
 * hides the view from the check: the primary must not answer for them.
 */
function readable(replicas: readonly Replica[], view: string, requirement: ReplicaRequirement): ReplicaRequirement {
  if (replicas.every((replica) => replica.mayRead(view))) return requirement;
  const used = replicas.filter(({ state }) => state.healthy);
  if (used.length > 0 && !used.some((replica) => replica.mayRead(view)))
    throw new Problem('replica_unavailable', 'The view of this resource could not be checked yet; try again.');
  return { ...requirement, view };
}

/**
 * Lowers the required moment to that of the most current replica where no replica can reach it soon. While the primary is away
 * there are no samples of it, and a cursor of another gateway, or from before a restart, can require a later moment. A moment in
 * the future is from before the clock was set back; waiting until now instead would delay each piece of a page by a sample.
 */
function provable({ primaryReachable, replicas }: ReadDeps, { kind, requirement }: PagePhase): ReplicaRequirement {
  const { asOfMs } = requirement;
  if (asOfMs == null || (asOfMs <= Date.now() && (kind === 'continuation' || primaryReachable()))) return requirement;
  const known = replicas.map(({ state }) => (state.healthy ? (state.asOfMs ?? 0) : 0));
  return { ...requirement, asOfMs: Math.min(asOfMs, Math.max(0, ...known)) };
}

/** Whether no replica is as current as is required, although some are healthy: without any, withReplica throws. */
function isAhead({ replicas }: ReadDeps, requirement: ReplicaRequirement): boolean {
  return chooseReplica(replicas, requirement) === null && chooseReplica(replicas, {}) !== null;
}

/** Waits until a replica is as current as the page before, so that a walk never goes back in time. Throws replica_unavailable after `resumeMs`. */
async function untilCurrent(deps: ReadDeps, requirement: ReplicaRequirement): Promise<void> {
  const deadlineMs = performance.now() + deps.resumeMs;
  while (isAhead(deps, requirement)) {
    if (performance.now() >= deadlineMs)
      throw new Problem('replica_unavailable', 'No replica is as current as the page before yet; try again.');
    await fresherState(deps.replicas);
  }
}

/** Rows of a small statement, and how current they are. */
export interface Rows {
  readonly rows: readonly TextRow[];
  readonly asOfMs: number | null;
}

/** Reads one of the small statements of a list: keys, or a count. */
export async function readRows(
  deps: ReadDeps,
  request: ListRequest,
  statement: Statement,
  extra: Values,
  phase: PagePhase,
  takesTurns = false,
): Promise<Rows> {
  const { caller, onMark } = request;
  const run = { statement, workspace: caller.workspace, values: { ...request.values, ...extra }, onMark };
  const options = { waitMs: deps.queueWaitMs, takesTurns, signal: request.signal };
  return withReadTarget(deps, request, phase, async ({ target, asOfMs }) => {
    const rows: TextRow[] = [];
    await target.long.run(run, options, (row) => rows.push(row.texts()));
    return { rows, asOfMs };
  });
}
