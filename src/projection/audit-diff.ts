import { MalformedJson, stringAt } from './json-scan.js';

/** A place in a JSON array or object. */
export type Place = string | number;

/** How the app's audit log stores the changes of an entry. */
export interface DiffShape {
  /** Place of the field's name in a change of a list; absent: the diff is an object, and the names of its members are those of the fields. */
  readonly field?: Place;
  readonly old: Place;
  readonly new: Place;
}

/** [{"field", "old", "new"}]: the shape of definitions that name none. */
export const usualDiff: DiffShape = { field: 'field', old: 'old', new: 'new' };

/** The words in which the API shows a change: {field, old, new}, or {field, shielded: true}. */
export interface DiffWords {
  readonly field: string;
  readonly old: string;
  readonly new: string;
  readonly shielded: string;
}

/** The words of definitions that name none. */
export const usualWords: DiffWords = { field: 'field', old: 'old', new: 'new', shielded: 'shielded' };

const [quote, backslash, comma, colon, space] = [0x22, 0x5c, 0x2c, 0x3a, 0x20];
const [openBracket, closeBracket, openBrace, closeBrace] = [0x5b, 0x5d, 0x7b, 0x7d];

/**
 * Reads the changes of a stored diff, by position in its bytes: most log entries are shown as they are stored, and their strings were
 * half of what an entry cost. PostgreSQL has checked that the diff is JSON. No function recurses.
 */
export class DiffReader {
  /** Where the present change's name, old value and new value begin and end in the bytes; -1 for a part that is missing. */
  readonly starts = new Int32Array(3);
  readonly ends = new Int32Array(3);
  readonly #isList: boolean;
  readonly #places: readonly (Place | undefined)[];
  /** The names among the places, as JSON. */
  readonly #names: readonly Buffer[];
  #bytes: Buffer = Buffer.alloc(0);
  #end = 0;

  constructor(shape: DiffShape) {
    this.#isList = shape.field !== undefined;
    this.#places = [shape.field, shape.old, shape.new];
    this.#names = this.#places.map((place) => Buffer.from(typeof place === 'string' ? JSON.stringify(place) : ''));
  }

  /** Calls `found` at each change in bytes[start, end); an element that is no change is left out. Throws MalformedJson when the text does not have the shape. */
  read(bytes: Buffer, start: number, end: number, found: () => void): void {
    this.#bytes = bytes;
    this.#end = end;
    const closing = this.#isList ? closeBracket : closeBrace;
    let at = this.#skip(start);
    if (bytes[at] !== (this.#isList ? openBracket : openBrace)) throw new MalformedJson();
    at = this.#skip(at + 1);
    for (let isFirst = true; bytes[at] !== closing; isFirst = false) {
      if (!isFirst) at = this.#behind(at, comma);
      this.starts.fill(-1);
      if (!this.#isList) at = this.#behindName(0, at);
      at = this.#skip(this.#readParts(at));
      if (bytes[this.starts[0] as number] === quote) found();
    }
    if (this.#skip(at + 1) !== end) throw new MalformedJson();
  }

  /** Finds the parts of the change at `start`; returns its end. Of a name that is repeated the last value counts, as in JSON.parse. */
  #readParts(start: number): number {
    const bytes = this.#bytes;
    const isObject = bytes[start] === openBrace;
    if (!isObject && bytes[start] !== openBracket) return this.#valueEnd(start);
    const closing = isObject ? closeBrace : closeBracket;
    let at = this.#skip(start + 1);
    for (let index = 0; bytes[at] !== closing; index++) {
      if (index > 0) at = this.#behind(at, comma);
      const nameEnd = isObject ? this.#stringEnd(at) : at;
      const part = isObject ? this.#partNamed(at, nameEnd) : this.#places.indexOf(index);
      const value = isObject ? this.#behind(this.#skip(nameEnd), colon) : at;
      const valueEnd = this.#valueEnd(value);
      if (part >= 0) {
        this.starts[part] = value;
        this.ends[part] = valueEnd;
      }
      at = this.#skip(valueEnd);
    }
    return at + 1;
  }

  /** Sets a part to the name at `start`; returns the position of its value. */
  #behindName(part: number, start: number): number {
    const end = this.#stringEnd(start);
    this.starts[part] = start;
    this.ends[part] = end;
    return this.#behind(this.#skip(end), colon);
  }

  /** The part that the name is; -1 for any other. */
  #partNamed(start: number, end: number): number {
    const bytes = this.#bytes;
    for (let part = 0; part < 3; part++) {
      const name = this.#names[part] as Buffer;
      if (name.length === end - start && isAt(bytes, start, name)) return part;
    }
    const isEscaped = bytes.subarray(start, end).includes(backslash);
    return isEscaped ? this.#places.indexOf(jsonText(bytes, start, end)) : -1;
  }

  #behind(at: number, byte: number): number {
    if (this.#bytes[at] !== byte || at >= this.#end) throw new MalformedJson();
    return this.#skip(at + 1);
  }

  #skip(start: number): number {
    const bytes = this.#bytes;
    let at = start;
    while (at < this.#end && (bytes[at] as number) <= space) at++;
    return at;
  }

  #stringEnd(start: number): number {
    const bytes = this.#bytes;
    if (bytes[start] !== quote) throw new MalformedJson();
    for (let at = start + 1; at < this.#end; at++) {
      const byte = bytes[at];
      if (byte === quote) return at + 1;
      if (byte === backslash) at++;
    }
    throw new MalformedJson();
  }

  /** Behind the value at `start`. */
  #valueEnd(start: number): number {
    const bytes = this.#bytes;
    if (bytes[start] === quote) return this.#stringEnd(start);
    let depth = 0;
    let at = start;
    for (; at < this.#end; at++) {
      const byte = bytes[at] as number;
      if (byte === quote) at = this.#stringEnd(at) - 1;
      else if (byte === openBracket || byte === openBrace) depth++;
      else if (byte === closeBracket || byte === closeBrace) {
        if (depth < 2) return depth === 0 ? at : at + 1;
        depth--;
      } else if (depth === 0 && (byte === comma || byte <= space)) return at;
    }
    throw new MalformedJson();
  }
}

/** The string whose JSON is bytes[start, end). Throws MalformedJson on an invalid escape. */
export function jsonText(bytes: Buffer, start: number, end: number): string {
  const json = bytes.toString('utf8', start, end);
  return stringAt(json, 0, json.length);
}

function isAt(bytes: Buffer, start: number, expected: Buffer): boolean {
  for (let i = 0; i < expected.length; i++) if (bytes[start + i] !== expected[i]) return false;
  return true;
}

/** A change that is to be stored. */
export interface NewChange {
  readonly name: string;
  readonly before: unknown;
  readonly after: unknown;
}

/** The JSON text of the changes in the shape of the app's log. */
export function diffOf(changes: readonly NewChange[], shape: DiffShape): string {
  const both = ({ before, after }: NewChange): [Place, unknown][] => [
    [shape.old, before],
    [shape.new, after],
  ];
  const { field } = shape;
  if (field === undefined)
    return JSON.stringify(Object.fromEntries(changes.map((change) => [change.name, container(both(change))])));
  return JSON.stringify(changes.map((change) => container([[field, change.name], ...both(change)])));
}

function container(parts: readonly (readonly [Place, unknown])[]): unknown {
  if (parts.every(([place]) => typeof place === 'string')) return Object.fromEntries(parts);
  const array: unknown[] = Array(1 + Math.max(...parts.map(([place]) => Number(place)))).fill(null);
  for (const [place, value] of parts) array[Number(place)] = value;
  return array;
}
