import { isUtf8 } from 'node:buffer';

const [quote, comma, zero] = [0x22, 0x2c, 0x30];

/** Up to this length a loop copies faster than a call into Node. */
const loopBytesMax = 48;

/** Bytes that must be escaped in a JSON string (RFC 8259 §7): quotation mark, backslash, controls. */
const escaped = Uint8Array.from({ length: 256 }, (_, byte) => (byte < 0x20 || byte === quote || byte === 0x5c ? 1 : 0));

/**
 * Builds JSON as bytes, from the bytes in which PostgreSQL sent the values. Built as a string, each value made several
 * strings, and V8 kept all of them until the socket joined them.
 */
export class JsonBytes {
  #bytes: Buffer;
  #length = 0;

  /** Room for so many bytes at first; it grows. */
  constructor(capacity: number) {
    this.#bytes = Buffer.allocUnsafe(capacity);
  }

  get length(): number {
    return this.#length;
  }

  get capacity(): number {
    return this.#bytes.length;
  }

  clear(): void {
    this.cut(0);
  }

  /** Takes back what was written behind the first `length` bytes. */
  cut(length: number): void {
    this.#length = length;
  }

  comma(): void {
    this.#byte(comma);
  }

  /** Writes bytes that are JSON, unchanged. */
  raw(from: Buffer, start = 0, end = from.length): void {
    this.#makeRoom(end - start);
    if (end - start > loopBytesMax) {
      from.copy(this.#bytes, this.#length, start, end);
    } else {
      const into = this.#bytes;
      for (let i = start, at = this.#length; i < end; i++, at++) into[at] = from[i] as number;
    }
    this.#length += end - start;
  }

  /** Writes bytes that need no escape as a JSON string. */
  quoted(from: Buffer, start: number, end: number): void {
    this.#byte(quote);
    this.raw(from, start, end);
    this.#byte(quote);
  }

  /** Writes UTF-8 as a JSON string. */
  string(from: Buffer, start: number, end: number): void {
    this.#makeRoom(end - start + 2);
    const into = this.#bytes;
    let at = this.#length;
    into[at++] = quote;
    for (let i = start; i < end; i++) {
      const byte = from[i] as number;
      if (escaped[byte] === 1) return this.text(JSON.stringify(from.toString('utf8', start, end)));
      into[at++] = byte;
    }
    into[at++] = quote;
    this.#length = at;
  }

  /**
   * Writes a moment in UTC as a JSON string: "2026-03-29 01:59:59.123456" up to its zone, as PostgreSQL prints it, becomes
   * "2026-03-29T01:59:59.123Z" (RFC 3339; microseconds are cut, not rounded).
   */
  instant(from: Buffer, start: number, zone: number): void {
    this.#makeRoom(26);
    const into = this.#bytes;
    const at = this.#length;
    into[at] = quote;
    for (let i = 0; i < 23; i++) into[at + 1 + i] = start + i < zone ? (from[start + i] as number) : zero;
    into[at + 11] = 0x54; // "T"
    into[at + 20] = 0x2e; // "."
    into[at + 24] = 0x5a; // "Z"
    into[at + 25] = quote;
    this.#length = at + 26;
  }

  /** Writes a text that is JSON. */
  text(json: string): void {
    this.#makeRoom(json.length * 3); // UTF-8 takes at most three bytes for each unit of a string
    this.#length += this.#bytes.write(json, this.#length);
  }

  /** The bytes written so far; valid until `clear` or the next write. */
  view(): Buffer {
    return this.#bytes.subarray(0, this.#length);
  }

  /** Copies the bytes written so far into a buffer of exactly their length. */
  copy(): JsonBytes {
    const copy = new JsonBytes(this.#length);
    copy.raw(this.#bytes, 0, this.#length);
    return copy;
  }

  toString(): string {
    return this.#bytes.toString('utf8', 0, this.#length);
  }

  #byte(byte: number): void {
    this.#makeRoom(1);
    this.#bytes[this.#length++] = byte;
  }

  #makeRoom(more: number): void {
    const needed = this.#length + more;
    if (needed <= this.#bytes.length) return;
    const larger = Buffer.allocUnsafe(Math.max(needed, this.#bytes.length * 2));
    this.#bytes.copy(larger, 0, 0, this.#length);
    this.#bytes = larger;
  }
}

/** Whether the bytes are UTF-8. Most are ASCII, and then no call into Node is needed. */
export function isText(bytes: Buffer, start: number, end: number): boolean {
  let seen = 0;
  for (let i = start; i < end; i++) seen |= bytes[i] as number;
  return seen < 0x80 || isUtf8(bytes.subarray(start, end));
}
