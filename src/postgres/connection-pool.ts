import { setTimeout as sleep } from 'node:timers/promises';
import { ConnectionLost, lockNotAvailable, Problem, queryCanceled, StatementEnded } from '../base/errors.js';
import { drainSocketReads } from '../base/flow/event-loop.js';
import { type ActiveKeys, Gate } from '../base/flow/gate.js';
import { inSqlSpan } from '../base/tracing.js';
import { type Connect, type Connection, errorCode, type Run } from './connection.js';
import { type Locks, ResourceLocked } from './locks.js';
import type { Row } from './row.js';
import { resourceOf } from './statement.js';
import { StatementMoved } from './wire/queries.js';

/** Times in milliseconds. */
export interface PoolLimits {
  readonly connections: number;
  /** Statements in flight per connection. */
  readonly depth: number;
  /** Total cost of a workspace's statements; divided by `divisor` while several are served. */
  readonly perWorkspace: number;
  /** All pools share `activeWorkspaces`. Absent: the pool serves a single tenant. */
  readonly sharing?: { readonly activeWorkspaces: ActiveKeys; readonly divisor: number };
  readonly queueMax: number;
  /** Called when a connection ended without an answer, so that the server may hold its transaction; then `settle` is awaited. */
  readonly onOwed?: () => void;
  readonly statementTimeoutMs: number;
  readonly quietMs: number;
}

export interface RunOptions {
  readonly waitMs: number;
  /** Aborts the wait and the statement. */
  readonly signal?: AbortSignal | undefined;
  /** A full queue refuses no begun page: large pages have a bound of their own. */
  readonly isContinuation?: boolean;
  /** Few chunks of large pages run while details are read. */
  readonly isChunk?: boolean;
  /** A backend that is silent for longer is lost; absent: no bound. */
  readonly stallMsMax?: number | undefined;
  /** Share of perWorkspace; default 1. */
  readonly cost?: number;
}

/** A transaction. The resource is empty for the work of the gateway itself. */
export interface Held {
  readonly workspace: string;
  readonly resource: string;
  /** For a connection. */
  readonly waitMs: number;
  readonly atMs: number;
}

/** Returned by an `onRow` that takes no further row. */
export const enough = Symbol('enough');
type OnRow = (row: Row) => unknown;

/** Otherwise waiting statements would try the next login at once. */
const failedLoginPauseMs = 50;
/** After a short statement chunks leave room for so long. */
const detailsMs = 1000;
/** An aborted statement may run for so long: most end sooner, and a new connection costs more. */
const abandonedMsMax = 100;

/** Longest wait for a first connection that is not aside. */
const openingMsMax = 1000;

/** For how long after a quiet statement its resource keeps separate connections. */
const slowMs = 1000;
/** Pause before a statement that looks for the end of a lock, and its longest time, which is more than lock_timeout. */
const [trialPauseMs, trialMsMax] = [100, 3000];

/**
 * A bounded set of connections to one server, with a bounded, fair queue. Short statements share connections by pipelining
 * (depth > 1). A long statement has a connection to itself (depth 1), so that it can be ended when its client disconnects.
 *
 * A statement that gets no byte for quietMs, because of a lock or a slow plan, is set aside: its connection no longer counts against the bound,
 * and the statements after it go elsewhere. Until it ends, its resource leaves the pool's connections to the others: slow resources together begin
 * statements on as many connections aside as the pool has. At most twice the bound is aside, so that a resource that turns slow finds room. After a
 * lock_timeout its resource is locked: only one statement, on a connection of its own, waits for the end of the lock, and all others are refused at once.
 *
 * With `onOwed` the bound counts what the server holds: connections aside, and transactions that it has not answered, whether the gateway gave them up or
 * their connection ended. Slow resources together have half of it, each other one half of the rest, and where all of it is unanswered a
 * transaction is refused at once.
 */
