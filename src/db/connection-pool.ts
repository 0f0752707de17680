import { Problem } from '../errors.js';
import type { ActiveWorkspaces } from './active-workspaces.js';
import { type Connection, ConnectionLost, type Run } from './connection.js';
import { FairQueue } from './fair-queue.js';
import type { Row } from './row.js';

/** Bounds of a lane; times in milliseconds. */
export interface PoolLimits {
  readonly connections: number;
  /** Statements in flight per connection. */
  readonly depth: number;
  /** What one workspace may have in flight, by the statements' cost; a quarter of it while others are served too. */
  readonly perWorkspace: number;
  /** Shared by all lanes; without it nobody else is ever served. */
  readonly activeWorkspaces?: ActiveWorkspaces;
  readonly queueMax: number;
  readonly statementTimeoutMs: number;
}

/** How long to wait for a connection, and what makes the wait or the statement pointless. */
export interface RunOptions {
  readonly waitMs: number;
  readonly signal?: AbortSignal | undefined;
  /** A page that has begun is never turned away for a full queue: the number of those is bounded elsewhere. */
  readonly isContinuation?: boolean;
  /** Share of perWorkspace that the statement takes; default 1. */
  readonly cost?: number;
}

interface Waiter {
  /** Starts the statement at once, so that the slot is taken before anybody else looks. */
  readonly start: (connection: Connection) => void;
  readonly fail: (error: Error) => void;
}

const sharedFraction = 4;

/** How long a statement nobody waits for any more may go on: most end sooner, and then the connection stays. */
const abandonedMsMax = 100;

/**
 * A bounded set of connections to one server with a bounded, fair queue in front. Short statements share connections by
 * pipelining (depth > 1); long ones have a connection to themselves (depth 1) and are ended when their client goes.
 */
export class ConnectionPool {
  readonly #limits: PoolLimits;
  readonly #connect: () => Promise<Connection>;
  readonly #connections = new Set<Connection>();
  readonly #queue = new FairQueue<Waiter>();
  readonly #running = new Map<string, number>();
  readonly #sweeper: NodeJS.Timeout;
  #opening = 0;
  #closed = false;

  constructor(limits: PoolLimits, connect: () => Promise<Connection>) {
    this.#limits = limits;
    this.#connect = connect;
    this.#sweeper = setInterval(() => this.#sweep(), Math.min(250, limits.statementTimeoutMs / 4)).unref();
  }

  get open(): number {
    return this.#connections.size;
  }

  get waiting(): number {
    return this.#queue.size;
  }

  get inFlight(): number {
    let sum = 0;
    for (const connection of this.#connections) sum += connection.inFlight;
    return sum;
  }

  /** Runs one statement. Rejects with Problem `overloaded` when no connection is free in time. */
  async run(run: Run, patience: RunOptions, onRow: (row: Row) => void): Promise<void> {
    if (patience.signal?.aborted) throw patience.signal.reason;
    const whose = run.workspace ?? '';
    if (whose !== '') this.#limits.activeWorkspaces?.touch(whose);
    const free = this.#mayRun(whose) ? this.#free() : null;
    return free ? this.#start(free, run, patience, onRow) : this.#enqueue(whose, run, patience, onRow);
  }

  /** Breaks every connection: what is in flight or waits rejects at once and can be repeated elsewhere. */
  reset(): void {
    for (const connection of this.#connections) connection.destroy();
    this.#failAll(new ConnectionLost('the replica was taken out'));
  }

  /** Puts new connections in the place of all: what is in flight ends on the old ones. */
  renew(): void {
    for (const connection of this.#connections) connection.close();
  }

  close(): void {
    this.#closed = true;
    clearInterval(this.#sweeper);
    this.renew();
    this.#failAll(new Problem('overloaded', 'The gateway is stopping.', { headers: { 'Retry-After': '1' } }));
  }

  /** Statements that are for no workspace (token look-ups) are not anybody's share. */
  #mayRun(whose: string): boolean {
    if (whose === '') return true;
    const { perWorkspace, activeWorkspaces } = this.#limits;
    return (
      (this.#running.get(whose) ?? 0) < (activeWorkspaces?.areSeveral ? perWorkspace / sharedFraction : perWorkspace)
    );
  }

  #free(): Connection | null {
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

  #start(connection: Connection, run: Run, patience: RunOptions, onRow: (row: Row) => void): Promise<void> {
    const { signal, cost = 1 } = patience;
    const whose = run.workspace ?? '';
    this.#running.set(whose, (this.#running.get(whose) ?? 0) + cost);
    const wanted = signal === undefined ? onRow : (row: Row) => signal.aborted || onRow(row);
    const running = connection.run(run, wanted).finally(() => {
      const left = (this.#running.get(whose) as number) - cost;
      if (left === 0) this.#running.delete(whose);
      else this.#running.set(whose, left);
      if (this.#queue.size > 0) this.#serve();
    });
    return this.#limits.depth > 1 || signal === undefined ? running : rejectOnAbort(running, signal, connection);
  }

  #enqueue(whose: string, run: Run, patience: RunOptions, onRow: (row: Row) => void): Promise<void> {
    const { waitMs, signal, isContinuation = false } = patience;
    return new Promise((resolve, reject) => {
      const leave = (error: Error): void => {
        if (this.#queue.delete(whose, waiter)) waiter.fail(error);
      };
      const timer = setTimeout(() => leave(this.#outOfTime()), waitMs);
      const abort = (): void => leave(signal?.reason as Error);
      signal?.addEventListener('abort', abort, { once: true });
      const left = (): void => {
        clearTimeout(timer);
        signal?.removeEventListener('abort', abort);
      };
      const waiter: Waiter = {
        start: (connection) => {
          left();
          this.#start(connection, run, patience, onRow).then(resolve, reject);
        },
        fail: (error) => {
          left();
          reject(error);
        },
      };
      this.#queue.add(whose, waiter);
      if (this.#queue.size > this.#limits.queueMax && !isContinuation)
        this.#queue.takeNewestOfMost()?.fail(overloaded());
    });
  }

  /** Without a single connection it is the server that does not answer, not the gateway that is busy. */
  #outOfTime(): Error {
    return this.#connections.size === 0 ? new ConnectionLost('no connection in time') : overloaded();
  }

  #failAll(error: Error): void {
    for (const waiter of this.#queue.drain()) waiter.fail(error);
  }

  #serve(): void {
    while (this.#queue.size > 0) {
      const connection = this.#free();
      if (connection === null) return;
      const waiter = this.#queue.take((whose) => this.#mayRun(whose));
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
        if (this.#queue.size > 0) this.#free();
      });
    } catch (error) {
      // Whoever waits for this server is better told now, to try another, than at the end of its wait.
      if (this.#connections.size === 0) this.#failAll(error as Error);
    } finally {
      this.#opening--;
    }
    this.#serve();
  }

  #sweep(): void {
    const now = performance.now();
    for (const connection of this.#connections) connection.destroyIfOverdue(now, this.#limits.statementTimeoutMs);
  }
}

/**
 * Rejects when the signal aborts. The statement then has a moment to end by itself, as a new connection costs more than
 * the rest of a chunk; after that its connection goes. Its slot is free only when one of the two has happened, so a
 * storm of aborts opens no more connections than the lane has. Nothing is cancelled by name that could meet another.
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
  return new Problem('overloaded', 'No database connection became free in time.', { headers: { 'Retry-After': '1' } });
}
