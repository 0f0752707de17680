import { LRUCache } from 'lru-cache';
import { JsonBytes } from '../../resource/projection/json-bytes.js';
import type { RawRequest } from './parse.js';

type ListIdentity = Pick<RawRequest, 'compiled' | 'caller'>;

/** Capacity of new and kept buffers: short lists would be copied out of large ones. */
const buffers = { atFirst: 65_536, short: { kept: 8, bytesMax: 262_144 }, long: { kept: 4, bytesMax: 2_097_152 } };
/** With lighter rows, chunkRowsMax of them are less than a first chunk. */
const heavyRowBytes = 2048;
/** Bound of all large pages together: their chunks, and compressors up to two thirds of it. */
const largePageBytes = 12_582_912;

/** Uses buffers again: with new ones a page of 100,000 rows made V8 collect its whole heap twenty times. */
export class ChunkMemory {
  readonly #spare: Readonly<Record<'short' | 'long', JsonBytes[]>> = { short: [], long: [] };
  readonly #used = { chunks: 0, compressors: 0 };
  readonly #heavy = new LRUCache<string, number>({ max: 1000 });

  /** Remembers the size of rows for the next first chunk. Light ones count half. */
  learn({ caller, compiled }: ListIdentity, bytes: number, rows: number): void {
    const key = `${caller.workspace} ${compiled.resource.name}`;
    const [now, before] = [bytes / Math.max(1, rows), this.#heavy.get(key) ?? 0];
    const knownBytes = Math.max(now, (now + before) / 2);
    if (knownBytes > heavyRowBytes) this.#heavy.set(key, knownBytes);
    else if (before > 0) this.#heavy.delete(key);
  }

  countRowsFitting({ caller, compiled }: ListIdentity, bytes: number): number {
    return Math.floor(bytes / (this.#heavy.get(`${caller.workspace} ${compiled.resource.name}`) ?? 1));
  }

  /** Lends a buffer. A failed chunk never returns it, because rows may still be written to it. */
  borrow(pool: 'short' | 'long'): JsonBytes {
    return this.#spare[pool].pop() ?? new JsonBytes(buffers.atFirst);
  }

  /** Lends the buffer until `release`. A small chunk is copied, so that a slow client keeps no large buffer. */
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

  /** A sixth of the remaining memory: many pages get small chunks, the last still gets some, and the first what `buffers.long` keeps. */
  get bytesPerPage(): number {
    return (largePageBytes - this.#used.chunks - this.#used.compressors) / 6;
  }

  reserve(what: 'chunks' | 'compressors', bytes: number): void {
    this.#used[what] += bytes;
  }

  release(what: 'chunks' | 'compressors', bytes: number): void {
    this.#used[what] -= bytes;
  }

  mayCompress(bytes: number): boolean {
    return this.#used.compressors + bytes <= (largePageBytes * 2) / 3;
  }
}
