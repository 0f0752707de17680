import pg from 'pg';
import { databaseErrorKind, Problem } from '../errors.js';
import type { Observe } from '../events.js';
import type { Settings } from '../settings.js';
import type { TextRow } from './row.js';
import type { Statement, Values, WorkspaceId } from './statement.js';
import { type Lsn, parseLsn } from './wal-position.js';
import { GuardedQuery } from './wire/guarded-query.js';

/** Runs statements of one transaction, each for the transaction's workspace. */
export interface Transaction {
  query(statement: Statement, values: Values): Promise<TextRow[]>;
}

/** A place in the history of a cluster. Positions of another timeline, or of another cluster, prove nothing of this one. */
export interface WalPosition {
  readonly lsn: Lsn;
  readonly timeline: string;
  readonly systemIdentifier: string;
}

/** How a transaction ended: what it gave and is committed, or the Problem that it was rolled back for. */
export interface TransactionResult<T> {
  readonly outcome: T | Problem;
  /** Where the primary was afterwards: all that the transaction wrote or saw lies at or before it. */
  readonly position: WalPosition;
}

/** At READ COMMITTED, whatever the server's default: who waited for another's key must see the outcome it stored. */
const begin: Statement = { name: 'begin', text: 'begin isolation level read committed', parameters: [] };

/**
 * Where the next record goes: commits that are not flushed yet (synchronous_commit off in the app) lie before it too. At
 * the start of a page it lies behind the page's header, where no record ends and no replica arrives before the next
 * one: 24 bytes, or 40 at the start of a segment (PostgreSQL, xlog_internal.h).
 */
export const walPositionStatement = `select lsn - case
      when (lsn - pg_lsn '0/0') % pg_size_bytes(current_setting('wal_segment_size')) = 40 then 40
      when (lsn - pg_lsn '0/0') % current_setting('wal_block_size')::int = 24 then 24
      else 0
    end as lsn, substr(pg_walfile_name(lsn), 1, 8) as timeline, system_identifier::text as system
  from pg_current_wal_insert_lsn() lsn, pg_control_system()`;

/** How often a transaction is run in all: serialization failures and deadlocks go away, a lost connection is replaced. */
const attemptsMax = 3;

/** The primary, for the few writes: a small pool, a deadline for everything, and one place that says what failures mean. */
export class Primary {
  readonly #pool: pg.Pool;
  readonly #settings: Settings;
  readonly #observe: Observe;

  constructor(settings: Settings, observe: Observe) {
    this.#settings = settings;
    this.#observe = observe;
    this.#pool = new pg.Pool({
      connectionString: settings.primaryUrl,
      application_name: 'workspace-data-gateway',
      max: settings.primaryConnections,
      connectionTimeoutMillis: settings.writeWaitMs,
      idleTimeoutMillis: 30_000,
      keepAlive: true,
    });
    this.#pool.on('error', () => {}); // an idle connection that dies is replaced when the next one is needed
    this.#pool.on('connect', (client) => client.on('error', () => {}));
  }

  /**
   * Runs `work` in a transaction and commits it; a Problem that it throws rolls it back and is its outcome. It may run
   * several times, so it must be safe to repeat: after a lost COMMIT the second run finds what the first one did. Throws
   * primary_unavailable, after writeTimeoutMs and one wait for a connection at the latest.
   */
  async transaction<T>(
    workspace: WorkspaceId,
    work: (transaction: Transaction) => Promise<T>,
  ): Promise<TransactionResult<T>> {
    const deadlineMs = performance.now() + this.#settings.writeTimeoutMs;
    for (let attempt = 1; ; attempt++) {
      const client = await this.#connect();
      try {
        return await this.#within(client, deadlineMs, () => runOnce(client, workspace, work));
      } catch (error) {
        const code = this.#told(error);
        if (attempt >= attemptsMax || performance.now() >= deadlineMs || !repeatable(code)) throw primaryUnavailable();
      }
    }
  }

  /** One statement outside any workspace, for housekeeping; it gets a connection only when one is free. */
  async execute(statement: Statement): Promise<TextRow[]> {
    if (this.#pool.waitingCount > 0) throw primaryUnavailable();
    const client = await this.#connect();
    const deadlineMs = performance.now() + this.#settings.writeTimeoutMs;
    return this.#within(client, deadlineMs, () => run(client, statement, null, {}));
  }

  async close(): Promise<void> {
    await this.#pool.end();
  }

  /** A primary that refuses connections, or has none free in time, is not asked again: the client is told at once. */
  async #connect(): Promise<pg.PoolClient> {
    if (this.#pool.waitingCount >= this.#settings.queueMax) throw primaryUnavailable();
    try {
      return await this.#pool.connect();
    } catch (error) {
      this.#observe({ type: 'primary_failed', code: codeOf(error) });
      throw primaryUnavailable();
    }
  }

  /** Until `work` ends or the deadline cuts the connection; one that anything failed on is not used again. */
  async #within<T>(client: pg.PoolClient, deadlineMs: number, work: () => Promise<T>): Promise<T> {
    const timer = setTimeout(() => destroy(client), Math.max(0, deadlineMs - performance.now()));
    try {
      const value = await work();
      client.release();
      return value;
    } catch (error) {
      client.release(true);
      throw error;
    } finally {
      clearTimeout(timer);
    }
  }

  /** The code of a failure that the primary is to blame for. Throws what is a bug of ours. */
  #told(error: unknown): string {
    if (databaseErrorKind(error) === 'bug') throw error;
    const code = codeOf(error);
    this.#observe({ type: 'primary_failed', code });
    return code;
  }
}

