import { LRUCache } from 'lru-cache';
import { JsonBytes } from '../../resource/projection/json-bytes.js';
import type { Reading } from './parse.js';

/** A new buffer, and the capacity of those that are kept and their number, by pool: short lists would be copied out of large buffers. */
const buffers = { atFirst: 65_536, short: { kept: 8, bytesMax: 262_144 }, long: { kept: 4, bytesMax: 2_097_152 } };
/** Of lighter rows chunkRowsMax are less than the first chunk may have. */
const heavyRowBytes = 2048;
/** The budget of all large pages under way: their chunks, and their compressors up to two thirds of it. */
const largePageBytes = 12_582_912;

/**
 * Memory of the pages of a gateway: buffers that are used again, and a budget of large pages. A chunk lives long enough to reach the old
 * generation; with new buffers each time, a page of 100,000 rows made V8 collect its whole heap twenty times.
 */
export class ChunkMemory {
  readonly #spare: Readonly<Record<'short' | 'long', JsonBytes[]>> = { short: [], long: [] };
  readonly #used = { chunks: 0, compressors: 0 };
  /** Bytes of a row in the lists of a workspace that have heavy rows. */
  readonly #heavy = new LRUCache<string, number>({ max: 1000 });

  /** Notes how heavy the rows of a chunk are, so that the first chunk of the next page has as many as fit. Light ones count half. */
  learn({ caller, compiled }: Reading, bytes: number, rows: number): void {
    const key = `${caller.workspace} ${compiled.resource.name}`;
    const [now, before] = [bytes / Math.max(1, rows), this.#heavy.get(key) ?? 0];
    const known = Math.max(now, (now + before) / 2);
    if (known > heavyRowBytes) this.#heavy.set(key, known);
    else if (before > 0) this.#heavy.delete(key);
  }

  /** The number of rows of which about so many bytes are made. */
  rowsFitting({ caller, compiled }: Reading, bytes: number): number {
    return Math.floor(bytes / (this.#heavy.get(`${caller.workspace} ${compiled.resource.name}`) ?? 1));
  }

  /** An empty buffer. One whose chunk failed is never given back, as rows may still be written to it. */
  borrow(pool: 'short' | 'long'): JsonBytes {
    return this.#spare[pool].pop() ?? new JsonBytes(buffers.atFirst);
  }

  /** Lends a filled buffer to its chunk until `release`; a small chunk is copied instead, so that a slow client does not keep a large buffer. */
  lend(json: JsonBytes, pool: 'short' | 'long'): { readonly json: JsonBytes; readonly release: () => void } {
    const giveBack = (): void => {
      const { kept, bytesMax } = buffers[pool];
      json.clear();
      if (json.capacity <= bytesMax && this.#spare[pool].length < kept) this.#spare[pool].push(json);
    };
    if (json.length * 2 > json.capacity) return { json, release: giveBack };
    const copy = json.copy();
    giveBack();
    return { json: copy, release: () => {} };
  }

  /** The bytes that the next chunk of a large page may aim at: a part of what is left, so that many pages get small chunks and the last still gets some. */
  get share(): number {
    return (largePageBytes - this.#used.chunks - this.#used.compressors) / 6;
  }

  /** Takes bytes from the budget, until they are released. */
  reserve(what: 'chunks' | 'compressors', bytes: number): void {
    this.#used[what] += bytes;
  }

  release(what: 'chunks' | 'compressors', bytes: number): void {
    this.#used[what] -= bytes;
  }

  /** Whether a compressor of so many bytes is left. */
  mayCompress(bytes: number): boolean {
    return this.#used.compressors + bytes <= (largePageBytes * 2) / 3;
  }
}
