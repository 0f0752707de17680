import { Shortage } from '../base/errors.js';
import { drainSocketReads } from '../base/flow/event-loop.js';
import { type ActiveKeys, Gate, type Release } from '../base/flow/gate.js';
import { traceSql } from '../base/tracing.js';
import { type Connect, type Connection, getErrorCode, type Run } from './connection.js';
import { type ConnectionLimits, ConnectionSet } from './connection-set.js';
import { ConnectionLost, lockNotAvailable, queryCanceled, StatementEnded } from './database-errors.js';
import { ResourceHealth, ResourceLocked, type ServerHealth } from './resource-health.js';
import type { Row, TextRow } from './row.js';
import { getResourceName } from './statement.js';
import { StatementMoved } from './wire/queries.js';

/** Times are in milliseconds. */
export interface PoolLimits extends ConnectionLimits {
  /** Total cost of a workspace's statements; divided by `divisor` while several are served. */
  readonly perWorkspace: number;
  /** The workspaces that any pool served lately. Absent: the pool serves a single tenant. */
  readonly sharing?: { readonly activeWorkspaces: ActiveKeys; readonly divisor: number };
  readonly queueMax: number;
  readonly statementTimeoutMs: number;
  /** Silence after which a resource counts as slow (resource-health.ts). */
  readonly quietMs: number;
}

/** `checkMarks` gets the server's marks when the statement has ended; a throw rejects the run. */
export interface CheckedRun extends Omit<Run, 'marks'> {
  readonly checkMarks?: ((marks: readonly TextRow[]) => void) | undefined;
}

export interface RunOptions {
  readonly waitMs: number;
  /** Aborts the wait and the statement. */
  readonly signal?: AbortSignal | undefined;
  /** The statement continues a page. A full queue does not refuse it, because large pages have a bound of their own. */
  readonly isContinuation?: boolean;
  /** The statement reads a chunk of a large page. Few of them run while single records are read. */
  readonly isChunk?: boolean;
  /** A backend that is silent for longer counts as lost; absent: no bound. */
  readonly stallMsMax?: number | undefined;
  /** Part of perWorkspace that the statement takes; default 1. */
  readonly cost?: number;
}

/** The resource is empty for transactions of the gateway itself. */
export interface Lease {
  readonly workspace: string;
  readonly resource: string;
  /** Longest wait for a connection. */
  readonly waitMs: number;
  /** Start of the transaction by the loop's clock. */
  readonly atMs: number;
}

/** An `onRow` returns this symbol to end the statement. */
export const enough = Symbol('enough');
type OnRow = (row: Row) => unknown;
type StartWork<T> = (connection: Connection) => Promise<T>;

/** Chunks of large pages are capped for this long after the last short statement. */
const cappedMs = 1000;
/** While all connections are reserved, a statement waits at least this long for a new one. */
const openingMsMax = 1000;

/** A statement whose client left may run on for this long: most end sooner, and a new connection costs more. */
const abandonedMsMax = 100;
/** A trial statement ends by lock_timeout, which is shorter; this limit ends one whose server is silent. */
const trialMsMax = 3000;

/**
 * A bounded set of connections to one server, with a bounded, fair queue. Short statements share connections by pipelining
 * (depth > 1). A long statement has a connection to itself (depth 1), so that it can be ended when its client disconnects.
 *
 * The way of a statement:
 * 1. `run` refuses it at once while a lock holds its resource on this server.
 * 2. `#enter` admits it if its workspace has units left, its resource has room, and a connection has fewer statements than `depth`.
 *    Otherwise it waits, for `waitMs` at most, in the lane of its resource and workspace (flow/gate.ts).
 * 3. `#start` sends it behind the statements that the connection has in flight. Its rows go to `onRow`.
 * 4. `#sweep` looks at it every 50 ms. After `quietMs` without a byte, the connection is reserved for its resource (resource-health.ts),
 *    and the statements behind it move to other connections. At its end it gives its units back, and the gate begins the next one.
 */