export class ConnectionPool {
  readonly #limits: PoolLimits;
  readonly #connect: Connect;
  /** The pool of short statements on the same server. */
  readonly #shortPool: ConnectionPool | undefined;
  readonly #connections = new Set<Connection>();
  readonly #gate: Gate;
  /** The connection of the entry that the gate lets in, unless it is slow. */
  #free: Connection | null = null;
  readonly #sweeper: NodeJS.Timeout;
  #opening = 0;
  /** Connections asked for before a reset can lead to a server that is the primary no more. */
  #resets = 0;
  #closed = false;
  #chunksRunning = 0;
  readonly #locks: Locks;
  /** The connections set aside, with the resource of their statement. */
  readonly #aside = new Map<Connection, string>();
  /** Given up, with their resources, until the server answers. */
  readonly #givenUp = new Map<Connection, string>();
  /** Backends of connections that ended without an answer; whether the server was seen to hold them. */
  readonly #owed = new Map<number, boolean>();
  /** Until when a resource counts as slow. */
  readonly #slowUntilMs = new Map<string, number>();
  /** Connections that look for the end of a lock. */
  readonly #trials = new Set<Connection>();
  /** When the last statement of a workspace began. */
  #startedMs = Number.NEGATIVE_INFINITY;

  constructor(limits: PoolLimits, connect: Connect, locks: Locks, shortPool?: ConnectionPool) {
    this.#limits = limits;
    this.#locks = locks;
    locks.listen((resource) => this.#gate.failAll(new ResourceLocked(), (lane) => lane.startsWith(`${resource} `)));
    this.#connect = connect;
    this.#shortPool = shortPool;
    const { perWorkspace, sharing, queueMax } = limits;
    this.#gate = new Gate({
      share: () => (sharing?.activeWorkspaces.areSeveral ? perWorkspace / sharing.divisor : perWorkspace),
      queueMax,
      isOpen: () => {
        this.#free = this.#leastBusy();
        return this.#free !== null;
      },
      // Without a usable connection the server is at fault, and another can answer.
      refusal: (reason, lane) => {
        if (reason === 'late' && !this.#isUsable) return new ConnectionLost('no connection in time');
        return this.#isSlow(lane.split(' ')[0] as string) ? slow() : overloaded();
      },
    });
    const sweepMs = Math.min(50, limits.statementTimeoutMs / 4);
    this.#sweeper = setInterval(() => void drainSocketReads().then(() => this.#sweep()), sweepMs).unref();
  }

  get open(): number {
    return this.#connections.size;
  }

  get waiting(): number {
    return this.#gate.waiting;
  }

