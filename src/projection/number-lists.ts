import { skipSpace, stringEnd } from './json-scan.js';

/** A list with more integers than this counts as the bytes of an image or the points of a pen. */
const integersMax = 64;

/** The shortest text of such a list: a digit and a comma for each. */
export const runBytesMin = integersMax * 2;

/** A container that was opened and not yet closed. */
interface Open {
  readonly start: number;
  readonly isObject: boolean;
  /** Whether all items so far are integers, or containers of integers. */
  pure: boolean;
  integers: number;
}

/**
 * The ranges in JSON of the outermost containers that hold nothing but more than 64 small integers, signed or not: lists
 * of bytes, lists of lists such as pen strokes, and objects with an index for each name ({"0":137,"1":80,…}, as
 * JSON.stringify prints a Uint8Array). In order; none lies in another. Throws MalformedJson.
 */
export function integerLists(json: string): [start: number, end: number][] {
  const open: Open[] = [];
  const found: [number, number][] = [];
  const parentIsImpure = (): void => {
    const parent = open.at(-1);
    if (parent !== undefined) parent.pure = false;
  };
  for (let at = 0; at < json.length; at++) {
    const character = json[at] as string;
    if (character === '"') {
      const end = stringEnd(json, at);
      const isIndex =
        open.at(-1)?.isObject && json[skipSpace(json, end)] === ':' && /^"\d+"$/.test(json.slice(at, end));
      if (!isIndex) parentIsImpure();
      at = end - 1;
    } else if (character === '[' || character === '{') {
      open.push({ start: at, isObject: character === '{', pure: true, integers: 0 });
    } else if (character === ']' || character === '}') {
      const closed = open.pop();
      if (closed === undefined) continue;
      const isList = closed.pure && closed.integers > integersMax;
      if (isList) {
        while ((found.at(-1)?.[0] ?? -1) > closed.start) found.pop();
        found.push([closed.start, at + 1]);
      }
      const parent = open.at(-1);
      if (parent !== undefined) {
        parent.pure &&= closed.pure;
        parent.integers += closed.pure ? closed.integers : 0;
      }
    } else if (/[\d-]/.test(character)) {
      let end = at + 1;
      while (isDigit(json.charCodeAt(end))) end++;
      const parent = open.at(-1);
      if (parent !== undefined) parent.integers += 1;
      if (end - at > 5 || /[.eE]/.test(json.charAt(end))) parentIsImpure();
      at = end - 1;
    } else if (/[a-zA-Z.]/.test(character)) {
      parentIsImpure();
    }
  }
  return found;
}

function isDigit(code: number): boolean {
  return code >= 0x30 && code <= 0x39;
}

/** Whether a text, JSON or not, holds more than 64 consecutive small integers, separated by commas, blanks or brackets. */
export function hasIntegerRun(text: string): boolean {
  return integerRun.test(text);
}

const integerRun = new RegExp(
  String.raw`(?<![\w.-])(?:-?\d{1,4}(?:\\?"\s*:\s*|[\s,;[\]{}"\\]+)){${integersMax}}-?\d{1,4}(?![\w.-])`,
);

/** Whether the bytes can hold such a list or run. Checks every 128th byte, and goes back from it only within a run. */
export function mayHaveIntegerRun(bytes: Uint8Array, start: number, end: number): boolean {
  return hasRun(isListByte, runBytesMin, bytes, start, end);
}

/** Whether `lengthMin` consecutive bytes are in a set, whose bytes are 1 in the table. At most linear time, for most texts far less. */
export function hasRun(set: Uint8Array, lengthMin: number, bytes: Uint8Array, start: number, end: number): boolean {
  let known = start;
  let at = start + lengthMin - 1;
  while (at < end) {
    let back = at;
    while (back >= known && set[bytes[back] as number] === 1) back--;
    if (back < known) return true;
    // The bytes behind `back` up to `at` are known to be of the set and need not be read again.
    known = at + 1;
    at = back + lengthMin;
  }
  return false;
}

/** A table of the bytes of `characters`, for `hasRun`. */
export function byteSet(characters: string): Uint8Array {
  const set = new Uint8Array(256);
  for (const byte of Buffer.from(characters)) set[byte] = 1;
  return set;
}

const isListByte = byteSet('0123456789-,;:[]{}"\\ \t\r\n');
