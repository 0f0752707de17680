import { Problem } from '../errors.js';
import type { Connection, Run } from './connection.js';
import type { Row } from './guarded-query.js';

/** Bounds of a lane; times in milliseconds. */
export interface LaneLimits {
  readonly connections: number;
  /** Statements in flight per connection. */
  readonly depth: number;
  readonly queueMax: number;
  readonly statementTimeoutMs: number;
}

interface Waiter {
  /** Starts the statement at once, so that the slot is taken before anybody else looks. */
  readonly start: (connection: Connection) => void;
  readonly fail: (error: Error) => void;
}

/** How long to wait for a connection, and what makes the wait or the statement pointless. */
export interface Patience {
  readonly waitMs: number;
  readonly signal?: AbortSignal | undefined;
}

/**
 * A bounded set of connections to one server with a bounded queue in front. Short statements share connections by
 * pipelining (depth > 1); long ones have a connection to themselves (depth 1) and are cancelled when their client goes.
 */
export class Lane {
  readonly #limits: LaneLimits;
  readonly #connect: () => Promise<Connection>;
  readonly #connections = new Set<Connection>();
  readonly #waiting = new Map<Waiter, NodeJS.Timeout>();
  readonly #sweeper: NodeJS.Timeout;
  #opening = 0;
  #closed = false;

  constructor(limits: LaneLimits, connect: () => Promise<Connection>) {
    this.#limits = limits;
    this.#connect = connect;
    this.#sweeper = setInterval(() => this.#sweep(), Math.min(250, limits.statementTimeoutMs / 4)).unref();
  }

  get open(): number {
    return this.#connections.size;
  }

  get waiting(): number {
    return this.#waiting.size;
  }

  get inFlight(): number {
    let sum = 0;
    for (const connection of this.#connections) sum += connection.inFlight;
    return sum;
  }

  /** Runs one statement. Rejects with Problem `overloaded` when no connection is free in time. */
  async run(run: Run, patience: Patience, onRow: (row: Row) => void): Promise<void> {
    if (patience.signal?.aborted) throw patience.signal.reason;
    const start = (connection: Connection): Promise<void> => this.#start(connection, run, patience.signal, onRow);
    const free = this.#free();
    try {
      await (free ? start(free) : this.#enqueue(patience, start));
    } finally {
      if (this.#waiting.size > 0) this.#serve();
    }
  }

  /** Breaks every connection: what is in flight rejects at once and can be repeated elsewhere. */
  reset(): void {
    for (const connection of this.#connections) connection.destroy();
  }

  close(): void {
    this.#closed = true;
    clearInterval(this.#sweeper);
    for (const connection of this.#connections) connection.close();
    for (const waiter of this.#waiting.keys())
      this.#settle(waiter)?.fail(new Problem('overloaded', 'The gateway is stopping.'));
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

  #start(connection: Connection, run: Run, signal: AbortSignal | undefined, onRow: (row: Row) => void): Promise<void> {
    const running = connection.run(run, onRow);
    if (this.#limits.depth > 1 || signal === undefined) return running;
    const abort = (): void => connection.destroy();
    signal.addEventListener('abort', abort, { once: true });
    return running.finally(() => signal.removeEventListener('abort', abort));
  }

  #enqueue({ waitMs, signal }: Patience, start: (connection: Connection) => Promise<void>): Promise<void> {
    if (this.#waiting.size >= this.#limits.queueMax) throw overloaded();
    return new Promise((resolve, reject) => {
      const waiter: Waiter = { start: (connection) => start(connection).then(resolve, reject), fail: reject };
      this.#waiting.set(
        waiter,
        setTimeout(() => this.#settle(waiter)?.fail(overloaded()), waitMs),
      );
      signal?.addEventListener('abort', () => this.#settle(waiter)?.fail(signal.reason as Error), { once: true });
    });
  }

  /** Takes a waiter out of the queue; undefined when it was served already. */
  #settle(waiter: Waiter): Waiter | undefined {
    clearTimeout(this.#waiting.get(waiter));
    return this.#waiting.delete(waiter) ? waiter : undefined;
  }

  #serve(): void {
    for (const waiter of this.#waiting.keys()) {
      const connection = this.#free();
      if (connection === null) return;
      this.#settle(waiter)?.start(connection);
      return; // the next statement to end, or the next connection to open, serves the next one
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
        if (this.#waiting.size > 0) this.#free();
      });
      for (let slots = this.#limits.depth; slots > 0 && this.#waiting.size > 0; slots--) this.#serve();
    } catch (error) {
      // Whoever waits for this server is better told now, to try another, than at the end of its wait.
      if (this.#connections.size === 0) {
        for (const waiter of this.#waiting.keys()) this.#settle(waiter)?.fail(error as Error);
      }
    } finally {
      this.#opening--;
    }
  }

  #sweep(): void {
    const now = performance.now();
    for (const connection of this.#connections) {
      if (connection.oldestMs(now) > this.#limits.statementTimeoutMs) connection.destroy();
    }
  }
}

function overloaded(): Problem {
  return new Problem('overloaded', 'No database connection became free in time.', { headers: { 'Retry-After': '1' } });
}
