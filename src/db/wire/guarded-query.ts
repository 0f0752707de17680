import pg from 'pg';
import { Row, type TextRow } from '../row.js';
import type { Statement, Values, WorkspaceId } from '../statement.js';
import type { Wire } from './wire.js';

const guardName = 'workspace-guard';
const guardText = "select set_config('gateway.workspace_id', $1, true)";

/**
 * A prepared statement after the guard, the statement that sets the workspace. Both are bound before one Sync, so they share
 * an implicit transaction and a round trip (PostgreSQL 55.2.3 and 55.2.4). The setting is local to that transaction, so that
 * the next user of the connection, also behind PgBouncer, does not inherit it. Works on pipelined clients. A null `workspace`
 * leaves the guard out, for statements that read no view.
 *
 * `onRow` gets each row as PostgreSQL sent it, without type parsing or a row description; the row is valid until `onRow` returns.
 */
export class GuardedQuery extends pg.Query {
  #expected: number;
  #failure: Error | null = null;
  readonly #statement: Statement;
  readonly #workspace: WorkspaceId | null;
  readonly #values: (string | null | Buffer)[];
  readonly #named: boolean;
  readonly #onRow: (row: Row) => void;

  constructor(
    query: { statement: Statement; workspace: WorkspaceId | null; values: Values; named: boolean },
    onRow: (row: Row) => void,
    done: (error: Error | null) => void,
  ) {
    super(query.statement.text as never, undefined, ((error: Error | null) => done(error ?? this.#outcome())) as never);
    Object.assign(this, { name: query.named ? query.statement.name : '', queryMode: 'extended' });
    this.#expected = query.workspace === null ? 1 : 2;
    this.#statement = query.statement;
    this.#workspace = query.workspace;
    this.#values = query.statement.parameters.map((name) => bound(query, name));
    this.#named = query.named;
    this.#onRow = onRow;
  }

  prepare(wire: Wire): void {
    if (this.#workspace !== null) this.#send(wire, guardName, guardText, [this.#workspace]);
    this.#send(wire, this.#statement.name, this.#statement.text, this.#values);
    wire.sync();
  }

  #send(wire: Wire, statementName: string, text: string, values: (string | null | Buffer)[]): void {
    const name = this.#named ? statementName : '';
    const isPrepared =
      name !== '' && (wire.parsedStatements[name] ?? wire.submittedNamedStatements[name]) !== undefined;
    if (!isPrepared) wire.parse({ text, name });
    if (!isPrepared && this.#named) wire.submittedNamedStatements[name] = text;
    wire.bind({ statement: name, values });
    wire.execute({ portal: '', rows: 0 });
  }

  /** Gets a `Row` on a tapped connection (row-tap.ts), else an array of texts. */
  handleDataRow({ fields }: { fields: Row | TextRow }): void {
    if (this.#expected !== 1 || this.#failure !== null) return; // the guard's own row
    try {
      this.#onRow(fields instanceof Row ? fields : Row.of(fields));
    } catch (error) {
      this.#failure = error as Error; // a throw here would end the process; #outcome reports the error
    }
  }

  handleCommandComplete(): void {
    this.#expected--;
  }

  /** Returns an error unless PostgreSQL sent CommandComplete for the guard and for the statement: rows could be missing. */
  #outcome(): Error | null {
    return this.#failure ?? (this.#expected === 0 ? null : new Error('the statement ended without completing'));
  }
}

function bound(
  query: { statement: Statement; workspace: WorkspaceId | null; values: Values },
  name: string,
): string | null | Buffer {
  if (name === 'workspace') return query.workspace;
  const value = query.values[name];
  if (value === undefined) throw new Error(`statement ${query.statement.name} lacks a value for ${name}`);
  return typeof value === 'number' ? String(value) : value;
}
