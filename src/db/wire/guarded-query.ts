import pg from 'pg';
import { Row, type TextRow } from '../row.js';
import type { Statement, Values, WorkspaceId } from '../statement.js';

const guardName = 'workspace-guard';
const guardText = "select set_config('gateway.workspace_id', $1, true)";

/** What we use of pg's connection (pg 8.23; pinned, and held by the tests of the tenant wall). */
interface Wire {
  readonly stream: { cork(): void; uncork(): void };
  readonly parsedStatements: Record<string, string | undefined>;
  readonly submittedNamedStatements: Record<string, string | undefined>;
  guarded?: boolean;
  parse(message: { name: string; text: string }): void;
  bind(message: { statement: string; values: (string | null | Buffer)[] }): void;
  execute(message: { portal: string; rows: number }): void;
  sync(): void;
}

/**
 * A prepared statement with the workspace setting in front of it, both bound before one Sync: one implicit transaction,
 * one flush, no extra round trip (PostgreSQL 55.2.3 and 55.2.4). The setting is local to that transaction, so a
 * connection that is reused, or handed on by PgBouncer, carries nothing over. Works on pipelined clients.
 *
 * Rows are given to `onRow` as they arrive, as PostgreSQL sent them: no type parsing, no row objects, no row description asked for. Each is valid only until
 * `onRow` returns.
 * `workspace` null leaves the guard out; only statements that touch no view may do so.
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
    if (this.#workspace !== null) {
      const guard = this.#named ? guardName : '';
      if (!this.#named || !wire.guarded) wire.parse({ text: guardText, name: guard });
      wire.guarded = true;
      wire.bind({ statement: guard, values: [this.#workspace] });
      wire.execute({ portal: '', rows: 0 });
    }
    const name = this.#named ? this.#statement.name : '';
    if (
      !this.#named ||
      (wire.parsedStatements[name] === undefined && wire.submittedNamedStatements[name] === undefined)
    ) {
      wire.parse({ text: this.#statement.text, name });
      if (this.#named) wire.submittedNamedStatements[name] = this.#statement.text;
    }
    wire.bind({ statement: name, values: this.#values });
    wire.execute({ portal: '', rows: 0 });
    wire.sync();
  }

  /** Rows come as `Row` where the connection is tapped, else as pg reads them. */
  handleDataRow({ fields }: { fields: Row | TextRow }): void {
    if (this.#expected !== 1 || this.#failure !== null) return; // the guard's own row
    try {
      this.#onRow(fields instanceof Row ? fields : Row.of(fields));
    } catch (error) {
      this.#failure = error as Error; // thrown here it would end the process; it is reported when the statement ends
    }
  }

  handleCommandComplete(): void {
    this.#expected--;
  }

  /** Rows count as complete only after PostgreSQL said CommandComplete for the guard and for the statement. */
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
