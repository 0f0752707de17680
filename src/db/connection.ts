import pg from 'pg';
import { GuardedQuery, type Row } from './guarded-query.js';
import type { Statement, Values, WorkspaceId } from './statement.js';

/** One statement to run: for a workspace, or for none (token look-ups and probes, which touch no view). */
export interface Run {
  readonly statement: Statement;
  readonly workspace: WorkspaceId | null;
  readonly values: Values;
}

export interface ConnectionOptions {
  readonly url: string;
  readonly applicationName: string;
  readonly connectTimeoutMs: number;
  readonly namedStatements: boolean;
}

/** The connection went away under a statement, or could not be made. Carries no address and no credentials. */
export class ConnectionLost extends Error {}

/**
 * One pipelined connection. It is used for as long as nothing goes wrong on it: after any error it takes no more
 * statements and closes when those in flight have ended.
 */
export class Connection {
  readonly #client: pg.Client;
  readonly #named: boolean;
  readonly #startedMs = new Set<{ atMs: number }>();
  #usable = true;
  #onEnd: () => void = () => {};

  private constructor(client: pg.Client, named: boolean) {
    this.#client = client;
    this.#named = named;
    client.on('error', () => this.#ended());
    client.on('end', () => this.#ended());
  }

  /** Throws ConnectionLost, or PostgreSQL's own error when it refuses the login. */
  static async open(options: ConnectionOptions): Promise<Connection> {
    const client = new pg.Client({
      connectionString: options.url,
      application_name: options.applicationName,
      connectionTimeoutMillis: options.connectTimeoutMs,
      keepAlive: true,
      pipeline: true,
    } as pg.ClientConfig);
    client.on('error', () => {}); // without a listener a dying backend would end the process
    try {
      await client.connect();
    } catch (error) {
      client.end().catch(() => {});
      if (error instanceof pg.DatabaseError) throw error;
      throw new ConnectionLost(`cannot connect: ${(error as NodeJS.ErrnoException).code ?? (error as Error).message}`);
    }
    return new Connection(client, options.namedStatements);
  }

  /** Statements sent and not yet answered. */
  get inFlight(): number {
    return this.#startedMs.size;
  }

  get usable(): boolean {
    return this.#usable;
  }

  /** Age of the oldest statement in flight, in milliseconds; 0 when idle. */
  oldestMs(nowMs: number): number {
    for (const { atMs } of this.#startedMs) return nowMs - atMs;
    return 0;
  }

  /** Called once, when the connection is gone. */
  onEnd(listener: () => void): void {
    this.#onEnd = listener;
  }

  /** Resolves when PostgreSQL has said that the statement is complete; rows come as they arrive. */
  run(run: Run, onRow: (row: Row) => void): Promise<void> {
    return new Promise((resolve, reject) => {
      const started = { atMs: performance.now() };
      this.#startedMs.add(started);
      const done = (error: Error | null): void => {
        this.#startedMs.delete(started);
        if (error) this.#retire();
        if (error) reject(error instanceof pg.DatabaseError || this.#usable ? error : asLost(error));
        else resolve();
      };
      this.#client.query(new GuardedQuery({ ...run, named: this.#named }, onRow, done) as never);
    });
  }

  /** Ends it now; statements in flight reject. PostgreSQL stops a running one within a second (client_connection_check_interval). */
  destroy(): void {
    this.#usable = false;
    (this.#client as unknown as { connection: { stream: { destroy(): void } } }).connection.stream.destroy();
  }

  /** Ends it when idle. */
  close(): void {
    this.#retire();
  }

  #retire(): void {
    this.#usable = false;
    if (this.#startedMs.size === 0) this.#client.end().catch(() => {});
  }

  #ended(): void {
    this.#usable = false;
    const listener = this.#onEnd;
    this.#onEnd = () => {};
    listener();
  }
}

function asLost(error: Error): Error {
  return error instanceof TypeError ? error : new ConnectionLost(error.message);
}
