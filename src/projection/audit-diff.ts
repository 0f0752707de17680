import { eachItem, MalformedJson, skipSpace, stringAt, valueEnd } from './json-scan.js';

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

/**
 * Reads the changes of stored diffs, by position: most log entries are shown as they are stored, and their strings were half
 * of what an entry cost. Valid until the next `read`.
 */
export class DiffReader {
  /** Start of the JSON text of the present change's name, old value and new value; -1 for a part that is missing. */
  readonly starts = new Int32Array(3);
  readonly ends = new Int32Array(3);
  /** The diff, with a character for each byte of its UTF-8. */
  diff = '';
  readonly #isList: boolean;
  /** Places of the three parts; the names of members as `diff` has them. */
  readonly #places: readonly (Place | undefined)[];
  #hasEscapes = false;

  constructor(shape: DiffShape) {
    this.#isList = shape.field !== undefined;
    this.#places = [shape.field, shape.old, shape.new].map((place) =>
      typeof place === 'string' ? inBytes(place) : place,
    );
  }

  /** Calls `found` at each change; an element that is no change is left out. Throws MalformedJson when the text does not have the shape. */
  read(bytes: Buffer, start: number, end: number, found: (reader: this) => void): void {
    const diff = bytes.toString('latin1', start, end);
    this.diff = diff;
    this.#hasEscapes = diff.includes('\\');
    const opening = skipSpace(diff, 0);
    if (diff[opening] !== (this.#isList ? '[' : '{')) throw new MalformedJson();
    const behind = eachItem(diff, opening, (name, nameEnd, value) => {
      this.starts.fill(-1);
      if (!this.#isList) this.#set(0, name, nameEnd);
      const valueEnd = this.#readParts(value);
      if (diff[this.starts[0] as number] === '"') found(this);
      return valueEnd;
    });
    if (skipSpace(diff, behind) !== diff.length) throw new MalformedJson();
  }

  /** The string that is a part of the present change. Throws MalformedJson on an invalid escape. */
  stringOf(part: number): string {
    return textAt(this.diff, this.starts[part] as number, this.ends[part] as number);
  }

  /** Finds the parts of the change at `start`; returns its end. Of a name that is repeated the last value counts, as in JSON.parse. */
  #readParts(start: number): number {
    const { diff } = this;
    const isObject = diff[start] === '{';
    if (!isObject && diff[start] !== '[') return valueEnd(diff, start);
    return eachItem(diff, start, (name, nameEnd, value, index) => {
      const end = valueEnd(diff, value);
      const unescaped = isObject && this.#hasEscapes ? inBytes(textAt(diff, name, nameEnd)) : null;
      for (let part = 0; part < 3; part++) {
        const place = this.#places[part];
        const isPart =
          !isObject || typeof place !== 'string'
            ? !isObject && place === index
            : unescaped === null
              ? nameEnd - name === place.length && diff.startsWith(place, name)
              : unescaped === place;
        if (isPart) this.#set(part, value, end);
      }
      return end;
    });
  }

  #set(part: number, start: number, end: number): void {
    this.starts[part] = start;
    this.ends[part] = end;
  }
}

/** A name in quotes, as `diff` has it where no character is escaped. */
function inBytes(name: string): string {
  return Buffer.from(`"${name}"`).toString('latin1');
}

function textAt(diff: string, start: number, end: number): string {
  const json = Buffer.from(diff.slice(start, end), 'latin1').toString();
  return stringAt(json, 0, json.length);
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
