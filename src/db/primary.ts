import pg from 'pg';
import { databaseErrorKind, Problem } from '../errors.js';
import type { Observe } from '../events.js';
import { applicationName, errorCode } from './connection.js';
import type { Login } from './login.js';
import type { TextRow } from './row.js';
import type { Statement, Values, WorkspaceId } from './statement.js';
import { inStatementSpan } from './statement-span.js';
import { parseLsn, type WalPosition, walPositionStatement } from './wal-position.js';
import { GuardedQuery } from './wire/guarded-query.js';
import { streamOf } from './wire/wire.js';

/** Runs statements of one transaction, each for the transaction's workspace. */
export interface Transaction {
  query(statement: Statement, values: Values): Promise<TextRow[]>;
}

/** Bounds of the primary's pool; times in milliseconds. */
export interface PrimaryBounds {
  readonly connections: number;
  readonly queueMax: number;
  /** How long a write waits for a connection. */
  readonly waitMs: number;
  /** How long a transaction may take, including its repetitions. */
  readonly timeoutMs: number;
}

/** How a transaction ended. */
export interface TransactionResult<T> {
  /** Its committed result, or the Problem that it was rolled back for. */
  readonly outcome: T | Problem;
  /** The primary's position after the end: all that the transaction wrote or read lies at or before it. */
  readonly position: WalPosition;
}

/** READ COMMITTED whatever the server's default is: after a wait for another request's key, its stored outcome must be visible. */
const begin: Statement = { name: 'begin', text: 'begin isolation level read committed', parameters: [] };

/** Runs of a transaction in all: a repetition mostly succeeds after a serialization failure, a deadlock or a lost connection. */
const attemptsMax = 3;

/** The primary, for writes: a small pool, a deadline for each transaction, and the decision which failures are repeated. */
export class Primary {
  /** The login of the primary of this moment. */
  readonly #login: () => Login;
  /** Connections that run a transaction. */
  readonly #busy = new Set<pg.PoolClient>();
  #pool: pg.Pool;
  readonly #bounds: PrimaryBounds;
  readonly #observe: Observe;

  constructor(login: () => Login, bounds: PrimaryBounds, observe: Observe) {
    this.#login = login;
    this.#bounds = bounds;
    this.#observe = observe;
    this.#pool = poolOf(login, bounds);
  }

  /**
   * Runs `work` in a transaction and commits it; a Problem that `work` throws rolls it back and is the outcome. `work` can run
   * several times, so it must be safe to repeat: after a lost COMMIT the second run meets the changes of the first. Throws
   * primary_unavailable, after `timeoutMs` and a wait for a connection at the latest.
   */
  async transaction<T>(
    workspace: WorkspaceId,
    work: (transaction: Transaction) => Promise<T>,
  ): Promise<TransactionResult<T>> {
    const deadlineMs = performance.now() + this.#bounds.timeoutMs;
    for (let attempt = 1; ; attempt++) {
      const client = await this.#connect();
      try {
        return await this.#within(client, deadlineMs, () => runOnce(client, workspace, work));
      } catch (error) {
        const code = this.#reportFailure(error);
        if (attempt >= attemptsMax || performance.now() >= deadlineMs || !isRepeatable(code))
          throw primaryUnavailable();
      }
    }
  }

