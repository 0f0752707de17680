import type { Socket } from 'node:net';
import Cursor from 'pg-cursor';
import type { Row } from '../row.js';
import type { BoundValue } from './wire.js';

/**
 * Passes on each row as PostgreSQL sent it (row-tap.ts), a batch at a time (PostgreSQL 55.2.3, Execute). The socket waits while `onRow` has
 * returned true: how heavy the rows of a batch are is not known before they come.
 */
export class RowCursor extends Cursor {
  #rows = 0;
  #failure: Error | null = null;
  #onFull: () => void = () => undefined;

  constructor(
    text: string,
    values: readonly BoundValue[],
    private readonly stream: Socket,
    private readonly onRow: (row: Row) => boolean,
  ) {
    super(text, [...values]);
  }

  /** Is called by pg. A throw here would end the process. */
  handleDataRow({ fields }: { fields: Row }): void {
    this.#rows++;
    if (this.#failure !== null) return;
    try {
      if (!this.onRow(fields)) return;
      this.stream.pause();
      this.#onFull();
    } catch (error) {
      this.#failure = error as Error;
    }
  }

  /** Reads up to `max` rows; fewer come at the end. Yields the number of new rows before each wait. Rejects with the error of `onRow`. */
  async *readRows(max: number): AsyncGenerator<number> {
    const reading = this.read(max).then(() => true);
    for (let [isRead, before] = [false, this.#rows]; !isRead; before = this.#rows) {
      const full = new Promise<boolean>((resolve) => {
        this.#onFull = () => resolve(false);
      });
      isRead = await Promise.race([reading, full]);
      if (this.#failure !== null) throw this.#failure;
      yield this.#rows - before;
      this.stream.resume();
    }
  }
}
