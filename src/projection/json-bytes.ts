import { isUtf8 } from 'node:buffer';

const quote = 0x22;
const comma = 0x2c;

/** Up to here a loop copies faster than a call into Node does. */
const loopBytesMax = 48;

/** Bytes that must be escaped in a JSON string (RFC 8259 §7): quotation mark, backslash, controls. */
const escaped = Uint8Array.from({ length: 256 }, (_, byte) => (byte < 0x20 || byte === quote || byte === 0x5c ? 1 : 0));

/**
 * JSON that is put together as bytes, from the bytes in which PostgreSQL sent the values. Put together as a string it was
 * several strings for each value, and a rope of all of them until the socket flattened it.
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
    this.#length = 0;
  }

  comma(): void {
    this.#makeRoom(1);
    this.#bytes[this.#length++] = comma;
  }

  /** Bytes that are JSON, as they stand. */
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

  /** Bytes as a JSON string, of which it is known that they need no escape. */
  quoted(from: Buffer, start: number, end: number): void {
    this.#makeRoom(end - start + 2);
    this.#bytes[this.#length++] = quote;
    this.raw(from, start, end);
    this.#bytes[this.#length++] = quote;
  }

  /** UTF-8 as a JSON string. */
  string(from: Buffer, start: number, end: number): void {
    for (let i = start; i < end; i++) {
      if (escaped[from[i] as number] === 1) {
        this.text(JSON.stringify(from.toString('utf8', start, end)));
        return;
      }
    }
    this.quoted(from, start, end);
  }

  /** A text that is JSON. */
  text(json: string): void {
    this.#makeRoom(json.length * 3); // UTF-8 takes at most three bytes for each unit of a string
    this.#length += this.#bytes.write(json, this.#length);
  }

  /** The bytes written so far; valid until `clear` or the next write. */
  view(): Buffer {
    return this.#bytes.subarray(0, this.#length);
  }

  /** The same in memory of its own, no more than it takes. */
  copy(): JsonBytes {
    const copy = new JsonBytes(this.#length);
    copy.raw(this.#bytes, 0, this.#length);
    return copy;
  }

  toString(): string {
    return this.#bytes.toString('utf8', 0, this.#length);
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