export class ConnectionPool {
  readonly #connections: ConnectionSet;
  readonly #gate: Gate;
  readonly #sweeper: NodeJS.Timeout;
  #chunksRunning = 0;
  readonly #resources = new Map<string, ResourceHealth>();
  /** Start of the last statement of a workspace. */
  #lastStartMs = Number.NEGATIVE_INFINITY;

  constructor(
    private readonly limits: PoolLimits,
    connect: Connect,
    private readonly server: ServerHealth,
    private readonly shortPool?: ConnectionPool, // on the same server
  ) {
    server.onLock.push((resource) => this.#gate.failAll(new ResourceLocked(), this.#getHealth(resource)));
    const { perWorkspace, sharing, queueMax } = limits;
    this.#gate = new Gate({
      share: () => (sharing?.activeWorkspaces.areSeveral ? perWorkspace / sharing.divisor : perWorkspace),
      queueMax,
      makeRoom: () => {
        this.#connections.grow();
        return this.#connections.find() !== null;
      },
      // Without a usable connection the server is at fault, and another can answer.
      makeRefusal: (reason, resource) => {
        if (reason === 'late' && !this.#connections.isUsable) return new ConnectionLost('no connection in time');
        return (resource as ResourceHealth).state === 'slow'
          ? new Shortage('slow resource')
          : new Shortage('no connection');
      },
    });
    this.#connections = new ConnectionSet(limits, connect, this.#gate);
    const sweepMs = Math.min(50, limits.statementTimeoutMs / 4);
    this.#sweeper = setInterval(() => void drainSocketReads().then(() => this.#sweep()), sweepMs).unref();
  }

  get openCount(): number {
    return this.#connections.size;
  }

  get waiting(): number {
    return this.#gate.waiting;
  }

  get inFlight(): number {
    return [...this.#connections].reduce((sum, connection) => sum + connection.inFlight, 0);
  }

  /** Resolves with false after `enough`, which ends the connection. Rejects with Problem `overloaded` when none is free in time. */
  run(run: CheckedRun, options: RunOptions, onRow: OnRow): Promise<boolean> {
    return traceSql([run.statement], () => this.#run(run, options, onRow));
  }

  #run(run: CheckedRun, options: RunOptions, onRow: OnRow): Promise<boolean> {
    const workspace = run.workspace ?? '';
    if (workspace !== '') this.limits.sharing?.activeWorkspaces.touch(workspace);
    const resource = this.#getHealth(getResourceName(run.statement));
    if (this.server.locks.has(resource.name)) return Promise.reject(new ResourceLocked());
    return this.#enter(workspace, resource, options, (connection) => this.#start(connection, run, options, onRow));
  }

  /** Leases a connection for several round trips. Gives it up when statementTimeoutMs have passed since `atMs`. Rejects as `run` does. */
  lease<T>({ workspace, resource: name, waitMs, atMs }: Lease, work: StartWork<T>): Promise<T> {
    const resource = this.#getHealth(name);
    const { connections, onOrphan } = this.limits;
    const max = resource.state === 'slow' ? this.#connections.slowMax : connections;
    if (onOrphan && this.#connections.count(({ isGivenUp }) => isGivenUp) >= max)
      return Promise.reject(new Shortage('slow resource'));
    return this.#enter(workspace, resource, { waitMs }, (connection) => {
      const end = this.#takeUnits(connection, resource, workspace);
      return connection.lease(() => work(connection), name, atMs).finally(end);
    });
  }

