import type pg from 'pg';
import { Problem } from '../errors.js';
import { inSqlSpan } from '../tracing.js';
import { boundValues, guard, RoundTrip } from '../wire/queries.js';
import type { TextRow } from './row.js';
import type { Statement, Values, WorkspaceId } from './statement.js';
import { parseLsn, type WalPosition, walPositionStatement } from './wal-position.js';

/** A statement of a transaction with its values. */
export interface Step {
  readonly statement: Statement;
  readonly values: Values;
  /** Turns an error of this statement into a Problem, by the rows of the steps before it; rethrows the errors that it does not know. */
  readonly onError?: (error: unknown, before: readonly Rows[]) => never;
}

export type Rows = readonly TextRow[];

/** Steps of one round trip. */
interface Batch {
  readonly steps: readonly Step[];
  readonly workspace: WorkspaceId | null;
  /** Whether statements are prepared by name, once per connection. After an error it is not known which of them are. */
  readonly named: boolean;
}

/** The rows of a step, and its command tag, such as COMMIT. */
interface BatchResult {
  readonly rows: Rows;
  readonly tag: string;
}

/** Runs statements of one transaction, each for the transaction's workspace. */
export interface Transaction {
  /** Runs the steps in one round trip, and returns the rows of each. After an error PostgreSQL skips the rest. */
  run<Steps extends readonly Step[]>(...steps: Steps): Promise<RowsOf<Steps>>;
  /**
   * Runs the steps in the same round trip as COMMIT. Statements that are run afterwards are in a transaction of their own, also
   * after an error.
   */
  commit<Steps extends readonly Step[]>(...steps: Steps): Promise<Committed<RowsOf<Steps>>>;
}

/** Results that are committed, and the primary's position then. */
export interface Committed<Result> {
  readonly outcome: Result;
  readonly position: WalPosition;
}

type RowsOf<Steps extends readonly Step[]> = { [K in keyof Steps]: Rows };

/** Statements that depend on each other's results, and COMMIT with the last. */
export type Work<T> = (transaction: Transaction) => Promise<Committed<T>>;

/** How a transaction ended. */
export interface TransactionResult<T> {
  /** Its committed result, or the Problem that it was rolled back for. */
  readonly outcome: T | Problem;
  /** The primary's position after the end: all that the transaction wrote or read lies at or before it. */
  readonly position: WalPosition;
}

const command = (name: string, text: string): Step => ({ statement: { name, text, parameters: [] }, values: {} });
/** READ COMMITTED whatever the server's default is: after a wait for another request's key, its stored outcome must be visible. */
const begin = command('begin', 'begin isolation level read committed');
const ends = { COMMIT: command('commit', 'commit'), ROLLBACK: command('rollback', 'rollback') };
const position = command('wal-position', walPositionStatement);
const guarded: Step = { statement: guard, values: {} };

/**
 * A transaction on a client. BEGIN and the guard travel with its first statements, COMMIT with its last. The guard lasts until the
 * transaction ends, so a statement that ran outside it would see no row and change none.
 */
export class OpenTransaction implements Transaction {
  readonly #client: pg.ClientBase;
  readonly #workspace: WorkspaceId;
  #named: boolean;
  #opening: readonly Step[] = [begin, guarded];
  #hasFailed = false;

  constructor(client: pg.ClientBase, workspace: WorkspaceId, named: boolean) {
    this.#client = client;
    this.#workspace = workspace;
    this.#named = named;
  }

  /** Whether a statement failed: then it is not known which names the connection has, so it must not be used again. */
  get hasFailed(): boolean {
    return this.#hasFailed;
  }

  async run<Steps extends readonly Step[]>(...steps: Steps): Promise<RowsOf<Steps>> {
    const results = await this.#send(steps);
    return results.map(({ rows }) => rows) as RowsOf<Steps>;
  }

  async commit<Steps extends readonly Step[]>(...steps: Steps): Promise<Committed<RowsOf<Steps>>> {
    try {
      const { results, position } = await this.#end('COMMIT', steps);
      return { outcome: results.map(({ rows }) => rows) as RowsOf<Steps>, position };
    } catch (error) {
      this.#opening = [ends.ROLLBACK];
      throw error;
    } finally {
      this.#opening = [...this.#opening, begin, guarded];
    }
  }

