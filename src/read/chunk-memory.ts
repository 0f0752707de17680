import { JsonBytes } from '../projection/json-bytes.js';

const bufferBytesAtFirst = 65_536;
const spareBytesMax = 4_194_304;
const largePageBytes = 16_777_216;

/**
 * Memory of the chunks of a gateway: buffers that are used again, and a budget that its large pages share. A chunk lives
 * long enough to reach the old generation; with new buffers each time, a page of 100,000 rows made V8 collect its whole heap twenty times.
 */
export class ChunkMemory {
  readonly #spare: JsonBytes[] = [];
  #spareBytes = 0;
  #largePages = 0;

  /** An empty buffer. One whose chunk failed is never given back, as rows may still be written to it. */
  borrow(): JsonBytes {
    const json = this.#spare.pop();
    if (json === undefined) return new JsonBytes(bufferBytesAtFirst);
    this.#spareBytes -= json.capacity;
    return json;
  }

  /**
   * Lends a filled buffer to its chunk until `release`; a small chunk is copied instead, so that a slow client does not keep
   * a large buffer.
   */
  lend(json: JsonBytes): { readonly json: JsonBytes; readonly release: () => void } {
    if (json.length * 4 > json.capacity) return { json, release: () => this.#giveBack(json) };
    const copy = json.copy();
    this.#giveBack(json);
    return { json: copy, release: () => {} };
  }

  beginLargePage(): void {
    this.#largePages++;
  }

  endLargePage(): void {
    this.#largePages--;
  }

  /** The bytes that a chunk of each large page may aim at: with many pages at a time each gets smaller chunks. */
  get bytesPerLargePage(): number {
    return largePageBytes / this.#largePages;
  }

  #giveBack(json: JsonBytes): void {
    json.clear();
    if (this.#spareBytes + json.capacity > spareBytesMax) return;
    this.#spareBytes += json.capacity;
    this.#spare.push(json);
  }
}