async function runOnce<T>(
  client: pg.PoolClient,
  workspace: WorkspaceId,
  work: (transaction: Transaction) => Promise<T>,
): Promise<TransactionResult<T>> {
  await run(client, begin, null, {});
  let outcome: T | Problem;
  try {
    outcome = await work({ query: (statement, values) => run(client, statement, workspace, values) });
  } catch (error) {
    if (!(error instanceof Problem)) throw error;
    outcome = error;
  }
  return { outcome, position: await end(client, outcome instanceof Problem ? 'ROLLBACK' : 'COMMIT') };
}

/**
 * Ends the transaction and asks where the primary is then, in one message: so no outcome is known without its place. A
 * COMMIT that PostgreSQL answers otherwise has not happened (COMMIT, "Outputs").
 */
async function end(client: pg.PoolClient, how: 'COMMIT' | 'ROLLBACK'): Promise<WalPosition> {
  const results: unknown = await client.query(`${how}; ${walPositionStatement}`);
  const [ended, where] = results as [pg.QueryResult, pg.QueryResult<{ lsn: string; timeline: string; system: string }>];
  const [place] = where.rows;
  if (ended.command !== how || place === undefined) throw new Error(`${how} was answered ${ended.command}`);
  return { lsn: parseLsn(place.lsn), timeline: place.timeline, systemIdentifier: place.system };
}

function codeOf(error: unknown): string {
  return String((error as { code?: unknown }).code ?? 'connection');
}

/** Lost connections and failed serializations may be tried again at once; a primary that says no says it again. */
function repeatable(code: string): boolean {
  const isLost = code === 'connection' || code.startsWith('08') || code.startsWith('57P') || /^E[A-Z]+$/.test(code);
  return isLost || code.startsWith('40') || code === '25P03' || code === '23503';
}

/** 503; a write that was under way may have happened: the same Idempotency-Key reveals it. */
function primaryUnavailable(): Problem {
  return new Problem(
    'primary_unavailable',
    'The primary cannot take writes now; try again with the same Idempotency-Key.',
    {
      headers: { 'Retry-After': '2' },
    },
  );
}

function run(
  client: pg.PoolClient,
  statement: Statement,
  workspace: WorkspaceId | null,
  values: Values,
): Promise<TextRow[]> {
  return new Promise((resolve, reject) => {
    const rows: TextRow[] = [];
    const done = (error: Error | null): void => (error ? reject(error) : resolve(rows));
    client.query(
      new GuardedQuery({ statement, workspace, values, named: false }, (row) => rows.push(row.texts()), done) as never,
    );
  });
}

function destroy(client: pg.PoolClient): void {
  (client as unknown as { connection: { stream: { destroy(): void } } }).connection.stream.destroy();
}
