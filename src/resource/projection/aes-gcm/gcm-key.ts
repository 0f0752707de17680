import { type Cipher, createCipheriv, createDecipheriv, type KeyObject } from 'node:crypto';

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

  /** With the table of the subkey, which is the encryption of the zero block. */
  constructor(table: Int32Array) {
    this.bytes = new Uint8Array(this.#words.buffer);
    this.#table = table;
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

/** The tables of the keys in use, one for all decoders. */
const tables = new WeakMap<KeyObject, Int32Array>();

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

/** A part of a sealed value. */
export interface SealPart {
  /** 0 for the ciphertext, whose length differs. */
  readonly bytes: number;
  /** Position in the value, without the ciphertext before it. */
  readonly at: number;
  /** 1 when the ciphertext stands before it, else 0. */
  readonly behindData: 0 | 1;
}

/** Places of nonce, ciphertext and tag in the bytes of a sealed value. */
export interface SealLayout {
  readonly nonce: SealPart;
  readonly data: SealPart;
  readonly tag: SealPart;
  /** Bytes of nonce and tag. */
  readonly overheadBytes: number;
}

const partPattern = /^(nonce|data|tag)(\d*)$/;

/** ["tag16", "nonce12", "data"] → their places; null unless there is each part once. */
export function sealLayout(layout: readonly string[]): SealLayout | null {
  const parts = new Map<string, SealPart>();
  let at = 0;
  for (const text of layout) {
    const [, name = '', size = ''] = partPattern.exec(text) ?? [];
    const bytes = Number(size);
    if (name === '' || parts.has(name) || (name === 'data') !== (bytes === 0)) return null;
    parts.set(name, { bytes, at, behindData: parts.has('data') ? 1 : 0 });
    at += bytes;
  }
  const [nonce, data, tag] = ['nonce', 'data', 'tag'].map((name) => parts.get(name));
  return nonce && data && tag ? { nonce, data, tag, overheadBytes: at } : null;
}

/** Position of a part in a value with so many bytes of ciphertext. */
export function startOf({ at, behindData }: SealPart, dataBytes: number): number {
  return at + behindData * dataBytes;
}

/** The order in which most libraries return the parts. */
const usualLayout = sealLayout(['nonce12', 'data', 'tag16']) as SealLayout;

const ivBytes = 12;
const tagBytes = 16;

/** Whether messages of this layout can be opened by a GcmKey. */
export function fitsGcmKey({ nonce, tag }: SealLayout): boolean {
  return nonce.bytes === ivBytes && tag.bytes === tagBytes;
}

/** The longest ciphertext that a GcmKey opens; the counter of a message then fits one byte. Longer: openNative. */
export const cipherBytesMax = 1024;
const blocksMax = 1 + cipherBytesMax / blockBytes;

/**
 * AES-256-GCM decryption (NIST SP 800-38D §7.2; 96-bit IV, 128-bit tag) of many short messages under one key.
 *
 * node:crypto needs a decipher per message, 3 to 4 µs each, and a decipher cannot be given another IV. Here one ECB cipher
 * lives as long as the key and encrypts the counter blocks (§6.5) of several messages in one call; GHASH is the gateway's own.
 * With base64 and JSON about 0.75 µs a message. Figures and the other ways that were tried: docs/contribute/decisions/0006-own-gcm.md.
 *
 * AES itself stays OpenSSL's, constant in time. GHASH's table look-ups are not: a program that shares the processor's
 * caches may learn the hash subkey. With it an attacker can forge a value but not read any, and must
 * be able to write to the app's table to store it. Over the network only the time of a whole page can be measured. Tags are compared in
 * constant time, and a message whose tag is wrong is not decrypted (§7.2, step 8).
 */
export class GcmKey {
  /** Must hold the hash of the associated data, padded, when `open` is called. */
  readonly hash: Ghash;
  readonly #cipher: Cipher;
  readonly #counters: Buffer;
  #stream: Uint8Array = new Uint8Array();
  #blocks = 0;

  /** `messages` is the largest number of queued messages. */
  constructor(key: KeyObject, messages: number) {
    this.#cipher = createCipheriv('aes-256-ecb', key, null).setAutoPadding(false);
    const table = tables.get(key) ?? tableOf(this.#cipher.update(Buffer.alloc(blockBytes)));
    tables.set(key, table);
    this.hash = new Ghash(table);
    this.#counters = Buffer.alloc(messages * blocksMax * blockBytes);
  }

  /** Queues a message whose IV begins at `iv` in `bytes`; returns the position of its key stream. Throws RangeError. */
  queue(bytes: Uint8Array, iv: number, cipherBytes: number): number {
    const counters = this.#counters;
    const first = this.#blocks * blockBytes;
    const blocks = 1 + Math.ceil(cipherBytes / blockBytes);
    if (blocks > blocksMax || first + blocks * blockBytes > counters.length) throw new RangeError('the queue is full');
    let at = first;
    for (let block = 1; block <= blocks; block++, at += blockBytes) {
      for (let i = 0; i < ivBytes; i++) counters[at + i] = bytes[iv + i] as number;
      counters[at + 15] = block; // bytes 12 to 14 stay zero
    }
    this.#blocks += blocks;
    return first;
  }

  /** Drops the queued messages. */
  clearQueue(): void {
    this.#blocks = 0;
  }

  /** Makes the key streams of the queued messages, in one call of the cipher. */
  makeKeyStreams(): void {
    if (this.#blocks === 0) return;
    this.#stream = this.#cipher.update(this.#counters.subarray(0, this.#blocks * blockBytes));
    this.#blocks = 0;
  }

  /**
   * Decrypts the ciphertext at `start` in place, when the tag at `tag` is that of the associated data in `hash` and the
   * ciphertext. Returns whether it was; when not, `bytes` are as they were.
   */
  open(
    bytes: Uint8Array,
    start: number,
    cipherBytes: number,
    tag: number,
    stream: number,
    associatedBytes: number,
  ): boolean {
    const { hash } = this;
    const keyStream = this.#stream;
    const end = start + cipherBytes;
    if (stream + blockBytes + cipherBytes > keyStream.length || Math.max(end, tag + tagBytes) > bytes.length) {
      throw new RangeError('the message is not the queued one');
    }
    hash.update(bytes, start, end);
    hash.finish(associatedBytes, cipherBytes);
    let difference = 0;
    for (let i = 0; i < tagBytes; i++) {
      difference |= (bytes[tag + i] as number) ^ (keyStream[stream + i] as number) ^ (hash.bytes[i] as number);
    }
    if (difference !== 0) return false;
    for (let i = start, at = stream + blockBytes; i < end; i++, at++) {
      bytes[i] = (bytes[i] as number) ^ (keyStream[at] as number);
    }
    return true;
  }
}

/** Opens a message of any length by Node's own GCM; null when the tag is wrong. */
export function openNative(
  key: KeyObject,
  sealed: Uint8Array,
  associated: Uint8Array | undefined,
  layout: SealLayout = usualLayout,
): Buffer | null {
  const dataBytes = sealed.length - layout.overheadBytes;
  const part = (start: number, bytes: number): Uint8Array => sealed.subarray(start, start + bytes);
  const { nonce, data, tag } = layout;
  const decipher = createDecipheriv('aes-256-gcm', key, part(startOf(nonce, dataBytes), nonce.bytes), {
    authTagLength: tag.bytes,
  });
  if (associated !== undefined) decipher.setAAD(associated);
  decipher.setAuthTag(part(startOf(tag, dataBytes), tag.bytes));
  const opened = decipher.update(part(data.at, dataBytes));
  try {
    decipher.final();
    return opened;
  } catch {
    return null;
  }
}
