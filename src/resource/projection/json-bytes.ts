import { isUtf8 } from 'node:buffer';
import { viewWords, type WordSource } from '../../postgres/row.js';
import { backslash, comma, quote } from './json-characters.js';

/** Up to this length a loop copies faster than a call into Node. */
const loopBytesMax = 48;
const wordLoopBytesMax = 192;
/** Bytes that a copy by words writes behind its end. */
const spill = 3;

export interface ConstantJson {
  /** Zeros pad the words up to a whole one. */
  readonly words: Int32Array;
  readonly length: number;
}

export function encodeJson(json: string): ConstantJson {
  const bytes = Buffer.from(json);
  const words = new Int32Array(Math.ceil(bytes.length / 4));
  const padded = new DataView(words.buffer);
  for (let i = 0; i < bytes.length; i++) padded.setUint8(i, bytes[i] as number);
  return { words: words.map((_, i) => padded.getInt32(i * 4, true)), length: bytes.length };
}

export const nullJson = encodeJson('null');

/** Bytes that RFC 8259 §7 escapes: quotation mark, backslash and controls. */
const escaped = Uint8Array.from({ length: 256 }, (_, byte) =>
  byte < 0x20 || byte === quote || byte === backslash ? 1 : 0,
);

/** Makes bytes from the bytes of PostgreSQL: with strings V8 would keep several of each value until the socket joined them. */
export class JsonBytes {
  #bytes: Buffer;
  #words: DataView;
  #length = 0;

  /** `clear` releases a buffer larger than `keptMax`: one large value must not hold its memory forever. */
  constructor(
    private readonly atFirst: number,
    private readonly keptMax = Number.POSITIVE_INFINITY,
  ) {
    this.#bytes = Buffer.allocUnsafe(atFirst);
    this.#words = viewWords(this.#bytes);
  }

  get length(): number {
    return this.#length;
  }

  get capacity(): number {
    return this.#bytes.length;
  }

