import type { WordSource } from '../db/row.js';

const wordsMax = 8;
const bytesMax = wordsMax * 4;

/**
 * Remembers facts about short texts that come again and again, by their bytes: a state, the name of a field. Each text has one place,
 * by its hash, and takes it from the text before; a text is found only when all its bytes are the same. The memory does not grow.
 */
export class RecentBytes<T> {
  readonly #words: Int32Array;
  readonly #lengths: Int32Array;
  readonly #known: (T | undefined)[];
  readonly #shift: number;
  /** The place of the text that was looked for last; -1: it is too long. */
  #place = -1;

  /** Has two to the power of `bits` places. */
  constructor(bits: number) {
    this.#words = new Int32Array(wordsMax << bits);
    this.#lengths = new Int32Array(1 << bits).fill(-1);
    this.#known = new Array(1 << bits).fill(undefined);
    this.#shift = 32 - bits;
  }

  find({ bytes, words }: WordSource, start: number, end: number): T | undefined {
    const length = end - start;
    this.#place = -1;
    if (length > bytesMax || end + 3 > bytes.length) return undefined;
    let hash = length;
    for (let i = start; i < end; i += 4) hash = Math.imul(hash ^ wordAt(words, i, end), 0x9e3779b1) ^ (hash >>> 15);
    const place = hash >>> this.#shift;
    this.#place = place;
    if (this.#lengths[place] !== length) return undefined;
    const kept = this.#words;
    let at = place * wordsMax;
    for (let i = start; i < end; i += 4) if (kept[at++] !== wordAt(words, i, end)) return undefined;
    return this.#known[place];
  }

  /** Keeps a fact about the text that was looked for last; one that is too long is not kept. */
  keep({ words }: WordSource, start: number, end: number, known: T): void {
    const place = this.#place;
    if (place < 0) return;
    let at = place * wordsMax;
    for (let i = start; i < end; i += 4) this.#words[at++] = wordAt(words, i, end);
    this.#lengths[place] = end - start;
    this.#known[place] = known;
  }
}

/** Four bytes, of which those behind `end` count as zero. */
function wordAt(words: DataView, at: number, end: number): number {
  const word = words.getInt32(at, true);
  return end - at < 4 ? word & ((1 << ((end - at) << 3)) - 1) : word;
}
