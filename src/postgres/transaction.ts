import { Problem } from '../base/errors.js';
import { traceSql } from '../base/tracing.js';
import { Row, type TextRow } from './row.js';
import { prepareSql, type Statement, type Values } from './statement.js';
import { parseLsn, type WalPosition, walPositionStatement } from './wal-position.js';
import { bindValues, guard, RoundTrip } from './wire/queries.js';

export interface Step {
  readonly statement: Statement;
  readonly values: Values;
  /** Throws a Problem for the errors that the step expects; rethrows the others. */
  readonly onError?: (error: unknown) => never;
}

export type TextRows = readonly TextRow[];

export interface Sender {
  query(roundTrip: RoundTrip): unknown;
}

interface StepResult {
  readonly rows: TextRows;
  readonly tag: string;
}

export interface Transaction {
  /** Runs the steps in one round trip. After an error PostgreSQL skips the remaining ones. */
  run<Steps extends readonly Step[]>(...steps: Steps): Promise<RowsOf<Steps>>;
  /** Runs the steps and ends in one round trip, by COMMIT, or by the ROLLBACK of a dry run. A later `run` begins another transaction. */
  commit<Steps extends readonly Step[]>(...steps: Steps): Promise<Committed<RowsOf<Steps>>>;
}

export interface Committed<Result> {
  readonly outcome: Result;
  readonly position: WalPosition;
}

type RowsOf<Steps extends readonly Step[]> = { [K in keyof Steps]: TextRows };

export type Work<T> = (transaction: Transaction) => Promise<Committed<T>>;

export interface TransactionResult<T> {
  /** A Problem means that the transaction was rolled back. */
  readonly outcome: T | Problem;
  /** Everything that the transaction wrote or read lies at or before this position. */
  readonly position: WalPosition;
}

const makeCommandStep = (text: string, label = text): Step => ({ statement: prepareSql(label, text), values: {} });
export interface Commands {
  readonly begin: Step;
  readonly end: readonly Step[];
  readonly undo: Step;
}
export const committing: Commands = {
  /** READ COMMITTED whatever the default is: after a wait for a key its stored outcome must be visible. */
  begin: makeCommandStep('begin isolation level read committed', 'begin'),
  end: [makeCommandStep('commit')],
  undo: makeCommandStep('rollback'),
};
/** Runs the deferred constraints and triggers, which COMMIT would run. */
const deferred = makeCommandStep('set constraints all immediate');
/** A dry run fails as COMMIT would, and keeps nothing. */
export const dryRun: Commands = { ...committing, end: [deferred, committing.undo] };
/** The commands within an open transaction of the caller, who can undo them all. */
export const nested: Commands = {
  begin: makeCommandStep('savepoint gateway'),
  end: [deferred, makeCommandStep('release savepoint gateway')],
  undo: makeCommandStep('rollback to savepoint gateway'),
};
const position = makeCommandStep(walPositionStatement, 'wal-position');
export const makeGuardStep = (mac: string): Step => ({ statement: guard, values: { mac } });

/**
 * A transaction that takes no round trip of its own: BEGIN and the guard travel with its first statements, COMMIT with its last ones.
 * Without the guard, which names the workspace, no row can be seen or changed. Example of a change of a record, in two round trips:
 *
 *   `run(claim, lock)`     sends BEGIN, guard, claim, lock
 *   `commit(change)`       sends change, COMMIT, and the question for the WAL position
 */
export class OpenTransaction implements Transaction {
  readonly #guard: Step;
  #opening: readonly Step[];
  /** After a failure it is unknown which prepared statements the connection has, so it is not used again. */
  hasFailed = false;

  constructor(
    private readonly sender: Sender,
    mac: string,
    private isNamed: boolean,
    private readonly commands: Commands = committing,
  ) {
    this.#guard = makeGuardStep(mac);
    this.#opening = [commands.begin, this.#guard];
  }

  async run<Steps extends readonly Step[]>(...steps: Steps): Promise<RowsOf<Steps>> {
    return getRows(await this.#send(steps));
  }

  async commit<Steps extends readonly Step[]>(...steps: Steps): Promise<Committed<RowsOf<Steps>>> {
    try {
      return await this.#end(this.commands.end, steps);
    } catch (error) {
      this.#opening = [this.commands.undo];
      throw error;
    } finally {
      this.#opening = [...this.#opening, this.commands.begin, this.#guard];
    }
  }

  /** A Problem rolls back the uncommitted part, and is the outcome. */
  async runWork<T>(work: Work<T>): Promise<TransactionResult<T>> {
    try {
      return await work(this);
    } catch (error) {
      if (!(error instanceof Problem)) throw error;
      const { position } = await this.#end([this.commands.undo], []);
      return { outcome: error, position };
    }
  }

  /** Asks for the primary's position in the same message. PostgreSQL answers a failed COMMIT with ROLLBACK (COMMIT, "Outputs"). */
  async #end<Steps extends readonly Step[]>(end: readonly Step[], last: Steps): Promise<Committed<RowsOf<Steps>>> {
    const expected = end.at(-1)?.statement.text.split(' ')[0]?.toUpperCase(); // the tag of COMMIT, ROLLBACK or RELEASE
    const results = await this.#send([...last, ...end, position]);
    const [{ tag }, { rows }] = results.slice(-2) as [StepResult, StepResult];
    if (tag !== expected) throw new Error(`${expected} was answered ${tag}`);
    const [lsn, timeline, systemIdentifier] = rows[0] as readonly [string, string, string];
    return {
      outcome: getRows(results.slice(0, last.length)),
      position: { lsn: parseLsn(lsn), timeline, systemIdentifier },
    };
  }

  #send(steps: readonly Step[]): Promise<readonly StepResult[]> {
    const opening = this.#opening;
    this.#opening = [];
    return runSteps(this.sender, this.isNamed, steps, opening).catch((error) => {
      this.hasFailed = true;
      this.isNamed = false; // PostgreSQL has skipped the Parse of the statements after the failed one
      throw error;
    });
  }
}

function getRows<Steps extends readonly Step[]>(results: readonly StepResult[]): RowsOf<Steps> {
  return results.map(({ rows }) => rows) as RowsOf<Steps>;
}

/** Runs the steps after the statements of `opening`. Throws the first error as its `onError` maps it. */
export function runSteps(
  sender: Sender,
  isNamed: boolean,
  steps: readonly Step[],
  opening: readonly Step[] = [],
): Promise<readonly StepResult[]> {
  const all = [...opening, ...steps];
  const rows: TextRow[][] = all.map(() => []);
  const bindings = all.map(({ statement, values }, i) => ({
    statement,
    values: bindValues(statement, values),
    onRow: (row: Row | TextRow) => rows[i]?.push(row instanceof Row ? row.getTexts() : row),
  }));
  const send = (): Promise<readonly StepResult[]> =>
    new Promise((resolve, reject) => {
      const onDone = (error: Error | null, tags: readonly string[]): void => {
        const results = tags.map((tag, i) => ({ rows: rows[i] as TextRows, tag })).slice(opening.length);
        if (error === null) return resolve(results);
        try {
          all[tags.length]?.onError?.(error);
          reject(error);
        } catch (mapped) {
          reject(mapped);
        }
      };
      sender.query(new RoundTrip(bindings, isNamed, onDone));
    });
  const statements = all.map(({ statement }) => statement);
  return traceSql(statements, send);
}
