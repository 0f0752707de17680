import pg from 'pg';
import { markStatement } from '../replica-mark.js';
import { Row, type TextRow } from '../row.js';
import type { Statement, Values, WorkspaceId } from '../statement.js';
import { addStatement, boundValues, guardOf, sendTogether } from './send-statement.js';
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
