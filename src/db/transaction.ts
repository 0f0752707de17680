import type pg from 'pg';
import { Problem } from '../errors.js';
import type { TextRow } from './row.js';
import type { Statement, Values, WorkspaceId } from './statement.js';
import { inBatchSpan } from './statement-span.js';
import { parseLsn, type WalPosition, walPositionStatement } from './wal-position.js';
import { type Batch, BatchQuery, type BatchResult } from './wire/batch-query.js';
import { guard } from './wire/send-statement.js';

/** A statement of a transaction with its values. */
export interface Step {
  readonly statement: Statement;
  readonly values: Values;
  /** Turns an error of this statement into a Problem, by the rows of the steps before it; rethrows the errors that it does not know. */
  readonly onError?: (error: unknown, before: readonly Rows[]) => never;
}

export type Rows = readonly TextRow[];

/** Runs statements of one transaction, each for the transaction's workspace. */
export interface Transaction {
  /** Runs the steps in one round trip, and returns the rows of each. After an error PostgreSQL skips the rest. */
  run<Steps extends readonly Step[]>(...steps: Steps): Promise<RowsOf<Steps>>;
}

/** A transaction that can end with its first round trip. */
export interface EndingTransaction extends Transaction {
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

/** The outcome of a transaction, and its last steps, which travel with COMMIT: each must fail unless it did its part. */
export interface Ending<T> {
  readonly outcome: T;
  readonly last: readonly Step[];
}

/** Statements that depend on each other's results. */
export type Work<T> = (transaction: EndingTransaction) => Promise<Ending<T> | Committed<T>>;

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
export class OpenTransaction implements EndingTransaction {
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

  /** Runs `work`, and commits it; a Problem rolls it back and is the outcome. */
  async end<T>(work: Work<T>): Promise<TransactionResult<T>> {
    const ending = await work(this).catch((error: unknown) => {
      if (!(error instanceof Problem)) throw error;
      return { outcome: error, last: [] };
    });
    if ('position' in ending) return ending;
    const { outcome, last } = ending;
    const { position } = await this.#end(outcome instanceof Problem ? 'ROLLBACK' : 'COMMIT', last);
    return { outcome, position };
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
    const [lsn, timeline, systemIdentifier] = rows[0] as readonly [string, string, string];
    return { results, position: { lsn: parseLsn(lsn), timeline, systemIdentifier } };
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

/** Runs statements in the transaction that is open on the client, each for the workspace. */
export function transactionOn(client: pg.ClientBase, workspace: WorkspaceId): Transaction {
  return {
    run: async <Steps extends readonly Step[]>(...steps: Steps) => {
      const results = await runBatch(client, { steps, workspace, named: false }, [guarded]);
      return results.map(({ rows }) => rows) as RowsOf<Steps>;
    },
  };
}

/** Runs the steps after those of `opening`, in one round trip. Throws the error of the first that fails, as its `onError` turns it. */
export function runBatch(
  client: pg.ClientBase,
  batch: Batch & { readonly steps: readonly Step[] },
  opening: readonly Step[] = [],
): Promise<readonly BatchResult[]> {
  const steps = [...opening, ...batch.steps];
  const work = (): Promise<readonly BatchResult[]> =>
    new Promise((resolve, reject) => {
      const done = (error: Error | null, all: readonly BatchResult[]): void => {
        const results = all.slice(opening.length);
        if (error === null) return resolve(results);
        try {
          const before = results.map(({ rows }) => rows);
          steps[all.length]?.onError?.(error, before);
          reject(error);
        } catch (turned) {
          reject(turned);
        }
      };
      client.query(new BatchQuery({ ...batch, steps }, done));
    });
  return inBatchSpan(steps, work);
}
