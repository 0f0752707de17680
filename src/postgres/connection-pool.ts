import { setTimeout as sleep } from 'node:timers/promises';
import { ConnectionLost, Problem, StatementEnded } from '../base/errors.js';
import { drainSocketReads } from '../base/flow/event-loop.js';
import { type ActiveKeys, Gate } from '../base/flow/gate.js';
import { inSqlSpan } from '../base/tracing.js';
import { type Connect, type Connection, errorCode, type Run } from './connection.js';
import type { Row } from './row.js';

/** Bounds of a pool; times in milliseconds. */
export interface PoolLimits {
  readonly connections: number;
  /** Statements in flight per connection. */
  readonly depth: number;
  /** Total cost of a workspace's statements in flight; divided by `divisor` while several workspaces are served. */
  readonly perWorkspace: number;
  /** `activeWorkspaces` is that of all pools. Absent: the pool serves a single tenant. */
  readonly sharing?: { readonly activeWorkspaces: ActiveKeys; readonly divisor: number };
  readonly queueMax: number;
  readonly statementTimeoutMs: number;
}

/** How to run a statement. */
export interface RunOptions {
  /** How long to wait for a connection. */
  readonly waitMs: number;
  /** Aborts the wait and the statement. */
  readonly signal?: AbortSignal | undefined;
  /** A full queue refuses no page that has begun, because the number of large pages has a bound of its own. */
  readonly isContinuation?: boolean;
  /** Whether it reads a part of a large page: few of these run at a time while details are read. */
  readonly isChunk?: boolean;
  /** How long the backend may send nothing before the statement rejects as lost; absent: no bound. */
  readonly stallMsMax?: number | undefined;
  /** Share of perWorkspace that the statement takes; default 1. */
  readonly cost?: number;
}

/** An `onRow` returns it when it takes no further row. */
export const enough = Symbol('enough');
type OnRow = (row: Row) => unknown;

/** SQLSTATE of statement_timeout and of pg_cancel_backend; PostgreSQL tells them apart only by a text in its own language. */
const queryCanceled = '57014';
/** Pause after a login that failed while other connections live: waiting statements would have the next one tried at once. */
const failedLoginPauseMs = 50;
/** For how long after a short statement chunks leave room for the next ones. */
const detailsMs = 1000;
/** How long a statement may run after its request was aborted: most end sooner, and a new connection costs more than their rest. */
const abandonedMsMax = 100;

/**
 * A bounded set of connections to one server, with a bounded, fair queue. Short statements share connections by pipelining
 * (depth > 1). A long statement has a connection to itself (depth 1), so that it can be ended when its client disconnects.
 */
export class ConnectionPool {
  readonly #limits: PoolLimits;
  readonly #connect: Connect;
  /** The pool of the short statements on the same server. */
  readonly #details: ConnectionPool | undefined;
  readonly #connections = new Set<Connection>();
  /** By workspace. */
  readonly #gate: Gate;
  /** The connection of the entry that the gate lets in. */
  #free: Connection | null = null;
  readonly #sweeper: NodeJS.Timeout;
  #opening = 0;
  /** Counts the calls of `reset`: a connection that was asked for before one can lead to a server that is the primary no more. */
  #resets = 0;
  #closed = false;
  #chunksRunning = 0;
  /** When the last statement of a workspace began. */
  #startedMs = Number.NEGATIVE_INFINITY;

  constructor(limits: PoolLimits, connect: Connect, details?: ConnectionPool) {
    this.#limits = limits;
    this.#connect = connect;
    this.#details = details;
    const { perWorkspace, sharing, queueMax } = limits;
    this.#gate = new Gate({
      share: () => (sharing?.activeWorkspaces.areSeveral ? perWorkspace / sharing.divisor : perWorkspace),
      queueMax,
      isOpen: () => {
        this.#free = this.#leastBusy();
        return this.#free !== null;
      },
      // Without any usable connection the server is at fault, and another can answer; with connections the gateway is overloaded.
      refusal: (reason) =>
        reason === 'late' && ![...this.#connections].some(({ usable }) => usable)
          ? new ConnectionLost('no connection in time')
          : overloaded(),
    });
    const sweepMs = Math.min(250, limits.statementTimeoutMs / 4);
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

  /**
   * Runs one statement. Resolves with false when `onRow` returned `enough`, which ends the connection: PostgreSQL would send the other rows.
   * Rejects with Problem `overloaded` when no connection is free in time.
   */
  run(run: Run, options: RunOptions, onRow: OnRow): Promise<boolean> {
    return inSqlSpan([run.statement], () => this.#run(run, options, onRow));
  }

  #run(run: Run, options: RunOptions, onRow: OnRow): Promise<boolean> {
    const workspace = run.workspace ?? '';
    if (workspace !== '') this.#limits.sharing?.activeWorkspaces.touch(workspace);
    return this.#enter(workspace, options, (connection) => this.#start(connection, run, options, onRow));
  }

