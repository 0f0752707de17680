import type { Ghash } from './ghash.js';

const blockBytes = 16;

/**
 * The hashes, under one key, of the associated data (AAD) of a row's cells: per column a prefix, the same for many rows,
 * then a suffix, the same for all cells of a row. GHASH is linear: of texts of equal length, the hash of their exclusive or is the exclusive or of
 * their hashes. So the hash is that of the prefix and zeros, made once, combined with that of zeros and the suffix, made
 * once a row for all columns whose prefix ends at the same byte of a block.
 */
export class AadHash {
  readonly #hash: Ghash;
  #prefixes: readonly Uint8Array[] = [];
  #suffixLength = -1;
  #suffix: Uint8Array = new Uint8Array();
  /** By column: hash of its prefix and zeros. */
  #heads: Int32Array[] = [];
  /** By the byte of a block at which the suffix begins: hash of zeros and the suffix. */
  readonly #tails: Int32Array[] = [];
  /** A bit for each tail that is of the present row. */
  #madeTails = 0;

  constructor(hash: Ghash) {
    this.#hash = hash;
  }

  /** Sets the prefixes, by column. */
  setPrefixes(prefixes: readonly Uint8Array[]): void {
    this.#prefixes = prefixes;
    this.#heads = [];
  }

  /** Sets the suffix of a row: the first `length` bytes. */
  setSuffix(suffix: Uint8Array, length: number): void {
    if (length !== this.#suffixLength) this.#heads = [];
    this.#suffixLength = length;
    this.#suffix = suffix;
    this.#madeTails = 0;
  }

  /** Starts the hash of a message with the associated data of a column; returns its length in bytes. */
  startHash(column: number): number {
    const prefix = this.#prefixes[column] as Uint8Array;
    const at = prefix.length % blockBytes;
    const head = this.#heads[column] ?? this.#headOf(prefix);
    this.#heads[column] = head;
    if ((this.#madeTails & (1 << at)) === 0) this.#makeTail(at);
    this.#hash.startFrom(head, this.#tails[at] as Int32Array);
    return prefix.length + this.#suffixLength;
  }

  #headOf(prefix: Uint8Array): Int32Array {
    const bytes = new Uint8Array(prefix.length + this.#suffixLength);
    bytes.set(prefix);
    this.#hash.start();
    this.#hash.update(bytes, 0, bytes.length);
    return this.#hash.save();
  }

  #makeTail(at: number): void {
    this.#hash.startBehindZeros(at, this.#suffix, 0, this.#suffixLength);
    this.#tails[at] = this.#hash.save(this.#tails[at]);
    this.#madeTails |= 1 << at;
  }
}