  /** Runs `work`, which commits; a Problem rolls back what it did not commit, and is the outcome. */
  async end<T>(work: Work<T>): Promise<TransactionResult<T>> {
    try {
      return await work(this);
    } catch (error) {
      if (!(error instanceof Problem)) throw error;
      const { position } = await this.#end('ROLLBACK', []);
      return { outcome: error, position };
    }
  }

  /**
   * Ends the transaction and reads the primary's position in the same message, so that every known outcome has a position. A
   * COMMIT that PostgreSQL answers with ROLLBACK has not happened (COMMIT, "Outputs").
   */
  async #end(
    expected: keyof typeof ends,
    last: readonly Step[],
  ): Promise<{ results: readonly BatchResult[]; position: WalPosition }> {
    const all = await this.#send([...last, ends[expected], position]);
    const results = all.slice(0, last.length);
    const [{ tag }, { rows }] = all.slice(last.length) as [BatchResult, BatchResult];
    if (tag !== expected) throw new Error(`${expected} was answered ${tag}`);
    return { results, position: positionOf(rows) };
  }

  #send(steps: readonly Step[]): Promise<readonly BatchResult[]> {
    const batch = { steps, workspace: this.#workspace, named: this.#named };
    const opening = this.#opening;
    this.#opening = [];
    return runBatch(this.#client, batch, opening).catch((error) => {
      this.#hasFailed = true;
      this.#named = false; // PostgreSQL has skipped the Parse of the statements behind the failed one
      throw error;
    });
  }
}

/** Runs statements in the transaction that is open on the client, each for the workspace. Nothing is committed: it stays open. */
export function transactionOn(client: pg.ClientBase, workspace: WorkspaceId): Transaction {
  const run = async <Steps extends readonly Step[]>(...steps: Steps): Promise<RowsOf<Steps>> => {
    const results = await runBatch(client, { steps, workspace, named: false }, [guarded]);
    return results.map(({ rows }) => rows) as RowsOf<Steps>;
  };
  return {
    run,
    commit: async <Steps extends readonly Step[]>(...steps: Steps) => {
      await client.query('savepoint before');
      const outcome = await run(...steps).catch(async (error) => {
        await client.query('rollback to savepoint before'); // so that statements can follow, as after a COMMIT that failed
        throw error;
      });
      const [rows] = await run(position);
      return { outcome, position: positionOf(rows) };
    },
  };
}

function positionOf([row]: Rows): WalPosition {
  const [lsn, timeline, systemIdentifier] = row as readonly [string, string, string];
  return { lsn: parseLsn(lsn), timeline, systemIdentifier };
}

/** Runs the steps after those of `opening`, in one round trip. Throws the error of the first that fails, as its `onError` turns it. */
export function runBatch(
  client: pg.ClientBase,
  { steps: own, workspace, named }: Batch,
  opening: readonly Step[] = [],
): Promise<readonly BatchResult[]> {
  const steps = [...opening, ...own];
  const statements = steps.map(({ statement }) => statement);
  const rows: TextRow[][] = steps.map(() => []);
  const parts = steps.map(({ statement, values }, i) => ({
    statement,
    values: boundValues(statement, workspace, values),
    onRow: (row: TextRow) => rows[i]?.push(row),
  }));
  const work = (): Promise<readonly BatchResult[]> =>
    new Promise((resolve, reject) => {
      const done = (error: Error | null, tags: readonly string[]): void => {
        const results = tags.map((tag, i) => ({ rows: rows[i] as Rows, tag })).slice(opening.length);
        if (error === null) return resolve(results);
        try {
          const before = results.map((result) => result.rows);
          steps[tags.length]?.onError?.(error, before);
          reject(error);
        } catch (turned) {
          reject(turned);
        }
      };
      client.query(new RoundTrip(parts, named, done));
    });
  return inSqlSpan(statements, work);
}
