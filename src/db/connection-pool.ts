import { Problem } from '../errors.js';
import type { ActiveKeys } from './active-keys.js';
import { type Connect, type Connection, ConnectionLost, errorCode, type Run } from './connection.js';
import { SpreadCalls, untilSocketsRead } from './event-loop.js';
import { FairQueue } from './fair-queue.js';
import { KeyedSemaphore } from './keyed-semaphore.js';
import type { Row } from './row.js';
import { inStatementSpan } from './statement-span.js';

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
  /** Whether it reads a part of a large page: these take turns while short statements come (chunk-turns.ts). */
  readonly takesTurns?: boolean;
  /** How long the backend may send nothing before the statement rejects as lost; absent: no bound. */
  readonly stallMsMax?: number | undefined;
  /** Share of perWorkspace that the statement takes; default 1. */
  readonly cost?: number;
  /** Rows whose bytes may gather before they are read (read-pace.ts), where the statement has a connection to itself. */
  readonly gatheredRows?: number | undefined;
}

/** Decides when statements begin, beside the limits of their pool. */
export interface Gate {
  readonly admits: (options: RunOptions) => boolean;
  /** Notes that a statement begins; returns the function to call when it has ended. */
  readonly enter: (run: Run, options: RunOptions) => () => void;
}

interface Waiter {
  readonly workspace: string;
  readonly options: RunOptions;
  /** Starts the statement at once, so that its slot is taken before the next waiter is considered. */
  readonly start: (connection: Connection) => void;
  readonly fail: (error: Error) => void;
}

/** SQLSTATE of statement_timeout and of pg_cancel_backend; before the time limit it can only be the latter. */
const queryCanceled = '57014';

/**
 * A timer that fires later than this shows a busy process, which has not read the answers that free connections: the statement
 * then waits once more, for as long as the timer was late.
 */
const lateMsMin = 50;

/** How long a statement may run after its request was aborted: most end sooner, and their connection is kept. */
const abandonedMsMax = 100;

/**
 * A bounded set of connections to one server, with a bounded, fair queue. Short statements share connections by pipelining
 * (depth > 1). A long statement has a connection to itself (depth 1), so that it can be ended when its client disconnects.
 */
export class ConnectionPool {
  readonly #limits: PoolLimits;
  readonly #connect: Connect;
  readonly #gate: Gate | undefined;
  readonly #connections = new Set<Connection>();
  readonly #queue = new FairQueue<Waiter>();
  readonly #refusals = new SpreadCalls();
  readonly #shares: KeyedSemaphore;
  readonly #sweeper: NodeJS.Timeout;
  #opening = 0;
  #closed = false;