  /**
   * Gives a connection to `work` for several round trips. It is destroyed when more than statementTimeoutMs have passed since `atMs`.
   * Rejects as `run` does.
   */
  hold<T>(workspace: string, waitMs: number, atMs: number, work: (connection: Connection) => Promise<T>): Promise<T> {
    return this.#enter(workspace, { waitMs }, async (connection) => {
      const release = this.#gate.take(workspace);
      return connection.hold(() => work(connection), atMs).finally(release);
    });
  }

  /** Begins on a connection that is free, now or after a wait. */
  #enter<T>(workspace: string, options: RunOptions, begin: (connection: Connection) => Promise<T>): Promise<T> {
    const { waitMs, signal, isContinuation = false } = options;
    if (signal?.aborted) return Promise.reject(signal.reason);
    const free = this.#mayStart(workspace, options) ? this.#leastBusy() : null;
    if (free !== null) return begin(free);
    // A page that begins waits for queueWaitMs only, so it does not queue behind the chunks of the workspace's other pages.
    const lane = isContinuation ? `${workspace} continuations` : workspace;
    return this.#gate.wait(
      () => this.#mayStart(workspace, options),
      () => begin(this.#free as Connection),
      { lane, waitMs, signal, isExempt: isContinuation },
    );
  }

  /** Opens a first connection, so that the first statement does not wait for a login. */
  warm(): void {
    if (this.#connections.size + this.#opening === 0) void this.#openOne();
  }

  /** Breaks every connection. Statements in flight and in the queue reject at once, so that another replica can repeat them. */
  reset(): void {
    this.#resets++;
    for (const connection of this.#connections) connection.destroy();
    this.#gate.failAll(new ConnectionLost('the replica was taken out'));
  }

  /** Replaces every connection; statements in flight end on the old connections. */
  renew(): void {
    for (const connection of this.#connections) connection.close();
  }

  close(): void {
    this.#closed = true;
    clearInterval(this.#sweeper);
    this.renew();
    this.#gate.failAll(new Problem('overloaded', 'The gateway is stopping.'));
  }

  /** Statements without a workspace, such as token look-ups, count against no share. */
  #mayStart(workspace: string, options: RunOptions): boolean {
    return (workspace === '' || !this.#gate.isFull(workspace)) && !(options.isChunk && this.#isBusy(options));
  }

  /**
   * While details are read, a quarter of the connections run chunks of large pages, because each keeps a processor of the server busy; one
   * more may begin a page, which is refused after a short wait.
   */
  #isBusy({ isContinuation = false }: RunOptions): boolean {
    const { connections } = this.#limits;
    const chunksMax = Math.max(1, Math.floor(connections / 4)) + Number(!isContinuation);
    const details = this.#details;
    const areRead = details !== undefined && performance.now() - details.#startedMs < detailsMs;
    return areRead && this.#chunksRunning >= chunksMax;
  }

  /** Returns the usable connection with the fewest statements in flight, and opens another when none is idle. */
  #leastBusy(): Connection | null {
    let best: Connection | null = null;
    for (const connection of this.#connections) {
      if (
        connection.usable &&
        connection.inFlight < this.#limits.depth &&
        connection.inFlight < (best?.inFlight ?? Infinity)
      ) {
        best = connection;
      }
    }
    if ((best === null || best.inFlight > 0) && this.#connections.size + this.#opening < this.#limits.connections)
      void this.#openOne();
    return best;
  }

  #start(connection: Connection, run: Run, options: RunOptions, onRow: OnRow): Promise<boolean> {
    const { signal, cost, stallMsMax, isChunk } = options;
    const isAlone = this.#limits.depth === 1;
    const startedMs = performance.now();
    const release = this.#gate.take(run.workspace ?? '', cost);
    if (run.workspace !== null) this.#startedMs = startedMs;
    if (isChunk) this.#chunksRunning++;
    let isOver = false;
    return new Promise<boolean>((resolve, reject) => {
      const take = (row: Row): void => {
        if (isOver || signal?.aborted || onRow(row) !== enough) return;
        isOver = true;
        resolve(false);
        connection.destroy();
      };
      let grace: NodeJS.Timeout | undefined;
      // The connection is free only once the statement or the connection has ended, so that many aborts open no more than the pool's bound.
      // No CancelRequest is sent: it could hit the backend's next statement.
      const abort = (): void => {
        grace = setTimeout(() => connection.destroy(), abandonedMsMax);
        reject(signal?.reason);
      };
      if (isAlone) signal?.addEventListener('abort', abort, { once: true });
      const done = (error: Error | null): void => {
        clearTimeout(grace);
        signal?.removeEventListener('abort', abort);
        if (isChunk) this.#chunksRunning--;
        release();
        if (error === null) return resolve(true);
        const isEarly = performance.now() - startedMs < this.#limits.statementTimeoutMs / 2;
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
        if (this.#gate.waiting > 0) this.#leastBusy();
      };
      if (this.#closed || resets !== this.#resets) connection.close();
    } catch (error) {
      // Without any connection waiters try another server at once.
      if (this.#connections.size === 0) this.#gate.failAll(error as Error);
      else await sleep(failedLoginPauseMs, undefined, { ref: false });
    } finally {
      this.#opening--;
    }
    this.#gate.serve();
  }

  #sweep(): void {
    const now = performance.now();
    for (const connection of this.#connections) connection.destroyIfOverdue(now, this.#limits.statementTimeoutMs);
  }
}

function overloaded(): Problem {
  return new Problem('overloaded', 'No database connection became free in time.');
}
