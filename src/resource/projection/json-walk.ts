import { backslash, closingList, closingObject, comma, openingList, openingObject, quote } from './json-characters.js';
import { endsScalar, isSpace, MalformedJson } from './json-scan.js';

// The scanner of json-scan.ts over the bytes in which PostgreSQL sent JSON. It makes no strings.

function skipString(bytes: Buffer, start: number): number {
  if (bytes[start] !== quote) throw new MalformedJson();
  for (let at = start + 1; at < bytes.length; at++) {
    const byte = bytes[at];
    if (byte === quote) return at + 1;
    if (byte === backslash) at++;
  }
  throw new MalformedJson();
}

export function skipValue(bytes: Buffer, start: number): number {
  const first = bytes[start];
  if (first === quote) return skipString(bytes, start);
  let at = start;
  if (first !== openingList && first !== openingObject) {
    while (!endsScalar(bytes[at])) at++;
    if (at === start) throw new MalformedJson();
    return at;
  }
  for (let depth = 0; at < bytes.length; at++) {
    const byte = bytes[at];
    if (byte === quote) at = skipString(bytes, at) - 1;
    else if (byte === openingList || byte === openingObject) depth++;
    else if ((byte === closingList || byte === closingObject) && --depth === 0) return at + 1;
  }
  throw new MalformedJson();
}

/** Calls `take` with a value's start and the ends of its name (empty in a list); it returns the value's end. Throws MalformedJson. */
export function visitEach(
  bytes: Buffer,
  start: number,
  take: (at: number, name: number, nameEnd: number) => number,
): number {
  const isObject = bytes[start] === openingObject;
  const closing = isObject ? closingObject : closingList;
  let at = skipBlanks(bytes, start + 1);
  while (bytes[at] !== closing) {
    const nameEnd = isObject ? skipString(bytes, at) : at;
    const value = isObject ? skipBlanks(bytes, skipBlanks(bytes, nameEnd) + 1) : at; // after the colon
    at = skipBlanks(bytes, take(value, at, nameEnd));
    if (bytes[at] === comma) at = skipBlanks(bytes, at + 1);
    else if (bytes[at] !== closing) throw new MalformedJson();
  }
  return at + 1;
}

export interface JsonName {
  readonly text: string;
  readonly bytes: Buffer;
}

export const makeJsonName = (text: string): JsonName => ({ text, bytes: Buffer.from(JSON.stringify(text)) });

export function hasName(bytes: Buffer, start: number, end: number, name: JsonName): boolean {
  const size = name.bytes.length;
  if (end - start !== size) return end - start > size && decodesTo(bytes, start, end, name.text);
  for (let i = 0; i < size; i++) if (bytes[start + i] !== name.bytes[i]) return false;
  return true;
}

/** Compares names that have escapes; an escape makes a name longer, so no other name has its length. */
function decodesTo(bytes: Buffer, start: number, end: number, text: string): boolean {
  for (let at = start; at < end; at++)
    if (bytes[at] === backslash) return JSON.parse(bytes.toString('utf8', start, end)) === text;
  return false;
}

export function skipBlanks(bytes: Buffer, at: number): number {
  let next = at;
  while (isSpace(bytes[next])) next++;
  return next;
}
