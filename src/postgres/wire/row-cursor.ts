import Cursor from 'pg-cursor';
import type { Row } from '../row.js';
import type { BoundValue } from './wire.js';

/** Passes on each row as PostgreSQL sent it (row-tap.ts), a batch at a time (PostgreSQL 55.2.3, Execute). */
export class RowCursor extends Cursor {
  #rows = 0;
  #failure: Error | null = null;

  constructor(
    text: string,
    values: readonly BoundValue[],
    private readonly onRow: (row: Row) => void,
  ) {
    super(text, [...values]);
  }

  /** Is called by pg. A throw here would end the process. */
  handleDataRow({ fields }: { fields: Row }): void {
    this.#rows++;
    if (this.#failure !== null) return;
    try {
      this.onRow(fields);
    } catch (error) {
      this.#failure = error as Error;
    }
  }

  /** Reads up to `max` rows; fewer come at the end. Rejects with the error of `onRow`. */
  async readRows(max: number): Promise<number> {
    const before = this.#rows;
    await this.read(max);
    if (this.#failure !== null) throw this.#failure;
    return this.#rows - before;
  }
}
