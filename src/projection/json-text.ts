import { isUtf8 } from 'node:buffer';

const quote = 0x22;
const escaped = 1;
const notAscii = 2;

/** Node's own, under Buffer.toString: a tenth of decoding a row was spent on finding out which of them was meant. */
declare global {
  interface Buffer {
    latin1Slice(start: number, end: number): string;
    utf8Slice(start: number, end: number): string;
  }
}

/** What each byte of UTF-8 asks of the JSON string it is put in (RFC 8259 §7: quotation mark, backslash, controls). */
const demands = Uint8Array.from({ length: 256 }, (_, byte) =>
  byte >= 0x80 ? notAscii : byte < 0x20 || byte === quote || byte === 0x5c ? escaped : 0,
);

/**
 * The UTF-8 at [start, end) of `bytes` as a JSON string; most are ASCII that needs no escape, and then it is one copy.
 * The bytes on either side must be there and are overwritten. A byte order mark stays: it is part of the value.
 * Null when it is not UTF-8.
 */
export function jsonText(bytes: Buffer, start: number, end: number): string | null {
  let demand = 0;
  for (let i = start; i < end; i++) demand |= demands[bytes[i] as number] as number;
  if (demand >= notAscii && !isUtf8(bytes.subarray(start, end))) return null;
  if ((demand & escaped) !== 0) return JSON.stringify(bytes.toString('utf8', start, end));
  bytes[start - 1] = quote;
  bytes[end] = quote;
  return demand === 0 ? bytes.latin1Slice(start - 1, end + 1) : bytes.utf8Slice(start - 1, end + 1);
}
