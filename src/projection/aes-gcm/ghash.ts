const blockBytes = 16;

/**
 * GHASH (NIST SP 800-38D §6.4) under one hash subkey. Multiplication by the subkey in GF(2^128) (§6.3) is linear, so a
 * product is the exclusive or of 16 precomputed blocks, one for each byte of the multiplicand: Shoup's tables, 64 KiB a
 * key, made in half a millisecond. Their timing is discussed in gcm-key.ts.
 */
export class Ghash {
  /** The hash so far; after `finish` its digest. */
  readonly bytes: Uint8Array;
  readonly #words = new Int32Array(4);
  readonly #table: Int32Array;

  /** `subkey`: the encryption of the zero block, 16 bytes. */
  constructor(subkey: Uint8Array) {
    this.bytes = new Uint8Array(this.#words.buffer);
    this.#table = tableOf(subkey);
  }

  start(): void {
    this.#words.fill(0);
  }

  /** Continues from the exclusive or of two states that `save` returned. */
  startFrom(first: Int32Array, second: Int32Array): void {
    for (let i = 0; i < 4; i++) this.#words[i] = (first[i] as number) ^ (second[i] as number);
  }

  /** The state after whole blocks. */
  save(into: Int32Array = new Int32Array(4)): Int32Array {
    into.set(this.#words);
    return into;
  }

  /** Hashes the bytes [from, to), and zeros up to a whole block. */
  update(bytes: Uint8Array, from: number, to: number): void {
    const wholeEnd = to - ((to - from) % blockBytes);
    for (let at = from; at < wholeEnd; at += blockBytes) this.#hashBlock(bytes, at, 0, blockBytes);
    if (wholeEnd < to) this.#hashBlock(bytes, wholeEnd, 0, to - wholeEnd);
  }

  /** Begins a hash with `lead` zeros, less than a block, before the bytes [from, to). */
  startBehindZeros(lead: number, bytes: Uint8Array, from: number, to: number): void {
    this.start();
    const firstEnd = Math.min(to, from + blockBytes - lead);
    this.#hashBlock(bytes, from - lead, lead, lead + firstEnd - from);
    this.update(bytes, firstEnd, to);
  }

  /** Hashes the block of the two lengths (§7.1, step 5; both under 2^29 bytes), which ends a hash. */
  finish(associatedBytes: number, cipherBytes: number): void {
    this.#xorBits(4, associatedBytes);
    this.#xorBits(12, cipherBytes);
    this.#hashBlock(this.bytes, 0, 0, 0);
  }

  #xorBits(at: number, bytes: number): void {
    const state = this.bytes;
    const bits = bytes * 8;
    for (let i = 0; i < 4; i++) state[at + i] = (state[at + i] as number) ^ ((bits >>> (24 - 8 * i)) & 0xff);
  }

  /** Hashes a block: `bytes` from `origin` on at its positions [first, end), zeros elsewhere. Before `first` the state must be zero. */
  #hashBlock(bytes: Uint8Array, origin: number, first: number, end: number): void {
    const table = this.#table;
    const state = this.bytes;
    let a = 0;
    let b = 0;
    let c = 0;
    let d = 0;
    for (let i = first; i < end; i++) {
      const at = (i << 10) | (((state[i] as number) ^ (bytes[origin + i] as number)) << 2);
      a ^= table[at] as number;
      b ^= table[at + 1] as number;
      c ^= table[at + 2] as number;
      d ^= table[at + 3] as number;
    }
    for (let i = end; i < blockBytes; i++) {
      const at = (i << 10) | ((state[i] as number) << 2);
      a ^= table[at] as number;
      b ^= table[at + 1] as number;
      c ^= table[at + 2] as number;
      d ^= table[at + 3] as number;
    }
    this.#words[0] = a;
    this.#words[1] = b;
    this.#words[2] = c;
    this.#words[3] = d;
  }
}

/** For each byte position, for each byte value: the product with the subkey, as 4 words in the machine's byte order. */
function tableOf(subkey: Uint8Array): Int32Array {
  const table = new Int32Array(blockBytes * 256 * 4);
  const bytes = new Uint8Array(table.buffer);
  const power = Uint8Array.from(subkey); // subkey · x^i, where bit i of a block counts from the leftmost
  for (let bit = 0; bit < 128; bit++) {
    const single = ((bit >> 3) << 8) | (0x80 >> (bit & 7));
    bytes.set(power, single * blockBytes);
    timesX(power);
  }
  for (let at = 0; at < blockBytes * 256; at++) {
    const value = at & 0xff;
    const rest = value & (value - 1);
    if (rest === 0) continue; // no bit or a single one
    const [one, other] = [at - rest, at - value + rest]; // the lowest bit, and the others
    for (let word = 0; word < 4; word++) {
      table[at * 4 + word] = (table[one * 4 + word] as number) ^ (table[other * 4 + word] as number);
    }
  }
  return table;
}

/** §6.3: a shift to the right, and R = 11100001 ‖ 0^120 where a bit falls off. */
function timesX(block: Uint8Array): void {
  let carry = 0;
  for (let i = 0; i < blockBytes; i++) {
    const byte = block[i] as number;
    block[i] = (byte >> 1) | (carry << 7);
    carry = byte & 1;
  }
  if (carry === 1) block[0] = (block[0] as number) ^ 0xe1;
}
