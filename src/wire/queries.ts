import pg from 'pg';
import { Row, type TextRow } from '../postgres/row.js';
import type { Statement, Values, WorkspaceId } from '../postgres/statement.js';
import { markStatement } from '../postgres/wal-position.js';
import type { BoundValue, Wire } from './wire.js';

/** A statement with its values, and the workspace for which it runs. */
interface Query {
  readonly statement: Statement;
  readonly workspace: WorkspaceId | null;
  readonly values: Values;
  readonly onMark?: ((mark: TextRow) => void) | undefined;
  readonly named: boolean;
}

/** The results of a query, in the order in which PostgreSQL sends them. */
type Result = 'guard' | 'mark' | 'rows';

/**
 * A prepared statement after the guard, the statement that sets the workspace. Both are bound before one Sync, so they share
 * an implicit transaction and a round trip (PostgreSQL 55.2.3 and 55.2.4). The setting is local to that transaction, so that
 * the next user of the connection, also behind PgBouncer, does not inherit it. Works on pipelined clients. A null `workspace`
 * leaves the guard out, for statements that read no view. With `onMark` a mark of the server comes before the statement and
 * after it.
 *
 * `onRow` gets each row as PostgreSQL sent it, without type parsing or a row description; the row is valid until `onRow` returns.
 */
export class GuardedQuery extends pg.Query {
  /** Rows given to `onRow`. */
  rowsRead = 0;
  readonly #results: Result[];
  #failure: Error | null = null;
  readonly #query: Query;
  readonly #values: BoundValue[];
  readonly #onRow: (row: Row) => void;