  #enter<T>(workspace: string, resource: ResourceHealth, options: RunOptions, begin: StartWork<T>): Promise<T> {
    const { signal, isContinuation = false } = options;
    // While all connections are reserved the pool opens another one. If that takes too long, the server is unreachable.
    const waitMs =
      this.#connections.reserved > 0 && !this.#connections.isUsable
        ? Math.max(options.waitMs, openingMsMax)
        : options.waitMs;
    if (signal?.aborted) return Promise.reject(signal.reason);
    // A statement of a slow resource gets an idle connection, so that no other statement waits behind it.
    const find = () => this.#connections.find(resource.state === 'slow' ? 1 : this.limits.depth);
    const hasShare = () => this.#hasShare(workspace, resource, options);
    if (hasShare()) {
      const connection = find();
      this.#connections.grow();
      if (connection !== null) return begin(connection);
    }
    // Each resource has a lane, and so have begun pages: a page that begins does not wait for all chunks of the workspace's other pages.
    const lane = `${resource.name} ${workspace}${isContinuation ? ' continuations' : ''}`;
    const waiting = { lane, group: resource, waitMs, signal, isExempt: isContinuation };
    const mayBegin = () => hasShare() && (resource.state !== 'slow' || find() !== null);
    return this.#gate.wait(mayBegin, () => begin(find() as Connection), waiting);
  }

  /** Opens a connection, so that the first statement does not wait for a login. */
  warm(): void {
    this.#connections.grow();
  }

  /** Rejects statements in flight and in the queue at once, so that another replica can repeat them. */
  reset(): void {
    this.#connections.reset();
    this.#gate.failAll(new ConnectionLost('the replica was taken out'));
    this.settle(new Set()); // statements on the old server do not count any more
  }

  /** Replaces the connections; statements in flight end on the old ones. */
  renew(): void {
    this.#connections.renew();
  }

  close(): void {
    clearInterval(this.#sweeper);
    this.#connections.close();
    this.#gate.failAll(new Shortage('stopping'));
  }

  /** A statement waits on the server, or the server may hold one whose connection ended. */
  get hasPending(): boolean {
    return this.#connections.count(({ reservedFor, hasEnded }) => reservedFor !== null || hasEnded) > 0;
  }

  /** Tells which backends the server holds (connection-set.ts). Then waiting statements begin. */
  settle(pids: ReadonlySet<number> | null): void {
    this.#connections.settle(pids);
    this.#connections.growIfAwaited();
    this.#gate.serve();
  }

  #getHealth(resource: string): ResourceHealth {
    const known = this.#resources.get(resource) ?? new ResourceHealth(resource, this.server);
    this.#resources.set(resource, known);
    return known;
  }

  /** A look-up of a token has no workspace, so it counts against no share. */
  #hasShare(workspace: string, resource: ResourceHealth, options: RunOptions): boolean {
    if (workspace !== '' && this.#gate.isFull(workspace)) return false;
    if (options.isChunk && this.#areChunksCapped(options)) return false;
    return this.#connections.countRoom(resource) > 0;
  }

  /** While single records are read, chunks of large pages get a quarter of the connections, and the first chunk of a page one more. */
  #areChunksCapped({ isContinuation = false }: RunOptions): boolean {
    const { connections } = this.limits;
    const chunksMax = Math.max(1, Math.floor(connections / 4)) + Number(!isContinuation);
    const pool = this.shortPool;
    const areRead = pool !== undefined && performance.now() - pool.#lastStartMs < cappedMs;
    return areRead && this.#chunksRunning >= chunksMax;
  }

  /** Takes units for work that begins on the connection. The returned function ends it. */
  #takeUnits(connection: Connection, resource: ResourceHealth, workspace: string, cost?: number): Release {
    const { loop } = this.server;
    const startedMs = loop.ranMs;
    if (resource.state === 'slow') this.#reserve(connection, resource);
    const release = this.#gate.take(workspace, cost);
    return () => {
      if (connection.isGivenUp && this.#connections.has(connection)) this.#reserve(connection, resource);
      else if (connection.inFlight === 0 && connection.reservedFor !== null) {
        resource.release(connection, loop.ranMs - startedMs > this.limits.quietMs);
        if (this.#connections.counted > this.limits.connections) connection.close(); // a connection beyond the bound was opened meanwhile
      }
      release();
    };
  }

  /** A reserved connection may no longer count against the bound: statements that wait get another one. */
  #reserve(connection: Connection, resource: ResourceHealth): void {
    resource.reserve(connection);
    this.#connections.growIfAwaited();
  }

  #start(connection: Connection, run: CheckedRun, options: RunOptions, onRow: OnRow): Promise<boolean> {
    const { signal, cost, stallMsMax, isChunk } = options;
    const isAlone = this.limits.depth === 1;
    const startedMs = performance.now();
    const resource = this.#getHealth(getResourceName(run.statement));
    const end = this.#takeUnits(connection, resource, run.workspace ?? '', cost);
    if (run.workspace !== null) this.#lastStartMs = startedMs;
    if (isChunk) this.#chunksRunning++;
    let isOver = false;
    const marks: TextRow[] | undefined = run.checkMarks && [];
    return new Promise<boolean>((resolve, reject) => {
      const takeRow = (row: Row): void => {
        if (isOver || signal?.aborted || onRow(row) !== enough) return;
        isOver = true;
        resolve(false);
        connection.endOldest();
      };
      // An aborted statement occupies its connection until it has ended, so that aborts open no connections beyond the bound.
      const abort = (): void => {
        connection.endIn(abandonedMsMax);
        reject(signal?.reason);
      };
      if (isAlone) signal?.addEventListener('abort', abort, { once: true });
      const finish = (error: Error | null): void => {
        signal?.removeEventListener('abort', abort);
        if (isChunk) this.#chunksRunning--;
        end();
        if (error === null) return resolve(marks === undefined || isOver || verifyMarks(run, marks));
        if (error instanceof StatementMoved) return resolve(this.#run(run, options, onRow));
        if (meetsLock(error)) void this.server.outwait(resource.name, () => this.#isLocked(run, resource));
        reject(this.#wasCancelled(error, startedMs) ? new StatementEnded() : error);
      };
      connection.start(marks ? { ...run, marks } : run, takeRow, finish, { stallMsMax, isAlone });
    });
  }

  /** pg_cancel_backend and statement_timeout have one SQLSTATE, and texts are localized. A timeout comes later. */
  #wasCancelled(error: Error, startedMs: number): boolean {
    const isEarly = performance.now() - startedMs < this.limits.statementTimeoutMs / 2;
    return isEarly && getErrorCode(error) === queryCanceled;
  }

  #sweep(): void {
    const { connections, quietMs, statementTimeoutMs } = this.limits;
    for (const connection of this.#connections) {
      const isQuiet = connection.checkProgress(quietMs, statementTimeoutMs);
      const mayReserve = connection.reservedFor === null && this.#connections.reserved < 2 * connections;
      if (!isQuiet || !mayReserve) continue;
      this.#reserve(connection, this.#getHealth(connection.resource));
      connection.moveOthers();
      this.#gate.serve();
    }
  }

  /** Repeats the statement on a connection of its own. It is locked if lock_timeout cancels it; a row, or another error, means no lock. */
  async #isLocked(run: CheckedRun, resource: ResourceHealth): Promise<boolean> {
    const set = this.#connections;
    const trial = set.isClosed ? null : await set.open(resource).catch(() => null);
    if (trial === null) return false;
    trial.giveUp();
    const error = await new Promise<Error | null>((resolve) => {
      trial.start(run, () => resolve(null), resolve, { isAlone: true });
      trial.endIn(trialMsMax);
    });
    trial.destroy();
    return meetsLock(error);
  }
}

async function verifyMarks({ checkMarks }: CheckedRun, marks: readonly TextRow[]): Promise<true> {
  checkMarks?.(marks);
  return true;
}

const meetsLock = (error: Error | null): boolean => error !== null && getErrorCode(error) === lockNotAvailable;