  constructor(limits: PoolLimits, connect: Connect, gate?: Gate) {
    this.#limits = limits;
    this.#connect = connect;
    this.#gate = gate;
    const { perWorkspace, sharing } = limits;
    this.#shares = new KeyedSemaphore(() =>
      sharing?.activeWorkspaces.areSeveral ? perWorkspace / sharing.divisor : perWorkspace,
    );
    const sweepMs = Math.min(250, limits.statementTimeoutMs / 4);
    this.#sweeper = setInterval(() => void untilSocketsRead().then(() => this.#sweep()), sweepMs).unref();
  }

  get open(): number {
    return this.#connections.size;
  }

  get waiting(): number {
    return this.#queue.size;
  }

  get inFlight(): number {
    return [...this.#connections].reduce((sum, connection) => sum + connection.inFlight, 0);
  }

  /** Runs one statement. Rejects with Problem `overloaded` when no connection is free in time. */
  run(run: Run, options: RunOptions, onRow: (row: Row) => void): Promise<void> {
    return inStatementSpan(run.statement, () => this.#run(run, options, onRow));
  }

  #run(run: Run, options: RunOptions, onRow: (row: Row) => void): Promise<void> {
    if (options.signal?.aborted) return Promise.reject(options.signal.reason);
    const workspace = run.workspace ?? '';
    if (workspace !== '') this.#limits.sharing?.activeWorkspaces.touch(workspace);
    const free = this.#mayStart(workspace, options) ? this.#leastBusy() : null;
    return free ? this.#start(free, run, options, onRow) : this.#enqueue(workspace, run, options, onRow);
  }

  /** Opens a first connection, so that the first statement does not wait for a login. */
  warm(): void {
    if (this.#connections.size + this.#opening === 0) void this.#openOne();
  }

  /** Breaks every connection. Statements in flight and in the queue reject at once, so that another replica can repeat them. */
  reset(): void {
    for (const connection of this.#connections) connection.destroy();
    this.#failAll(new ConnectionLost('the replica was taken out'));
  }

  /** Replaces every connection; statements in flight end on the old connections. */
  renew(): void {
    for (const connection of this.#connections) connection.close();
  }

  close(): void {
    this.#closed = true;
    clearInterval(this.#sweeper);
    this.renew();
    this.#failAll(new Problem('overloaded', 'The gateway is stopping.'));
  }

  /** Statements without a workspace, such as token look-ups, count against no share. */
  #mayStart(workspace: string, options: RunOptions): boolean {
    return (workspace === '' || !this.#shares.isFull(workspace)) && this.#gate?.admits(options) !== false;
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

  #start(connection: Connection, run: Run, options: RunOptions, onRow: (row: Row) => void): Promise<void> {
    const { signal, cost, stallMsMax, gatheredRows } = options;
    const startedMs = performance.now();
    const release = this.#shares.take(run.workspace ?? '', cost);
    const leave = this.#gate?.enter(run, options);
    const unlessAborted = signal === undefined ? onRow : (row: Row) => signal.aborted || onRow(row);
    const isAlone = this.#limits.depth === 1;
    const mode = { stallMsMax, isAlone, gatheredRows: isAlone ? gatheredRows : undefined };
    const running = new Promise<void>((resolve, reject) => {
      const done = (error: Error | null): void => {
        release();
        leave?.();
        this.serve();
        if (error === null) return resolve();
        const isEarly = performance.now() - startedMs < this.#limits.statementTimeoutMs / 2;
        const isCancelled = isEarly && errorCode(error) === queryCanceled;
        reject(isCancelled ? new ConnectionLost('the statement was cancelled') : error);
      };
      connection.start(run, unlessAborted, done, mode);
    });
    return this.#limits.depth > 1 || signal === undefined ? running : rejectOnAbort(running, signal, connection);
  }

  #enqueue(workspace: string, run: Run, options: RunOptions, onRow: (row: Row) => void): Promise<void> {
    const { waitMs, signal, isContinuation = false } = options;
    // A page that begins waits for queueWaitMs only, so it does not queue behind the chunks of the workspace's other pages.
    const key = isContinuation ? `${workspace} continuations` : workspace;
    return new Promise((resolve, reject) => {
      const leave = (error: Error): void => {
        if (this.#queue.delete(key, waiter)) waiter.fail(error);
      };
      let dueMs = performance.now() + waitMs;
      let wasLate = false;
      const giveUp = (): void => {
        const lateMs = performance.now() - dueMs;
        if (wasLate || lateMs < lateMsMin) return this.#refusals.add(() => leave(this.#outOfTime()));
        wasLate = true;
        dueMs += lateMs * 2;
        timer = setTimeout(giveUp, Math.min(lateMs, waitMs));
      };
      let timer = setTimeout(giveUp, waitMs);
      const abort = (): void => leave(signal?.reason as Error);
      signal?.addEventListener('abort', abort, { once: true });
      const stopWaiting = (): void => {
        clearTimeout(timer);
        signal?.removeEventListener('abort', abort);
      };
      const waiter: Waiter = {
        workspace,
        options,
        start: (connection) => {
          stopWaiting();
          this.#start(connection, run, options, onRow).then(resolve, reject);
        },
        fail: (error) => {
          stopWaiting();
          reject(error);
        },
      };
      this.#queue.add(key, waiter);
      if (this.#queue.size > this.#limits.queueMax && !isContinuation)
        this.#queue.evictNewestOfLongest()?.fail(overloaded());
    });
  }

  /** Without any connection the server is at fault, and another can answer; with connections the gateway is overloaded. */
  #outOfTime(): Error {
    return this.#connections.size === 0 ? new ConnectionLost('no connection in time') : overloaded();
  }

  #failAll(error: Error): void {
    for (const waiter of this.#queue.drain()) waiter.fail(error);
  }

  /** Starts waiting statements that may start now. */
  serve(): void {
    while (this.#queue.size > 0) {
      const connection = this.#leastBusy();
      if (connection === null) return;
      const waiter = this.#queue.take(({ workspace, options }) => this.#mayStart(workspace, options));
      if (waiter === undefined) return;
      waiter.start(connection);
    }
  }

  async #openOne(): Promise<void> {
    this.#opening++;
    try {
      const connection = await this.#connect();
      if (this.#closed) return connection.close();
      this.#connections.add(connection);
      connection.onEnd(() => {
        this.#connections.delete(connection);
        if (this.#queue.size > 0) this.#leastBusy();
      });
    } catch (error) {
      // Without any connection waiters try another server at once.
      if (this.#connections.size === 0) this.#failAll(error as Error);
    } finally {
      this.#opening--;
    }
    this.serve();
  }

  #sweep(): void {
    const now = performance.now();
    for (const connection of this.#connections) connection.destroyIfOverdue(now, this.#limits.statementTimeoutMs);
  }
}

/**
 * Rejects when the signal aborts. The statement then has 100 ms to end, because a new connection costs more than the rest
 * of a chunk; after that its connection is destroyed. Its slot is free only then, so that many aborts open
 * no more connections than the pool's bound. No CancelRequest is sent: it could hit the backend's next statement.
 */
function rejectOnAbort(running: Promise<void>, signal: AbortSignal, connection: Connection): Promise<void> {
  return new Promise((resolve, reject) => {
    let grace: NodeJS.Timeout | undefined;
    const abort = (): void => {
      grace = setTimeout(() => connection.destroy(), abandonedMsMax);
      reject(signal.reason as Error);
    };
    signal.addEventListener('abort', abort, { once: true });
    running.then(resolve, reject).finally(() => {
      clearTimeout(grace);
      signal.removeEventListener('abort', abort);
    });
  });
}

function overloaded(): Problem {
  return new Problem('overloaded', 'No database connection became free in time.');
}