  clear(): void {
    this.truncate(0);
    if (this.#bytes.length > this.keptMax) this.#renew(Buffer.allocUnsafe(this.atFirst));
  }

  /** Removes everything after `length` bytes. */
  truncate(length: number): void {
    this.#length = length;
  }

  appendComma(): void {
    this.#appendByte(comma);
  }

  appendConstant({ words, length }: ConstantJson): void {
    this.#makeRoom(length + spill);
    const into = this.#words;
    let at = this.#length;
    for (let i = 0; i < words.length; i++, at += 4) into.setInt32(at, words[i] as number, true);
    this.#length += length;
  }

  appendRaw(from: Buffer, start = 0, end = from.length): void {
    this.#makeRoom(end - start);
    if (end - start > loopBytesMax) {
      from.copy(this.#bytes, this.#length, start, end);
    } else {
      const into = this.#bytes;
      for (let i = start, at = this.#length; i < end; i++, at++) into[at] = from[i] as number;
    }
    this.#length += end - start;
  }

  appendSpan({ bytes, words }: WordSource, start: number, end: number): void {
    if (end - start > wordLoopBytesMax || end + spill > bytes.length) return this.appendRaw(bytes, start, end);
    this.#makeRoom(end - start + spill);
    const into = this.#words;
    for (let i = start, at = this.#length; i < end; i += 4, at += 4) into.setInt32(at, words.getInt32(i, true), true);
    this.#length += end - start;
  }

  appendQuoted(from: WordSource, start: number, end: number): void {
    this.#appendByte(quote);
    this.appendSpan(from, start, end);
    this.#appendByte(quote);
  }

  appendString(from: Buffer, start: number, end: number): void {
    this.#makeRoom(end - start + 2);
    const into = this.#bytes;
    let at = this.#length;
    into[at++] = quote;
    for (let i = start; i < end; i++) {
      const byte = from[i] as number;
      if (escaped[byte] === 1) return this.appendText(JSON.stringify(from.toString('utf8', start, end)));
      into[at++] = byte;
    }
    into[at++] = quote;
    this.#length = at;
  }

  appendStringSpan({ bytes, words }: WordSource, start: number, end: number): void {
    if (end + spill > bytes.length) return this.appendString(bytes, start, end);
    this.#appendByte(quote);
    this.#makeRoom(end - start + 1 + spill);
    const into = this.#words;
    let at = this.#length;
    let seen = 0;
    let i = start;
    for (; i + 4 <= end; i += 4, at += 4) {
      const word = words.getInt32(i, true);
      seen |= findEscaped(word);
      into.setInt32(at, word, true);
    }
    if (i < end) {
      const word = words.getInt32(i, true);
      const bits = (end - i) << 3;
      seen |= findEscaped((word & ((1 << bits) - 1)) | (spaces << bits)); // the bytes behind the end count as spaces
      into.setInt32(at, word, true);
    }
    if ((seen & highBits) !== 0) {
      this.#length--;
      return this.appendText(JSON.stringify(bytes.toString('utf8', start, end)));
    }
    this.#length += end - start;
    this.#appendByte(quote);
  }

  /** Turns "2026-03-29 01:59:59.123456" up to its zone into "2026-03-29T01:59:59.123Z" (RFC 3339; cut, not rounded). */
  appendInstant({ bytes, words }: WordSource, start: number, zone: number): void {
    this.#makeRoom(26);
    const into = this.#words;
    const at = this.#length;
    into.setInt32(at + 1, words.getInt32(start, true), true);
    into.setInt32(at + 5, words.getInt32(start + 4, true), true);
    into.setInt32(at + 8, words.getInt32(start + 7, true), true);
    into.setInt32(at + 12, words.getInt32(start + 11, true), true);
    into.setInt32(at + 16, words.getInt32(start + 15, true), true);
    const written = this.#bytes;
    written[at] = quote;
    written[at + 11] = 0x54; // "T"
    written[at + 20] = 0x2e; // "."
    for (let i = 20; i < 23; i++) written[at + 1 + i] = start + i < zone ? (bytes[start + i] as number) : 0x30;
    written[at + 24] = 0x5a; // "Z"
    written[at + 25] = quote;
    this.#length = at + 26;
  }

  appendText(json: string): void {
    this.#makeRoom(json.length * 3); // UTF-8 takes at most three bytes for each unit of a string
    this.#length += this.#bytes.write(json, this.#length);
  }

  /** Returns bytes that are valid until `clear` or the next write. */
  view(): Buffer {
    return this.#bytes.subarray(0, this.#length);
  }

  copy(): JsonBytes {
    const copy = new JsonBytes(this.#length);
    copy.appendRaw(this.#bytes, 0, this.#length); // a copy by words would need more room
    return copy;
  }

  toString(): string {
    return this.getTextFrom(0);
  }

  getTextFrom(start: number): string {
    return this.#bytes.toString('utf8', start, this.#length);
  }

  #appendByte(byte: number): void {
    this.#makeRoom(1);
    this.#bytes[this.#length++] = byte;
  }

  #makeRoom(more: number): void {
    const needed = this.#length + more;
    if (needed <= this.#bytes.length) return;
    const larger = Buffer.allocUnsafe(Math.max(needed, this.#bytes.length * 2));
    this.#bytes.copy(larger, 0, 0, this.#length);
    this.#renew(larger);
  }

  #renew(bytes: Buffer): void {
    this.#bytes = bytes;
    this.#words = viewWords(bytes);
  }
}

const highBits = 0x80808080 | 0;
const ones = 0x01010101;
const spaces = 0x20202020;
const quotes = 0x22222222;
const backslashes = 0x5c5c5c5c;

/** Sets a bit of `highBits` if a byte must be escaped (Warren, Hacker's Delight, 6-1). */
function findEscaped(word: number): number {
  const quoted = word ^ quotes;
  const slashed = word ^ backslashes;
  return ((word - spaces) & ~word) | ((quoted - ones) & ~quoted) | ((slashed - ones) & ~slashed);
}

/** Calls into Node only if a byte is not ASCII. */
export function isUtf8Between(bytes: Buffer, start: number, end: number): boolean {
  let seen = 0;
  for (let i = start; i < end; i++) seen |= bytes[i] as number;
  return seen < 0x80 || isUtf8(bytes.subarray(start, end));
}