  /** Runs a housekeeping statement outside any workspace, only while no write waits for a connection. Throws primary_unavailable. */
  async execute(statement: Statement, values: Values = {}): Promise<TextRow[]> {
    if (this.#pool.waitingCount > 0) throw primaryUnavailable();
    const client = await this.#connect();
    const deadlineMs = performance.now() + this.#bounds.timeoutMs;
    return this.#within(client, deadlineMs, () => run(client, statement, null, values));
  }

  /** Ends every connection, those in a transaction too: another server is the primary now, and runs the transactions again. */
  moveToNewPrimary(): void {
    const old = this.#pool;
    this.#pool = poolOf(this.#login, this.#bounds);
    for (const client of this.#busy) streamOf(client).destroy();
    old.end().catch(() => {});
  }

  async close(): Promise<void> {
    await this.#pool.end();
  }

  /** Throws primary_unavailable without a retry when the primary refuses connections, or no connection is free in time. */
  async #connect(): Promise<pg.PoolClient> {
    const pool = this.#pool;
    if (pool.waitingCount >= this.#bounds.queueMax) throw primaryUnavailable();
    try {
      const client = await this.#login().use(() => pool.connect());
      if (pool === this.#pool) return client;
      client.release(true); // it leads to the old primary
    } catch (error) {
      this.#observe({ type: 'primary_failed', code: errorCode(error) });
      throw primaryUnavailable();
    }
    return this.#connect();
  }

  /** Runs `work`, and destroys its connection at the deadline. After a failure the connection is not used again. */
  async #within<T>(client: pg.PoolClient, deadlineMs: number, work: () => Promise<T>): Promise<T> {
    const timer = setTimeout(() => streamOf(client).destroy(), Math.max(0, deadlineMs - performance.now()));
    this.#busy.add(client);
    try {
      const value = await work();
      client.release();
      return value;
    } catch (error) {
      client.release(true);
      throw error;
    } finally {
      clearTimeout(timer);
      this.#busy.delete(client);
    }
  }

  /** Reports a failure of the primary and returns its code. Throws an error that a repetition would meet again. */
  #reportFailure(error: unknown): string {
    if (databaseErrorKind(error, 'write') === 'permanent') throw error;
    const code = errorCode(error);
    this.#observe({ type: 'primary_failed', code });
    return code;
  }
}

/** Runs statements in the transaction that is open on the client, each for the workspace. */
export function transactionOn(client: pg.ClientBase, workspace: WorkspaceId): Transaction {
  return { query: (statement, values) => run(client, statement, workspace, values) };
}

function poolOf(login: () => Login, bounds: PrimaryBounds): pg.Pool {
  const pool = new pg.Pool({
    Client: clientOf(login, bounds),
    max: bounds.connections,
    connectionTimeoutMillis: bounds.waitMs,
    idleTimeoutMillis: 30_000,
  });
  pool.on('error', () => {}); // the pool replaces an idle connection that died
  pool.on('connect', (client) => client.on('error', () => {}));
  return pool;
}

/** A client with the login's URL of the moment: options of the pool would keep the first one. */
function clientOf(login: () => Login, { waitMs }: PrimaryBounds): new () => pg.Client {
  return class extends pg.Client {
    constructor() {
      super({
        connectionString: login().url,
        application_name: applicationName,
        connectionTimeoutMillis: waitMs,
        keepAlive: true,
      });
    }
  };
}

async function runOnce<T>(
  client: pg.PoolClient,
  workspace: WorkspaceId,
  work: (transaction: Transaction) => Promise<T>,
): Promise<TransactionResult<T>> {
  await run(client, begin, null, {});
  let outcome: T | Problem;
  try {
    outcome = await work(transactionOn(client, workspace));
  } catch (error) {
    if (!(error instanceof Problem)) throw error;
    outcome = error;
  }
  return { outcome, position: await end(client, outcome instanceof Problem ? 'ROLLBACK' : 'COMMIT') };
}

/**
 * Ends the transaction and reads the primary's position in the same message, so that every known outcome has a position. A
 * COMMIT that PostgreSQL answers with ROLLBACK has not happened (COMMIT, "Outputs").
 */
async function end(client: pg.PoolClient, command: 'COMMIT' | 'ROLLBACK'): Promise<WalPosition> {
  const results: unknown = await client.query(`${command}; ${walPositionStatement}`);
  const [ended, position] = results as [
    pg.QueryResult,
    pg.QueryResult<{ lsn: string; timeline: string; system: string }>,
  ];
  const [row] = position.rows;
  if (ended.command !== command || row === undefined) throw new Error(`${command} was answered ${ended.command}`);
  return { lsn: parseLsn(row.lsn), timeline: row.timeline, systemIdentifier: row.system };
}

/** Whether a repetition can succeed: after a lost connection or a failed serialization, not after other refusals. */
function isRepeatable(code: string): boolean {
  const isLost = code === 'connection' || code.startsWith('08') || code.startsWith('57P') || /^E[A-Z]+$/.test(code);
  return isLost || code.startsWith('40') || code === '25P03' || code === '23503';
}

/** 503; the write may have happened: the same request with the same Idempotency-Key returns its outcome. */
function primaryUnavailable(): Problem {
  return new Problem(
    'primary_unavailable',
    'The primary cannot take writes now; try again with the same Idempotency-Key.',
  );
}

function run(
  client: pg.ClientBase,
  statement: Statement,
  workspace: WorkspaceId | null,
  values: Values,
): Promise<TextRow[]> {
  const work = (): Promise<TextRow[]> =>
    new Promise((resolve, reject) => {
      const rows: TextRow[] = [];
      const done = (error: Error | null): void => (error ? reject(error) : resolve(rows));
      client.query(
        new GuardedQuery(
          { statement, workspace, values, named: false },
          (row) => rows.push(row.texts()),
          done,
        ) as never,
      );
    });
  return inStatementSpan(statement, work);
}
