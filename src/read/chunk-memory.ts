import { JsonBytes } from '../projection/json-bytes.js';

const bufferBytesAtFirst = 65_536;
/** Short lists take no larger buffer: they would fill less than half of it, and be copied out of it. */
const smallBufferBytesMax = 262_144;
const spareBytesMax = 4_194_304;
/** The budget of all large pages under way: their chunks, and their compressors up to two thirds of it. */
const largePageBytes = 12_582_912;
/** A chunk may aim at this part of what is left, so that many pages get small chunks and the last still gets some. */
const chunkShare = 1 / 6;
const compressorShare = 2 / 3;

/**
 * Memory of the large pages of a gateway: buffers of chunks that are used again, and a budget for chunks and compressors. A chunk
 * lives long enough to reach the old generation; with new buffers each time, a page of 100,000 rows made V8 collect its whole heap twenty times.
 */
export class ChunkMemory {
  /** The smallest first. */
  readonly #spare: JsonBytes[] = [];
  #spareBytes = 0;
  #chunkBytes = 0;
  #compressorBytes = 0;

  /**
   * An empty buffer, a small one for statements of the short pool, a large one for chunks. One whose chunk failed is never given back, as rows
   * may still be written to it.
   */
  borrow(pool: 'short' | 'long'): JsonBytes {
    const { length } = this.#spare;
    const hasFitting = pool === 'long' ? length > 0 : (this.#spare[0]?.capacity ?? Infinity) <= smallBufferBytesMax;
    if (!hasFitting) return new JsonBytes(bufferBytesAtFirst);
    const [json] = this.#spare.splice(pool === 'long' ? length - 1 : 0, 1) as [JsonBytes];
    this.#spareBytes -= json.capacity;
    return json;
  }

  /**
   * Lends a filled buffer to its chunk until `release`; a small chunk is copied instead, so that a slow client does not keep
   * a large buffer.
   */
  lend(json: JsonBytes): { readonly json: JsonBytes; readonly release: () => void } {
    if (json.length * 2 > json.capacity) return { json, release: () => this.#giveBack(json) };
    const copy = json.copy();
    this.#giveBack(json);
    return { json: copy, release: () => {} };
  }

  /** The bytes that the next chunk of a large page may aim at. */
  get chunkBytesMax(): number {
    return (largePageBytes - this.#chunkBytes - this.#compressorBytes) * chunkShare;
  }

  /** Takes the bytes of chunks from the budget; a negative number gives them back. */
  useForChunks(bytes: number): void {
    this.#chunkBytes += bytes;
  }

  /** Takes the bytes of a compressor from the budget until `endCompressor`; false when they are not left. */
  beginCompressor(bytes: number): boolean {
    if (this.#compressorBytes + bytes > largePageBytes * compressorShare) return false;
    this.#compressorBytes += bytes;
    return true;
  }

  endCompressor(bytes: number): void {
    this.#compressorBytes -= bytes;
  }

  #giveBack(json: JsonBytes): void {
    json.clear();
    if (this.#spareBytes + json.capacity > spareBytesMax) return;
    this.#spareBytes += json.capacity;
    const larger = this.#spare.findIndex(({ capacity }) => capacity >= json.capacity);
    this.#spare.splice(larger < 0 ? this.#spare.length : larger, 0, json);
  }
}
