import type { Row } from '../db/row.js';
import type { Key } from '../definition/row-serializer.js';

/** Remembers where the key of the row it was set to last stands, and makes texts of it only when it is asked for. */
export class LastRowKey {
  readonly #at: readonly [number, number];
  #bytes: Buffer | null = null;
  #firstStart = 0;
  #firstEnd = 0;
  #secondStart = 0;
  #secondEnd = 0;

  constructor(at: readonly [number, number]) {
    this.#at = at;
  }

  set({ bytes, starts, ends }: Row): void {
    const [first, second] = this.#at;
    this.#bytes = bytes;
    this.#firstStart = starts[first] as number;
    this.#firstEnd = ends[first] as number;
    this.#secondStart = starts[second] as number;
    this.#secondEnd = ends[second] as number;
  }

  /** Null before the first row. */
  get key(): Key | null {
    const bytes = this.#bytes;
    if (bytes === null) return null;
    return [
      bytes.toString('utf8', this.#firstStart, this.#firstEnd),
      bytes.toString('utf8', this.#secondStart, this.#secondEnd),
    ];
  }
}
