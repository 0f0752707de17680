import pg from 'pg';
import type { TextRow } from '../row.js';
import type { Statement, Values, WorkspaceId } from '../statement.js';
import { type BoundValue, Messages } from './messages.js';
import { addStatement, boundValues, sendMessages } from './send-statement.js';
import type { Wire } from './wire.js';

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
 * (55.2.3 and 55.2.4). `done` gets the results of the statements that completed; with an error, the next one failed.
 */
export class BatchQuery extends pg.Query {
  readonly #batch: Batch;
  readonly #values: readonly BoundValue[][];
  readonly #results: BatchResult[] = [];
  #rows: TextRow[] = [];

  constructor(batch: Batch, done: (error: Error | null, results: readonly BatchResult[]) => void) {
    super('batch' as never, undefined, ((error: Error | null) =>
      done(error ?? this.#outcome(), this.#results)) as never);
    Object.assign(this, { queryMode: 'extended' });
    this.#batch = batch;
    this.#values = batch.steps.map(({ statement, values }) => boundValues(statement, batch.workspace, values));
  }

  prepare(wire: Wire): void {
    const { steps, named } = this.#batch;
    const messages = new Messages();
    for (const [i, { statement }] of steps.entries())
      addStatement(messages, wire, statement, this.#values[i] as BoundValue[], named);
    sendMessages(wire, messages);
  }

  handleDataRow({ fields }: { fields: TextRow }): void {
    this.#rows.push(fields);
  }

  handleCommandComplete({ text }: { text: string }): void {
    this.#results.push({ rows: this.#rows, tag: text });
    this.#rows = [];
  }

  /** Returns an error unless PostgreSQL sent CommandComplete for each statement. */
  #outcome(): Error | null {
    return this.#results.length === this.#batch.steps.length ? null : new Error('the batch ended without completing');
  }
}
