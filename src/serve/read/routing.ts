import { Problem, Shortage } from '../../base/errors.js';
import { type Attempt, type Requirement, runOnServer, type Servers } from '../../postgres/choice.js';
import type { CheckedRun } from '../../postgres/connection-pool.js';
import type { Heartbeat, WritePositions } from '../../postgres/heartbeat.js';
import type { ReadableResource, Replica } from '../../postgres/replica.js';
import type { TextRow } from '../../postgres/row.js';
import type { Statement, Values } from '../../postgres/statement.js';
import { isSameHistory, type WritePosition } from '../../postgres/wal-position.js';
import type { OrderKey } from '../../resource/definition/resource.js';
import type { Settings } from '../../settings.js';
import type { ChunkMemory } from './chunk-memory.js';
import type { PageMemory } from './page-memory.js';
import type { RawRequest } from './parse.js';

// `runOnReadTarget` adds what a read requires of its server; postgres/choice finds the server.

type ReadBound = 'detailWaitMs' | 'queueWaitMs' | 'chunkRowsMax' | 'chunkBytes' | 'statementTimeoutMs' | 'skipRowsMax';

export interface ReadDeps extends Required<Servers>, Pick<Settings, ReadBound> {
  /** Finds a write through any gateway; undefined when there is none. */
  readonly findLastWrite: WritePositions['findLastWrite'];
  readonly heartbeat: Heartbeat;
  /** The views of the resource no longer fit. */
  readonly refuses: (resource: string) => boolean;
  /** Without samples of the primary no replica can be shown to have moved on. */
  readonly primaryReachable: () => boolean;
  readonly chunkMemory: ChunkMemory;
  readonly pageMemory: PageMemory;
}

/** Requires the replica to be as current as the page; the primary continues its own pages until a replica shows the write. */
export function requireContinuation(
  { resumeMs }: ReadDeps,
  { target, requirement, asOfMs, replica }: Attempt,
): Requirement {
  return { ...requirement, pageServer: target, asOfMs, resumeMs, showsWrite: replica === null };
}

export async function runOnReadTarget<T>(
  deps: ReadDeps,
  { compiled, caller }: Pick<RawRequest, 'compiled' | 'caller'>,
  requirement: Requirement,
  work: (attempt: Attempt) => Promise<T>,
): Promise<T> {
  if (deps.refuses(compiled.resource.name)) throw new Shortage('unfit for reads');
  const mayLackWrite =
    compiled.resource.write !== undefined && (requirement.pageServer === undefined || requirement.showsWrite === true);
  const lastWrite = mayLackWrite ? deps.findLastWrite(caller.workspace) : undefined;
  const position = lastWrite instanceof Promise ? await lastWrite : lastWrite; // a wait for what is known costs a single record a hundredth of its time
  const now = (): Requirement => {
    const readable = requireReadable(deps.replicas, compiled.resource, requirement);
    return requireLastWrite(position, deps, clampMoment(deps, readable));
  };
  return runOnServer(deps, now(), work, { updateRequirement: now, makeTimeout: makeQueryTimeout });
}

/** Throws replica_unavailable if a lock or an unchecked view leaves no replica that may read; a begun page waits. */
function requireReadable(
  replicas: readonly Replica[],
  resource: ReadableResource,
  requirement: Requirement,
): Requirement {
  if (replicas.every((replica) => replica.mayRead(resource))) return requirement;
  const healthyReplicas = replicas.filter(({ state }) => state.healthy);
  if (
    requirement.pageServer === undefined &&
    healthyReplicas.length > 0 &&
    !healthyReplicas.some((replica) => replica.mayRead(resource))
  )
    throw new Shortage('locked resource');
  return { ...requirement, resource };
}

/** Lowers a moment that no replica can reach soon: without samples of the primary, or before the clock was set back. */
function clampMoment({ primaryReachable, replicas }: ReadDeps, requirement: Requirement): Requirement {
  const { asOfMs, pageServer } = requirement;
  if (asOfMs == null || (asOfMs <= Date.now() && (pageServer !== undefined || primaryReachable()))) return requirement;
  const knownMoments = replicas.map(({ state }) => (state.healthy ? (state.asOfMs ?? 0) : 0));
  return { ...requirement, asOfMs: Math.min(asOfMs, Math.max(0, ...knownMoments)) };
}

/** Requires the moment of the write if its position is of another history, as after a failover, and cannot be compared. */
function requireLastWrite(
  position: WritePosition | undefined,
  { heartbeat }: ReadDeps,
  requirement: Requirement,
): Requirement {
  if (position === undefined) return requirement;
  const { newest } = heartbeat;
  const { asOfMs, replayed = 0n } = requirement;
  return newest === undefined || isSameHistory(position, newest)
    ? { ...requirement, showsWrite: true, replayed: position.lsn > replayed ? position.lsn : replayed }
    : { ...requirement, showsWrite: true, asOfMs: Math.max(position.atMs, asOfMs ?? 0) };
}

/** Makes an error that is not repeated, because a repetition would take as long. */
function makeQueryTimeout(): Problem {
  const detail =
    'The read took longer than the operator of this API allows. Ask for less: fewer rows, or more filters.';
  return new Problem('query_timeout', detail);
}

export interface ReadRows {
  readonly rows: readonly TextRow[];
  readonly asOfMs: number | null;
}

/** Reads for one request. A sync pass checks each server by its marks when a statement has ended, before any of its rows is sent. */
export class Reader {
  readonly startedMs = performance.now();

  constructor(
    readonly deps: ReadDeps,
    readonly request: Pick<RawRequest, 'compiled' | 'caller' | 'signal'>,
    readonly checkMarks?: CheckedRun['checkMarks'],
  ) {}

  runOnTarget<T>(requirement: Requirement, work: (attempt: Attempt) => Promise<T>): Promise<T> {
    return runOnReadTarget(this.deps, this.request, requirement, work);
  }

  async readKey(statement: Statement, values: Values, requirement: Requirement): Promise<OrderKey | null> {
    const { rows } = await this.readRows(statement, values, requirement);
    return (rows[0] as OrderKey | undefined) ?? null;
  }

  /** Reads rows, for example keys, or a count. */
  readRows(
    statement: Statement,
    values: Values,
    requirement: Requirement,
    waitMs = this.deps.queueWaitMs,
  ): Promise<ReadRows> {
    const { caller, signal } = this.request;
    const run = { statement, workspace: caller.workspace, values, checkMarks: this.checkMarks };
    return this.runOnTarget(requirement, async ({ target, asOfMs }) => {
      const rows: TextRow[] = [];
      await target.long.run(run, { waitMs, signal }, (row) => void rows.push(row.getTexts()));
      return { rows, asOfMs };
    });
  }
}
