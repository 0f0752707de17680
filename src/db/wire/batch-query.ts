import type pg from 'pg';
import type { TextRow } from '../row.js';
import type { Statement, Values, WorkspaceId } from '../statement.js';
import { addStatement, boundValues, sendTogether } from './send-statement.js';
import type { BoundValue, Wire } from './wire.js';

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