  constructor(query: Query, onRow: (row: Row) => void, done: (error: Error | null) => void) {
    super(query.statement.text as never, undefined, ((error: Error | null) => done(error ?? this.#outcome())) as never);
    Object.assign(this, { name: query.named ? query.statement.name : '', queryMode: 'extended' });
    const marks: Result[] = query.onMark ? ['mark'] : [];
    this.#results = [...(query.workspace === null ? [] : (['guard'] as const)), ...marks, 'rows', ...marks];
    this.#query = query;
    this.#values = boundValues(query.statement, query.workspace, query.values);
    this.#onRow = onRow;
  }

  prepare(wire: Wire): void {
    const { statement, workspace, onMark, named } = this.#query;
    sendTogether(wire, () => {
      if (workspace !== null) addStatement(wire, guardOf(statement), [workspace], named);
      if (onMark) addStatement(wire, markStatement, [], named);
      addStatement(wire, statement, this.#values, named);
      if (onMark) addStatement(wire, markStatement, [], named);
    });
  }

  /** Gets a `Row` on a tapped connection (row-tap.ts), else an array of texts. */
  handleDataRow({ fields }: { fields: Row | TextRow }): void {
    const [result] = this.#results;
    if (result === 'guard' || this.#failure !== null) return;
    const row = fields instanceof Row ? fields : Row.of(fields);
    try {
      if (result === 'mark') this.#query.onMark?.(row.texts());
      else {
        this.rowsRead++;
        this.#onRow(row);
      }
    } catch (error) {
      this.#failure = error as Error; // a throw here would end the process; #outcome reports the error
    }
  }

  handleCommandComplete(): void {
    this.#results.shift();
  }

  /** Returns an error unless PostgreSQL sent CommandComplete for each result: rows could be missing. */
  #outcome(): Error | null {
    return this.#failure ?? (this.#results.length === 0 ? null : new Error('the statement ended without completing'));
  }
}

/** Statements of one round trip, with their values. */
export interface Batch {
  readonly steps: readonly { readonly statement: Statement; readonly values: Values }[];
  readonly workspace: WorkspaceId | null;
  /** Whether statements are prepared by name, once per connection. After an error it is not known which of them are. */
  readonly named: boolean;
}

/** The rows of a statement, and its command tag, such as COMMIT (PostgreSQL 55.7, CommandComplete). */
export interface BatchResult {
  readonly rows: readonly TextRow[];
  readonly tag: string;
}

/**
 * Statements that are all bound before one Sync, so that they share a round trip and PostgreSQL skips the rest after an error
 * (55.2.3 and 55.2.4). `done` gets the results of the statements that completed; with an error, the next one failed. pg calls the
 * methods; the client must not be pipelined.
 */
export class BatchQuery implements pg.Submittable {
  readonly #batch: Batch;
  readonly #values: readonly BoundValue[][];
  /** pg replaces it while `query_timeout` runs, to end that timer, which would keep the process alive for as long. */
  callback: (error: Error | null) => void;
  readonly #results: BatchResult[] = [];
  #rows: TextRow[] = [];

  constructor(batch: Batch, done: (error: Error | null, results: readonly BatchResult[]) => void) {
    this.#batch = batch;
    this.callback = (error) => done(error, this.#results);
    this.#values = batch.steps.map(({ statement, values }) => boundValues(statement, batch.workspace, values));
  }

  submit(connection: pg.Connection): void {
    const wire = connection as unknown as Wire;
    const { steps, named } = this.#batch;
    sendTogether(wire, () => {
      for (const [i, { statement }] of steps.entries())
        addStatement(wire, statement, this.#values[i] as BoundValue[], named);
    });
  }

  handleDataRow({ fields }: { fields: TextRow }): void {
    this.#rows.push(fields);
  }

  handleCommandComplete({ text }: { text: string }): void {
    this.#results.push({ rows: this.#rows, tag: text });
    this.#rows = [];
  }

  handleError(error: Error): void {
    this.callback(error);
  }

  /** The batch has failed unless PostgreSQL sent CommandComplete for each statement. */
  handleReadyForQuery(): void {
    const isWhole = this.#results.length === this.#batch.steps.length;
    this.callback(isWhole ? null : new Error('the batch ended without completing'));
  }
}

/** Sets the workspace until the end of the transaction: without it the tenant wall shows no row and takes none. */
export const guard: Statement = {
  name: 'workspace-guard',
  text: "select set_config('gateway.workspace_id', $1, true)",
  parameters: ['workspace'],
};

/** Without the other ways to a row the planner uses bitmap scans. Generic plans keep to the settings of their first run. */
const guardInTableOrder: Statement = {
  name: 'workspace-guard-in-table-order',
  text: `${guard.text}, set_config('enable_indexscan', 'off', true), set_config('enable_seqscan', 'off', true)`,
  parameters: guard.parameters,
};

/** The guard of a statement. */
export const guardOf = ({ inTableOrder }: Statement): Statement => (inTableOrder ? guardInTableOrder : guard);

/** Writes Parse, unless the connection has the statement by its name already, then Bind and Execute. */
function addStatement(
  wire: Wire,
  statement: Pick<Statement, 'name' | 'text'>,
  values: readonly BoundValue[],
  isNamed: boolean,
): void {
  const { text } = statement;
  const name = isNamed ? statement.name : '';
  const isPrepared = name !== '' && (wire.parsedStatements[name] ?? wire.submittedNamedStatements[name]) !== undefined;
  if (!isPrepared) wire.parse({ name, text });
  if (!isPrepared && isNamed) wire.submittedNamedStatements[name] = text;
  wire.bind({ statement: name, values });
  wire.execute({});
}

/** Sends the messages that `add` writes, and Sync, in one write. */
function sendTogether(wire: Wire, add: () => void): void {
  wire.stream.cork();
  try {
    add();
    wire.sync();
  } finally {
    wire.stream.uncork();
  }
}

/** The values in the order of the statement's parameters. Throws when one is missing. */
function boundValues({ name, parameters }: Statement, workspace: WorkspaceId | null, values: Values): BoundValue[] {
  return parameters.map((parameter) => {
    if (parameter === 'workspace') return workspace;
    const value = values[parameter];
    if (value === undefined) throw new Error(`statement ${name} lacks a value for ${parameter}`);
    return typeof value === 'number' ? String(value) : value;
  });
}
