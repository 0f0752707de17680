import type { EventEmitter } from 'node:events';
import type { Socket } from 'node:net';
import pg from 'pg';
import type { Row } from './row.js';
import type { Statement, Values, WorkspaceId } from './statement.js';
import { GuardedQuery } from './wire/guarded-query.js';
import { tapRows } from './wire/row-tap.js';

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

/** The statement took longer than it may; the same elsewhere would only double the load. SQLSTATE as of statement_timeout. */
class StatementTimeout extends Error {
  readonly code = '57014';

  constructor() {
    super('the statement took too long');
  }
}

/** How long a connection may take to say goodbye before it is cut. */
const farewellMsMax = 1000;

/**
 * One pipelined connection. It is used for as long as nothing goes wrong on it: after any error it takes no more
 * statements and closes when those in flight have ended.
 */
export class Connection {
  readonly #client: pg.Client;
  readonly #named: boolean;
  readonly #started = new Set<{ readonly atMs: number; overdue: boolean }>();
  #usable = true;
  #isCorked = false;
  #farewell: NodeJS.Timeout | undefined;
  #onEnd: () => void = () => {};

  private constructor(client: pg.Client, named: boolean) {
    this.#client = client;
    this.#named = named;
    client.on('error', () => {
      this.destroy();
      this.#ended();
    });
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
    tapRows(wireOf(client));
    yieldAfterLargeRead(streamOf(client));
    return new Connection(client, options.namedStatements);
  }

  /** Statements sent and not yet answered. */
  get inFlight(): number {
    return this.#started.size;
  }

  get usable(): boolean {
    return this.#usable;
  }

  /** Called once, when the connection is gone. */
  onEnd(listener: () => void): void {
    this.#onEnd = listener;
  }

  /** Resolves when PostgreSQL has said that the statement is complete; rows come as they arrive. */
  run(run: Run, onRow: (row: Row) => void): Promise<void> {
    return new Promise((resolve, reject) => {
      const started = { atMs: performance.now(), overdue: false };
      this.#started.add(started);
      const done = (error: Error | null): void => {
        this.#started.delete(started);
        if (error || !this.#usable) this.#retire();
        if (!error) resolve();
        else if (started.overdue) reject(new StatementTimeout());
        else reject(error instanceof pg.DatabaseError || this.#usable ? error : asLost(error));
      };
      this.#flushLater();
      this.#client.query(new GuardedQuery({ ...run, named: this.#named }, onRow, done) as never);
    });
  }

  /** Statements of requests that arrived together leave together: under load half of a detail's cost was writing to sockets. */
  #flushLater(): void {
    if (this.#isCorked) return;
    this.#isCorked = true;
    const stream = streamOf(this.#client);
    stream.cork();
    setImmediate(() => {
      this.#isCorked = false;
      stream.uncork();
    });
  }

  /** Ends it when its oldest statement has taken longer than that: with StatementTimeout; those behind it were only lost. */
  destroyIfOverdue(nowMs: number, statementMsMax: number): void {
    const [oldest] = this.#started;
    if (oldest === undefined || nowMs - oldest.atMs <= statementMsMax) return;
    oldest.overdue = true;
    this.destroy();
  }

  /** Ends it now; statements in flight reject. PostgreSQL stops a running one within a second (client_connection_check_interval). */
  destroy(): void {
    this.#usable = false;
    streamOf(this.#client).destroy();
  }

  /** Ends it when idle. */
  close(): void {
    this.#retire();
  }

  #retire(): void {
    this.#usable = false;
    if (this.#started.size > 0 || this.#farewell !== undefined) return;
    this.#farewell = setTimeout(() => this.destroy(), farewellMsMax).unref(); // a frozen server never says goodbye
    this.#client.end().catch(() => {});
  }

  #ended(): void {
    this.#usable = false;
    clearTimeout(this.#farewell);
    const listener = this.#onEnd;
    this.#onEnd = () => {};
    listener();
  }
}

function wireOf(client: pg.Client): EventEmitter & { readonly stream: Socket } {
  return (client as unknown as { connection: EventEmitter & { readonly stream: Socket } }).connection;
}

function streamOf(client: pg.Client): Socket {
  return wireOf(client).stream;
}

/** A read of that size was probably not the last of its answer. */
const largeReadBytes = 32_768;

/**
 * libuv reads up to 32 times 64 KB from one socket before it looks at another. Turned into JSON that is half a second in
 * which nobody else is served; so after one large read it is the others' turn.
 */
function yieldAfterLargeRead(stream: Socket): void {
  stream.on('data', (bytes: Buffer) => {
    if (bytes.length < largeReadBytes) return;
    stream.pause();
    setImmediate(() => stream.resume());
  });
}

function asLost(error: Error): Error {
  return error instanceof TypeError ? error : new ConnectionLost(error.message);
}
