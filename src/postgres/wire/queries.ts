import pg from 'pg';
import type { Row, TextRow } from '../row.js';
import type { Statement, Values, WorkspaceId } from '../statement.js';
import type { BoundValue, Wire } from './wire.js';

/** A statement of a round trip. */
export interface Part {
  readonly statement: Statement;
  /** In the order of its parameters. */
  readonly values: readonly BoundValue[];
  /** Gets each row: on a tapped connection (row-tap.ts) as PostgreSQL sent it, valid until it returns, else as the texts that pg made. */
  onRow?(row: Row | TextRow): void;
}

/**
 * Statements that are all bound before one Sync, so that they share an implicit transaction and a round trip, and PostgreSQL skips the
 * rest after an error (PostgreSQL 55.2.3 and 55.2.4). With `isNamed` each is prepared once per connection. `done` gets the command
 * tags (55.7, CommandComplete) of the statements that completed; with an error, the next one failed. pg calls the methods.
 */
export class RoundTrip extends pg.Query {
  readonly #parts: readonly Part[];
  readonly #isNamed: boolean;
  readonly #tags: string[] = [];
  #failure: Error | null = null;
  /** pg replaces it while `query_timeout` runs, to end that timer, which would keep the process alive for as long. */
  declare callback: (error: Error | null) => void;

  constructor(parts: readonly Part[], isNamed: boolean, done: (error: Error | null, tags: readonly string[]) => void) {
    super('' as never, undefined, ((error: Error | null) => done(error, this.#tags)) as never);
    Object.assign(this, { queryMode: 'extended' });
    this.#parts = parts;
    this.#isNamed = isNamed;
  }

  /** pg sends the messages in one write. */
  prepare(wire: Wire): void {
    for (const part of this.#parts) addPart(wire, part, this.#isNamed);
    wire.sync();
  }

  handleDataRow({ fields }: { fields: Row | TextRow }): void {
    if (this.#failure !== null) return;
    try {
      this.#parts[this.#tags.length]?.onRow?.(fields);
    } catch (error) {
      this.#failure = error as Error; // a throw here would end the process
    }
  }

  handleCommandComplete({ text }: { text: string }): void {
    this.#tags.push(text);
  }

  handleError(error: Error): void {
    this.callback(error);
  }

  /** The round trip has failed unless PostgreSQL sent CommandComplete for each statement: rows could be missing. */
  handleReadyForQuery(): void {
    const isWhole = this.#tags.length === this.#parts.length;
    this.callback(this.#failure ?? (isWhole ? null : new Error('the statements ended without completing')));
  }
}

/** Writes Parse, unless the connection has the statement by its name already, then Bind and Execute. */
function addPart(wire: Wire, { statement, values }: Part, isNamed: boolean): void {
  const { text } = statement;
  const name = isNamed ? statement.name : '';
  const isPrepared = name !== '' && (wire.parsedStatements[name] ?? wire.submittedNamedStatements[name]) !== undefined;
  if (!isPrepared) wire.parse({ name, text });
  if (!isPrepared && isNamed) wire.submittedNamedStatements[name] = text;
  wire.bind({ statement: name, values });
  wire.execute({});
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

/** The values in the order of the statement's parameters. Throws when one is missing. */
export function boundValues(
  { name, parameters }: Statement,
  workspace: WorkspaceId | null,
  values: Values,
): BoundValue[] {
  return parameters.map((parameter) => {
    if (parameter === 'workspace') return workspace;
    const value = values[parameter];
    if (value === undefined) throw new Error(`statement ${name} lacks a value for ${parameter}`);
    return typeof value === 'number' ? String(value) : value;
  });
}
