import pg from 'pg';
import { databaseFault, Problem } from '../errors.js';
import type { Observe } from '../ops/events.js';
import type { Settings } from '../settings.js';
import { GuardedQuery, type Row } from './guarded-query.js';
import { type Lsn, parseLsn } from './lsn.js';
import type { Statement, Values, WorkspaceId } from './statement.js';

/** Runs statements of one transaction, each for the transaction's workspace. */
export interface Transaction {
  query(statement: Statement, values: Values): Promise<Row[]>;
}

/** What a transaction gave, and a position at or after which the primary has it. */
export interface Committed<T> {
  readonly value: T;
  /** Null when the connection was lost between COMMIT and the question: then only the time is known. */
  readonly lsn: Lsn | null;
}

const plain = (name: string, text: string): Statement => ({ name, text, parameters: [] });
const begin = plain('begin', 'begin');
const commit = plain('commit', 'commit');
const rollback = plain('rollback', 'rollback');
/** Where the next record goes: also commits that are not flushed yet (synchronous_commit off in the app) lie before it. */
const position = plain('write-position', 'select pg_current_wal_insert_lsn()');

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

  get connections(): number {
    return this.#pool.totalCount;
  }

  /**
   * Runs `work` in a transaction and commits it, unless it throws. It may run several times, so it must be safe to repeat:
   * after a lost COMMIT the second run finds what the first one did. Throws Problems of `work`, or primary_unavailable.
   */
  async transaction<T>(workspace: WorkspaceId, work: (transaction: Transaction) => Promise<T>): Promise<Committed<T>> {
    const startedMs = performance.now();
    for (let attempt = 1; ; attempt++) {
      try {
        return await this.#attempt(workspace, work);
      } catch (error) {
        if (error instanceof Problem) throw error;
        if (databaseFault(error) === 'bug') throw error;
        const code = String((error as { code?: unknown }).code ?? 'connection');
        this.#observe({ type: 'primary_failed', code });
        const late = performance.now() - startedMs > this.#settings.writeTimeoutMs;
        if (attempt >= attemptsMax || late || !repeatable(code)) throw primaryUnavailable();
      }
    }
  }

  /** The position now: what a 412 has seen lies at or before it. Null when the primary does not say. */
  async position(): Promise<Lsn | null> {
    return this.#connected(async (client) => this.#lsn(client)).catch(() => null);
  }

  /** One statement outside any workspace, for housekeeping. */
  async execute(statement: Statement): Promise<void> {
    await this.#connected((client) => run(client, statement, null, {}));
  }

  async close(): Promise<void> {
    await this.#pool.end();
  }

  #attempt<T>(workspace: WorkspaceId, work: (transaction: Transaction) => Promise<T>): Promise<Committed<T>> {
    return this.#connected(async (client) => {
      await run(client, begin, null, {});
      try {
        const value = await work({ query: (statement, values) => run(client, statement, workspace, values) });
        await run(client, commit, null, {});
        return { value, lsn: await this.#lsn(client).catch(() => null) };
      } catch (error) {
        if (error instanceof Problem) await run(client, rollback, null, {}).catch(() => destroy(client));
        throw error;
      }
    });
  }

  async #lsn(client: pg.PoolClient): Promise<Lsn> {
    const [row] = await run(client, position, null, {});
    return parseLsn(row?.[0] as string);
  }

  /** A connection for a while; it is discarded when `work` fails in a way that leaves it in doubt, or takes too long. */
  async #connected<T>(work: (client: pg.PoolClient) => Promise<T>): Promise<T> {
    const client = await this.#pool.connect();
    const deadline = setTimeout(() => destroy(client), this.#settings.writeTimeoutMs);
    try {
      const value = await work(client);
      client.release();
      return value;
    } catch (error) {
      client.release(!(error instanceof Problem));
      throw error;
    } finally {
      clearTimeout(deadline);
    }
  }
}

/** Connection failures and failed serializations may be tried again at once; a primary that says no says it again. */
function repeatable(code: string): boolean {
  return code === 'connection' || code === '23503' || code.startsWith('40') || code.startsWith('08') || code.startsWith('57P') || /^E[A-Z]+$/.test(code);
}

/** 503; a write that was under way may have happened: the same Idempotency-Key reveals it. */
export function primaryUnavailable(): Problem {
  return new Problem('primary_unavailable', 'The primary cannot take writes now; try again with the same Idempotency-Key.', {
    headers: { 'Retry-After': '2' },
  });
}

function run(client: pg.PoolClient, statement: Statement, workspace: WorkspaceId | null, values: Values): Promise<Row[]> {
  return new Promise((resolve, reject) => {
    const rows: Row[] = [];
    const done = (error: Error | null): void => (error ? reject(error) : resolve(rows));
    client.query(new GuardedQuery({ statement, workspace, values, named: false }, (row) => rows.push(row), done) as never);
  });
}

function destroy(client: pg.PoolClient): void {
  (client as unknown as { connection: { stream: { destroy(): void } } }).connection.stream.destroy();
}
