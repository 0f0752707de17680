import { Problem } from '../base/errors.js';
import { inSqlSpan } from '../base/tracing.js';
import { Row, type TextRow } from './row.js';
import { prepared, type Statement, type Values } from './statement.js';
import { parseLsn, type WalPosition, walPositionStatement } from './wal-position.js';
import { boundValues, guard, RoundTrip } from './wire/queries.js';

/** A statement of a transaction with its values. */
export interface Step {
  readonly statement: Statement;
  readonly values: Values;
  /** Turns an error of this statement into a Problem; rethrows the errors that it does not know. */
  readonly onError?: (error: unknown) => never;
}

export type Rows = readonly TextRow[];

/** Sends round trips: a connection of the gateway, or a client of pg. */
export interface Sender {
  query(roundTrip: RoundTrip): unknown;
}

/** The rows of a step, and its command tag, such as COMMIT. */
interface StepResult {
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

const command = (text: string, label = text): Step => ({ statement: prepared(label, text), values: {} });
/** The commands of a transaction, and the tag of the one that keeps its changes. */
interface Commands {
  readonly begin: Step;
  readonly keep: Step;
  readonly keptTag: string;
  readonly undo: Step;
}
const whole: Commands = {
  /** READ COMMITTED whatever the server's default is: after a wait for another request's key, its stored outcome must be visible. */
  begin: command('begin isolation level read committed', 'begin'),
  keep: command('commit'),
  keptTag: 'COMMIT',
  undo: command('rollback'),
};
/** Of a transaction within one that is open on the client, which can undo it. */
export const nested: Commands = {
  begin: command('savepoint gateway'),
  keep: command('release savepoint gateway'),
  keptTag: 'RELEASE',
  undo: command('rollback to savepoint gateway'),
};
const position = command(walPositionStatement, 'wal-position');
/** Sets a sealed workspace. */
export const guardStep = (sealed: string): Step => ({ statement: guard, values: { sealed } });

/**
 * A transaction on a connection. BEGIN and the guard travel with its first statements, COMMIT with its last. The guard lasts until the
 * transaction ends, so a statement that ran outside it would see no row and change none.
 */
export class OpenTransaction implements Transaction {
  readonly #sender: Sender;
  readonly #guard: Step;
  readonly #commands: Commands;
  #named: boolean;
  #opening: readonly Step[];
  /** Whether a statement failed: then it is not known which names the connection has, so it must not be used again. */
  hasFailed = false;

  /** For the workspace that is sealed. */
  constructor(sender: Sender, sealed: string, named: boolean, commands: Commands = whole) {
    this.#sender = sender;
    this.#guard = guardStep(sealed);
    this.#named = named;
    this.#commands = commands;
    this.#opening = [commands.begin, this.#guard];
  }

  async run<Steps extends readonly Step[]>(...steps: Steps): Promise<RowsOf<Steps>> {
    return rowsOf(await this.#send(steps));
  }

  async commit<Steps extends readonly Step[]>(...steps: Steps): Promise<Committed<RowsOf<Steps>>> {
    try {
      return await this.#end(this.#commands.keep, this.#commands.keptTag, steps);
    } catch (error) {
      this.#opening = [this.#commands.undo];
      throw error;
    } finally {
      this.#opening = [...this.#opening, this.#commands.begin, this.#guard];
    }
  }

  /** Runs `work`, which commits; a Problem rolls back what it did not commit, and is the outcome. */
  async end<T>(work: Work<T>): Promise<TransactionResult<T>> {
    try {
      return await work(this);
    } catch (error) {
      if (!(error instanceof Problem)) throw error;
      const { position } = await this.#end(this.#commands.undo, 'ROLLBACK', []);
      return { outcome: error, position };
    }
  }

  /**
   * Ends the transaction and reads the primary's position in the same message, so that every known outcome has a position. A
   * COMMIT that PostgreSQL answers with ROLLBACK has not happened (COMMIT, "Outputs").
   */
  async #end<Steps extends readonly Step[]>(
    end: Step,
    expected: string,
    last: Steps,
  ): Promise<Committed<RowsOf<Steps>>> {
    const results = await this.#send([...last, end, position]);
    const [{ tag }, { rows }] = results.slice(last.length) as [StepResult, StepResult];
    if (tag !== expected) throw new Error(`${expected} was answered ${tag}`);
    const [lsn, timeline, systemIdentifier] = rows[0] as readonly [string, string, string];
    return {
      outcome: rowsOf(results.slice(0, last.length)),
      position: { lsn: parseLsn(lsn), timeline, systemIdentifier },
    };
  }

  #send(steps: readonly Step[]): Promise<readonly StepResult[]> {
    const opening = this.#opening;
    this.#opening = [];
    return runSteps(this.#sender, this.#named, steps, opening).catch((error) => {
      this.hasFailed = true;
      this.#named = false; // PostgreSQL has skipped the Parse of the statements behind the failed one
      throw error;
    });
  }
}

function rowsOf<Steps extends readonly Step[]>(results: readonly StepResult[]): RowsOf<Steps> {
  return results.map(({ rows }) => rows) as RowsOf<Steps>;
}

/** Runs the steps after those of `opening`, in one round trip. Throws the error of the first that fails, as its `onError` turns it. */
export function runSteps(
  sender: Sender,
  named: boolean,
  own: readonly Step[],
  opening: readonly Step[] = [],
): Promise<readonly StepResult[]> {
  const steps = [...opening, ...own];
  const rows: TextRow[][] = steps.map(() => []);
  const parts = steps.map(({ statement, values }, i) => ({
    statement,
    values: boundValues(statement, values),
    onRow: (row: Row | TextRow) => rows[i]?.push(row instanceof Row ? row.texts() : row),
  }));
  const work = (): Promise<readonly StepResult[]> =>
    new Promise((resolve, reject) => {
      const done = (error: Error | null, tags: readonly string[]): void => {
        const results = tags.map((tag, i) => ({ rows: rows[i] as Rows, tag })).slice(opening.length);
        if (error === null) return resolve(results);
        try {
          steps[tags.length]?.onError?.(error);
          reject(error);
        } catch (turned) {
          reject(turned);
        }
      };
      sender.query(new RoundTrip(parts, named, done));
    });
  return inSqlSpan(
    steps.map(({ statement }) => statement),
    work,
  );
}
