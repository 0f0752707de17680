import type { WordSource } from '../db/row.js';
import type { DiffShape } from './audit-diff.js';
import { type ConstantJson, constantJson } from './json-bytes.js';

const changesMax = 16;
const [quote, backslash, openBracket, closeBracket, closeBrace, comma, blank] = [
  0x22, 0x5c, 0x5b, 0x5d, 0x7d, 0x2c, 0x20,
];
const [minus, point, zero, nine] = [0x2d, 0x2e, 0x30, 0x39];
const wordOf = (text: string): number => constantJson(text).words[0] as number;
const [nullWord, trueWord, falsWord] = [wordOf('null'), wordOf('true'), wordOf('fals')];

/**
 * Reads the diffs that nearly all entries have, as jsonb prints them: a list of objects with the three members and no other, whose
 * names have no escape and whose values are numbers, words or strings. By bytes and in one pass; every other diff is left to DiffReader.
 */
export class PrintedDiff {
  /** Where the parts of each change begin and end in the row, three for each: name, old value, new value. */
  readonly starts = new Int32Array(changesMax * 3);
  readonly ends = new Int32Array(changesMax * 3);
  changes = 0;
  /** The text in front of each value, and which part the value is. */
  readonly #names: readonly ConstantJson[];
  readonly #parts: readonly number[];

  private constructor(names: readonly string[], parts: readonly number[]) {
    this.#names = names.map((name, i) => constantJson(`${i === 0 ? '{' : ', '}${JSON.stringify(name)}: `));
    this.#parts = parts;
  }

  /** Null for a shape whose changes are not objects with three names. */
  static of({ field, old, new: after }: DiffShape): PrintedDiff | null {
    const places = [field, old, after];
    const names = places.filter((place) => typeof place === 'string');
    if (new Set(names).size < 3) return null;
    const sorted = [...names].sort(asJsonbSorts);
    return new PrintedDiff(
      sorted,
      sorted.map((name) => places.indexOf(name)),
    );
  }

  /** Finds the changes; false when the text is of any other form. */
  read({ bytes, words }: WordSource, start: number, end: number): boolean {
    this.changes = 0;
    if (bytes[start] !== openBracket) return false;
    if (bytes[start + 1] === closeBracket) return start + 2 === end;
    let at = start + 1;
    while (this.changes < changesMax) {
      at = this.#readChange(bytes, words, at, end);
      if (at < 0) return false;
      this.changes++;
      if (bytes[at] === closeBracket) return at + 1 === end;
      if (bytes[at] !== comma || bytes[at + 1] !== blank) return false;
      at += 2;
    }
    return false;
  }

  /** The position behind the change; -1 when it is of another form. */
  #readChange(bytes: Buffer, words: DataView, start: number, end: number): number {
    const change = this.changes * 3;
    let at = start;
    for (let i = 0; i < 3; i++) {
      const name = this.#names[i] as ConstantJson;
      if (!isAt(bytes, words, at, name)) return -1;
      at += name.length;
      const part = this.#parts[i] as number;
      const behind = part === 0 ? nameEnd(bytes, at, end) : valueEnd(bytes, words, at, end);
      if (behind < 0) return -1;
      this.starts[change + part] = at;
      this.ends[change + part] = behind;
      at = behind;
    }
    return bytes[at] === closeBrace ? at + 1 : -1;
  }
}

/** jsonb has names in the order of their length, and of their bytes where they are as long (PostgreSQL 8.14). */
function asJsonbSorts(one: string, other: string): number {
  return Buffer.byteLength(one) - Buffer.byteLength(other) || Buffer.compare(Buffer.from(one), Buffer.from(other));
}

function isAt(bytes: Buffer, words: DataView, at: number, { words: expected, length }: ConstantJson): boolean {
  if (at + length + 3 > bytes.length) return false;
  const last = expected.length - 1;
  for (let i = 0; i < last; i++) if (words.getInt32(at + i * 4, true) !== expected[i]) return false;
  const others = 32 - ((length - last * 4) << 3); // bits of the last word that are behind the text
  return words.getInt32(at + last * 4, true) << others === (expected[last] as number) << others;
}

/** Behind the string without escape that begins at `start`; else -1. */
function nameEnd(bytes: Buffer, start: number, end: number): number {
  return bytes[start] === quote ? stringEnd(bytes, start, end, false) : -1;
}

function valueEnd(bytes: Buffer, words: DataView, start: number, end: number): number {
  return bytes[start] === quote ? stringEnd(bytes, start, end, true) : wordEnd(bytes, words, start, end);
}

/** Behind the string that begins at `start`; -1 when it has an escape that it must not have. */
function stringEnd(bytes: Buffer, start: number, end: number, mayEscape: boolean): number {
  for (let i = start + 1; i < end; i++) {
    const byte = bytes[i];
    if (byte === quote) return i + 1;
    if (byte !== backslash) continue;
    if (!mayEscape) return -1;
    i++;
  }
  return -1;
}

/** Behind the number without exponent, or true, false or null, that begins at `start`; else -1. */
function wordEnd(bytes: Buffer, words: DataView, start: number, end: number): number {
  const word = start + 4 <= end ? words.getInt32(start, true) : 0;
  if (word === nullWord || word === trueWord) return start + 4;
  if (word === falsWord) return bytes[start + 4] === 0x65 ? start + 5 : -1;
  const first = bytes[start] === minus ? start + 1 : start;
  const whole = bytes[first] === zero ? first + 1 : behindDigits(bytes, first, end);
  if (whole === first) return -1;
  if (bytes[whole] !== point) return whole;
  const behind = behindDigits(bytes, whole + 1, end);
  return behind === whole + 1 ? -1 : behind;
}

function behindDigits(bytes: Buffer, start: number, end: number): number {
  let at = start;
  while (at < end && (bytes[at] as number) >= zero && (bytes[at] as number) <= nine) at++;
  return at;
}