  get inFlight(): number {
    return [...this.#connections].reduce((sum, connection) => sum + connection.inFlight, 0);
  }

  /** Resolves with false after `enough`, which ends the connection. Rejects with Problem `overloaded` when none is free in time. */
  run(run: Run, options: RunOptions, onRow: OnRow): Promise<boolean> {
    return inSqlSpan([run.statement], () => this.#run(run, options, onRow));
  }

  #run(run: Run, options: RunOptions, onRow: OnRow): Promise<boolean> {
    const workspace = run.workspace ?? '';
    if (workspace !== '') this.#limits.sharing?.activeWorkspaces.touch(workspace);
    const resource = resourceOf(run.statement);
    if (this.#locks.has(resource)) return Promise.reject(new ResourceLocked());
    return this.#enter(workspace, resource, options, (connection) => this.#start(connection, run, options, onRow));
  }

  /** For several round trips. Destroys the connection when more than statementTimeoutMs passed since `atMs`. Rejects as `run` does. */
  hold<T>(held: Held, work: (connection: Connection) => Promise<T>): Promise<T> {
    const { workspace, resource, waitMs, atMs } = held;
    if (this.#isSpent(resource)) return Promise.reject(slow());
    return this.#enter(workspace, resource, { waitMs }, async (connection) => {
      const startedMs = performance.now();
      if (this.#isSlow(resource)) this.#aside.set(connection, resource);
      const release = this.#gate.take(workspace);
      return connection
        .hold(() => work(connection), resource, atMs)
        .finally(() => {
          if (connection.isGivenUp && this.#connections.has(connection)) this.#givenUp.set(connection, resource);
          this.#takeBack(connection, startedMs);
          release();
        });
    });
  }

  /** Now or after a wait. */
  #enter<T>(
    workspace: string,
    resource: string,
    options: RunOptions,
    begin: (connection: Connection) => Promise<T>,
  ): Promise<T> {
    const { signal, isContinuation = false } = options;
    // While all connections are aside the pool opens another one: if that fails, the server is unreachable.
    const waitMs = this.#aside.size > 0 && !this.#isUsable ? Math.max(options.waitMs, openingMsMax) : options.waitMs;
    if (signal?.aborted) return Promise.reject(signal.reason);
    const free = this.#mayStart(workspace, resource, options) ? this.#leastBusy(this.#depthOf(resource)) : null;
    if (free !== null) return begin(free);
    // A page that begins does not wait for all chunks of the workspace's other pages, and no resource for another one.
    const lane = `${resource} ${workspace}${isContinuation ? ' continuations' : ''}`;
    return this.#gate.wait(
      () => this.#mayStart(workspace, resource, options),
      () => begin(this.#isSlow(resource) ? (this.#leastBusy(1) as Connection) : (this.#free as Connection)),
      { lane, waitMs, signal, isExempt: isContinuation },
    );
  }

  /** So that the first statement does not wait for a login. */
  warm(): void {
    if (this.#connections.size + this.#opening === 0) void this.#openOne();
  }

  /** Statements in flight and in the queue reject at once, so that another replica can repeat them. */
  reset(): void {
    this.#resets++;
    this.#owed.clear(); // another server is asked from now on
    for (const connection of [...this.#connections, ...this.#trials]) connection.destroy();
    this.#gate.failAll(new ConnectionLost('the replica was taken out'));
  }

  /** Statements in flight end on the old connections. */
  renew(): void {
    for (const connection of this.#connections) connection.close();
  }

  close(): void {
    this.#closed = true;
    clearInterval(this.#sweeper);
    this.renew();
    for (const connection of [...this.#trials, ...this.#givenUp.keys()]) connection.destroy();
    this.#gate.failAll(new Problem('overloaded', 'The gateway is stopping.'));
  }

  /** Whether a statement waits, or the server may hold one. */
  get isHeldUp(): boolean {
    return this.#aside.size + this.#givenUp.size + this.#owed.size > 0;
  }

  /** `pids`: the backends of this login that the server has; null where a pooler hides them. */
  settle(pids: ReadonlySet<number> | null): void {
    for (const pid of [...this.#owed.keys()])
      if (pids?.has(pid)) this.#owed.set(pid, true);
      else this.#owed.delete(pid);
    for (const connection of this.#givenUp.keys())
      if (pids !== null && !pids.has(connection.pid as number)) connection.destroy();
    this.#gate.serve();
  }

  get #countsBackends(): boolean {
    return this.#limits.onOwed !== undefined;
  }

  /** Connections of slow resources together. */
  get #slowMax(): number {
    const { connections } = this.#limits;
    return this.#countsBackends ? Math.max(1, Math.floor(connections / 2)) : connections;
  }

  /** Whether the server has not answered on all connections that the resource may have. */
  #isSpent(resource: string): boolean {
    const owed = [...this.#owed.values()].filter(Boolean).length;
    const max = this.#isSlow(resource) ? this.#slowMax : this.#limits.connections;
    return this.#countsBackends && this.#givenUp.size + owed >= max;
  }

  /** Token look-ups have no workspace, and count against no share. */
  #mayStart(workspace: string, resource: string, options: RunOptions): boolean {
    if (workspace !== '' && this.#gate.isFull(workspace)) return false;
    if (options.isChunk && this.#chunksAreCapped(options)) return false;
    if (!this.#isSlow(resource)) return this.#leavesRoom(resource);
    return this.#aside.size + this.#givenUp.size < this.#slowMax && this.#leastBusy(1) !== null;
  }

  /** Beside slow ones each resource has half of the bound's rest: another one can turn slow, and keep its connections. */
  #leavesRoom(resource: string): boolean {
    if (!this.#countsBackends || this.#aside.size + this.#givenUp.size === 0) return true;
    const running = [...this.#connections].filter((connection) => connection.resource === resource).length;
    return running < Math.max(1, Math.floor((this.#limits.connections - this.#slowMax) / 2));
  }

  #isSlow(resource: string): boolean {
    if (performance.now() < (this.#slowUntilMs.get(resource) ?? 0)) return true;
    return [this.#aside, this.#givenUp].some((held) => held.size > 0 && [...held.values()].includes(resource));
  }

  /** Statements on the connection of one of the resource: a slow one has no other behind it. */
  #depthOf(resource: string): number {
    return this.#isSlow(resource) ? 1 : this.#limits.depth;
  }

  /** Whether a connection takes statements, now or later. */
  get #isUsable(): boolean {
    return [...this.#connections].some((each) => each.usable && !this.#aside.has(each));
  }

  /** Connections against the bound. */
  get #counted(): number {
    const beyond = this.#countsBackends ? -this.#owed.size : this.#aside.size;
    return this.#connections.size - beyond + this.#opening;
  }

  /** While details are read, chunks of large pages get a quarter of the connections, and one more may begin a page. */
  #chunksAreCapped({ isContinuation = false }: RunOptions): boolean {
    const { connections } = this.#limits;
    const chunksMax = Math.max(1, Math.floor(connections / 4)) + Number(!isContinuation);
    const pool = this.#shortPool;
    const areRead = pool !== undefined && performance.now() - pool.#startedMs < detailsMs;
    return areRead && this.#chunksRunning >= chunksMax;
  }

  /** Returns the usable connection with the fewest statements in flight, less than `depth`, and opens another when none is idle. */
  #leastBusy(depth = this.#limits.depth): Connection | null {
    let best: Connection | null = null;
    for (const connection of this.#connections) {
      if (
        connection.usable &&
        !this.#aside.has(connection) &&
        connection.inFlight < depth &&
        connection.inFlight < (best?.inFlight ?? Infinity)
      ) {
        best = connection;
      }
    }
    if ((best === null || best.inFlight > 0) && this.#counted < this.#limits.connections) void this.#openOne();
    return best;
  }

  #start(connection: Connection, run: Run, options: RunOptions, onRow: OnRow): Promise<boolean> {
    const { signal, cost, stallMsMax, isChunk } = options;
    const isAlone = this.#limits.depth === 1;
    const startedMs = performance.now();
    const resource = resourceOf(run.statement);
    if (this.#isSlow(resource)) this.#aside.set(connection, resource);
    const release = this.#gate.take(run.workspace ?? '', cost);
    if (run.workspace !== null) this.#startedMs = startedMs;
    if (isChunk) this.#chunksRunning++;
    let isOver = false;
    return new Promise<boolean>((resolve, reject) => {
      const take = (row: Row): void => {
        if (isOver || signal?.aborted || onRow(row) !== enough) return;
        isOver = true;
        resolve(false);
        connection.endOldest();
      };
      let grace: NodeJS.Timeout | undefined;
      // Free only once the statement ended, so that aborts open no more than the bound. A CancelRequest could hit the next statement.
      const abort = (): void => {
        grace = setTimeout(() => connection.destroy(), abandonedMsMax);
        reject(signal?.reason);
      };
      if (isAlone) signal?.addEventListener('abort', abort, { once: true });
      const done = (error: Error | null): void => {
        clearTimeout(grace);
        signal?.removeEventListener('abort', abort);
        if (isChunk) this.#chunksRunning--;
        if (connection.inFlight === 0) this.#takeBack(connection, startedMs);
        release();
        if (error === null) return resolve(true);
        if (error instanceof StatementMoved) return resolve(this.#run(run, options, onRow));
        if (meetsLock(error) && this.#locks.add(resource)) void this.#outwait(run);
        const isEarly = performance.now() - startedMs < this.#limits.statementTimeoutMs / 2;
        // Also of pg_cancel_backend: only a localized text tells them apart.
        const isCancelled = isEarly && errorCode(error) === queryCanceled;
        reject(isCancelled ? new StatementEnded() : error);
      };
      connection.start(run, take, done, stallMsMax, isAlone);
    });
  }

  async #openOne(): Promise<void> {
    this.#opening++;
    const resets = this.#resets;
    try {
      const connection = await this.#connect();
      this.#connections.add(connection);
      connection.onEnd = () => {
        this.#connections.delete(connection);
        this.#aside.delete(connection);
        this.#givenUp.delete(connection);
        if (connection.inFlight > 0 && resets === this.#resets) this.#owe(connection.pid);
        if (this.#gate.waiting > 0) this.#leastBusy();
      };
      if (this.#closed || resets !== this.#resets) connection.close();
    } catch (error) {
      // Waiters then try another server at once.
      if (!this.#isUsable) this.#gate.failAll(error as Error);
      else await sleep(failedLoginPauseMs, undefined, { ref: false });
    } finally {
      this.#opening--;
    }
    this.#gate.serve();
  }

  #owe(pid: number | null): void {
    if (pid === null || this.#closed || !this.#countsBackends) return;
    this.#owed.set(pid, false);
    this.#limits.onOwed?.();
  }

  #sweep(): void {
    const { connections, quietMs, statementTimeoutMs } = this.#limits;
    const now = performance.now();
    for (const connection of this.#connections) {
      connection.endIfOverdue(now, statementTimeoutMs);
      const resource = connection.quietResource(now, quietMs);
      if (resource === null || this.#aside.size >= 2 * connections || this.#aside.has(connection)) continue;
      this.#aside.set(connection, resource);
      connection.moveOthers();
      this.#gate.serve();
    }
  }

  /** Takes a connection back when its statement has ended; one too many closes. */
  #takeBack(connection: Connection, startedMs: number): void {
    const resource = this.#aside.get(connection);
    if (resource === undefined) return;
    const nowMs = performance.now();
    if (nowMs - startedMs > this.#limits.quietMs) this.#slowUntilMs.set(resource, nowMs + slowMs);
    this.#aside.delete(connection);
    if (this.#counted > this.#limits.connections) connection.close();
  }

  /** Repeats a statement that met a lock, until it meets none: then its resource is read again. */
  async #outwait(run: Run): Promise<void> {
    do await sleep(trialPauseMs, undefined, { ref: false });
    while (!this.#closed && (await this.#meetsLock(run)));
    this.#locks.delete(resourceOf(run.statement));
  }

  /** Whether the statement is cancelled by lock_timeout. Its first row, and any other fault, shows that it is not. */
  async #meetsLock(run: Run): Promise<boolean> {
    const trial = await this.#connect().catch(() => null);
    if (trial === null) return false;
    this.#trials.add(trial);
    const deadline = setTimeout(() => trial.destroy(), trialMsMax);
    const error = await new Promise<Error | null>((resolve) => {
      trial.start({ ...run, onMark: undefined }, () => resolve(null), resolve, undefined, true);
    });
    clearTimeout(deadline);
    trial.destroy();
    this.#trials.delete(trial);
    return meetsLock(error);
  }
}

const meetsLock = (error: Error | null): boolean => error !== null && errorCode(error) === lockNotAvailable;

function slow(): Problem {
  return new Problem('replica_unavailable', 'The database answers too slowly for this resource now; try again.');
}

function overloaded(): Problem {
  return new Problem('overloaded', 'No database connection became free in time.');
}
