import { setTimeout as sleep } from 'node:timers/promises';
import { type Awaitable, after } from '../awaitable.js';
import type { CompiledResource } from '../definition/compiled.js';
import { databaseErrorKind, Problem } from '../errors.js';
import type { Observe } from '../events.js';
import { errorCode } from '../postgres/connection.js';
import type { ConnectionPool } from '../postgres/connection-pool.js';
import type { Heartbeat, WritePositions } from '../postgres/heartbeat.js';
import type { Replica, ReplicaState } from '../postgres/replica.js';
import type { TextRow } from '../postgres/row.js';
import type { Caller, Statement, Values } from '../postgres/statement.js';
import { type Lsn, sameHistory, type WritePosition } from '../postgres/wal-position.js';
import type { ChunkMemory } from './chunk-memory.js';
import type { PageMemory } from './page-memory.js';
import type { ListRequest } from './parse.js';
import type { RunningCounts } from './running-counts.js';

// Which server answers a read? Its requirement is made first (withReadTarget, and for a written resource freshnessRouter), then a
// replica is chosen by it (chooseReplica), and a failed attempt is repeated on another one (withReplica).

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
    for (const startedMs = performance.now(); ; await sleep(pollMs)) {
      const route = settled(position, requirement);
      if (route !== null) return route;
      const waitedMs = performance.now() - startedMs;
      if (waitedMs < waitMs) {
        await Promise.race([someProbe(replicas), sleep(waitMs - waitedMs)]);
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
async function fresherState(replicas: readonly Replica[]): Promise<void> {
  for (const replica of replicas) if (replica.state.healthy) void replica.probe(pauseMs);
  await sleep(pauseMs);
}

/** 503; Retry-After is about the time that a readmission takes. */
function replicaUnavailable(): Problem {
  return new Problem('replica_unavailable', 'No read replica can answer now; try again.');
}

/** A server that can answer a read: a replica, or the primary for the few reads for which no replica is current enough. */
export interface ReadTarget {
  readonly name: string;
  readonly short: ConnectionPool;
  readonly long: ConnectionPool;
  readonly state: { readonly asOfMs: number | null; readonly healthy: boolean };
}

/** The primary as a read target: always current. */
export function primaryTarget(pool: ConnectionPool): ReadTarget {
  return {
    name: 'primary',
    short: pool,
    long: pool,
    get state() {
      return { asOfMs: Date.now(), healthy: true };
    },
  };
}
