import type { Key } from '../definition/row-serializer.js';
import type { Row } from '../postgres/row.js';
import type { Values } from '../postgres/statement.js';
import { JsonBytes } from '../projection/json-bytes.js';
import type { ListRequest } from './parse.js';
import type { ReadTarget } from './routing.js';
import { continuationOf, type PagePhase, type ReadDeps, withReadTarget } from './routing.js';

/** Rows of a page in order. */
export interface Chunk {
  /** JSON of the rows, joined by commas, after the start of the page or a comma. Must not be used after `release`. */
  readonly json: JsonBytes;
  /** Gives the buffer back; to be called when its bytes were sent or copied. */
  readonly release: () => void;
  readonly count: number;
  /** Key of the last row; null when there is none. */
  readonly last: Key | null;
  /** Whether the range has a row after these. */
  readonly more: boolean;
  readonly target: ReadTarget;
  /** The moment up to which the server was known to be current before it was asked, epoch milliseconds. */
  readonly asOfMs: number | null;
  /** Failed attempts before this one. */
  readonly failures: number;
  /** The phase of the chunks that continue the page. */
  readonly continuation: PagePhase;
}

/** A backend that sends nothing for so long may be frozen: the chunk is read again, this time with the statement's time limit only. */
const firstStallMsMax = 1200;

/** A range of a list: after a key, up to and including a key; null is no bound. */
export interface Range {
  readonly after: Key | null;
  readonly until: Key | null;
}

/** A statement of so many rows costs as much as one detail. */
const rowsPerCost = 12;
const pageOpening = Buffer.from('{"data":[');

/**
 * Reads the first `rows` rows of a range, by one statement on one server. Every list is made of such chunks: a chunk can be
 * repeated on another replica when its own is lost, and it leaves no portal open for a slow client.
 */
export async function readChunk(
  deps: ReadDeps,
  request: ListRequest,
  range: Range,
  rows: number,
  pool: 'short' | 'long',
  phase: PagePhase,
): Promise<Chunk> {
  const { serializer } = request;
  const { workspace } = request.caller;
  const bounds = range.after ? (range.until ? 'between' : 'after') : range.until ? 'until' : 'all';
  const statement = request.statements.rows[bounds];
  const values = { limit: rows + 1, ...request.values, ...rangeValues(range) };
  const isContinuation = phase.kind === 'continuation';
  const waitMs = isContinuation ? deps.statementTimeoutMs : deps.queueWaitMs;
  const cost = pool === 'long' ? 1 : Math.ceil(rows / rowsPerCost);
  const options = { waitMs, isContinuation, isChunk: true, cost, signal: request.signal };
  return withReadTarget(deps, request, phase, async (attempt) => {
    let borrowed: JsonBytes | null = null; // until the first row: requests that wait, and may be refused, hold no buffer
    const begin = (): JsonBytes => {
      borrowed = deps.chunkMemory.borrow(pool);
      if (!isContinuation) borrowed.raw(pageOpening);
      return borrowed;
    };
    const last = new LastRowKey(serializer.keyAt);
    let count = 0;
    let more = false;
    const { target, asOfMs, failures, onPrimary } = attempt;
    const stallMsMax = onPrimary || failures > 0 ? undefined : firstStallMsMax;
    await target[pool].run(
      { statement, workspace, values, onMark: request.onMark },
      { stallMsMax, ...options },
      (row) => {
        if (count === rows) {
          more = true;
          return;
        }
        const json = borrowed ?? begin();
        if (isContinuation || count > 0) json.comma();
        serializer.write(row, workspace, json);
        count++;
        last.set(row);
      },
    );
    request.signal.throwIfAborted(); // the short pool leaves out the rows of a client that is gone
    const continuation = continuationOf(deps, attempt);
    return {
      asOfMs,
      failures,
      continuation,
      ...deps.chunkMemory.lend(borrowed ?? begin()),
      target,
      count,
      last: last.key,
      more,
    };
  });
}

export function rangeValues({ after, until }: Range): Values {
  return { ...keyValues('after', after), ...keyValues('until', until) };
}

/** Names the values of a key as the statements' parameters: after0, after1, … */
function keyValues(end: 'after' | 'until', key: Key | null): Values {
  return Object.fromEntries((key ?? []).map((value, i) => [`${end}${i}`, value]));
}

/** Copies the bytes of the last row's key, so that texts are made for the last row only: two texts per row were a fifth of a list's processor time. */
class LastRowKey {
  readonly #at: readonly number[];
  readonly #bytes = new JsonBytes(64);
  /** Where the value of each column of the key ends; empty before the first row. */
  readonly #ends: number[] = [];

  constructor(at: readonly number[]) {
    this.#at = at;
  }

  set(row: Row): void {
    this.#bytes.clear();
    for (let i = 0; i < this.#at.length; i++) {
      const column = this.#at[i] as number;
      this.#bytes.part(row, row.starts[column] as number, row.ends[column] as number);
      this.#ends[i] = this.#bytes.length;
    }
  }

  /** Null before the first row. */
  get key(): Key | null {
    const bytes = this.#bytes.view();
    return this.#ends.length === 0
      ? null
      : this.#ends.map((end, i) => bytes.toString('utf8', this.#ends[i - 1] ?? 0, end));
  }
}

const bufferBytesAtFirst = 65_536;
/** Short lists fill less than half of a larger buffer, and would be copied out of it: a third more of the processor. */
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
   * An empty buffer, the largest spare one; for the short pool the smallest, unless that is large. One whose chunk failed is never given
   * back, as rows may still be written to it.
   */
  borrow(pool: 'short' | 'long' = 'long'): JsonBytes {
    if (pool === 'short' && (this.#spare[0]?.capacity ?? 0) > smallBufferBytesMax)
      return new JsonBytes(bufferBytesAtFirst);
    const json = pool === 'short' ? this.#spare.shift() : this.#spare.pop();
    if (json === undefined) return new JsonBytes(bufferBytesAtFirst);
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
    this.#spare.push(json);
    this.#spare.sort((a, b) => a.capacity - b.capacity);
  }
}
