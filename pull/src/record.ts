import { createHash } from 'node:crypto';
import { BrokenAnswer, RefusedRequest } from './api.js';
import type { Column, Kind, Resource, Table } from './document.js';
import { findStringEnd, findValueEnd, skipSpace } from './json-text.js';
import { formatText, toCanonical } from './values.js';

/** The canonical texts of a row, in the order of the columns. */
export type Row = (string | null)[];

export interface FlatRecord {
  readonly id: string;
  /** Columns of the table, the version, and the hash of the whole record. */
  readonly row: Row;
  /** Rows of each part: the id of the record, position and columns. */
  readonly parts: readonly Row[][];
}

/** Is called when a value does not suit its column. */
export type OnMisfit = (table: Table, column: Column, json: string, id: string) => void;

/** A wanted member: it has a column, or is a group of members, or a part. */
interface Member {
  readonly column?: number;
  readonly group?: Map<string, Member>;
  readonly part?: number;
}

interface Layout {
  readonly table: Table;
  readonly columns: readonly Column[];
  readonly kinds: readonly Kind[];
  readonly members: Map<string, Member>;
}

/** The row that gets the values of an object, after its first `offset` texts. */
interface RowTarget {
  readonly layout: Layout;
  readonly row: Row;
  readonly offset: number;
  /** Is called with the position of the array of a part; absent in the rows of parts, which have none. */
  readonly onPart?: (part: number, at: number) => void;
}

/** Takes the texts of records apart, by the current kinds of their columns. */
export class Flattener {
  readonly #main: Layout;
  readonly #parts: readonly Layout[];
  #misfits: [Layout, number, string][] = [];

  constructor(
    private readonly resource: Resource,
    getKind: (table: Table, column: Column) => Kind,
    private readonly onMisfit: OnMisfit,
  ) {
    const makeLayout = (table: Table): Layout => ({
      table,
      columns: table.columns,
      kinds: table.columns.map((column) => getKind(table, column)),
      members: listMembers(table.columns),
    });
    this.#main = makeLayout(resource.table);
    this.#main.members.set('syncVersion', { column: resource.table.columns.length });
    this.#parts = resource.parts.map(makeLayout);
    for (const [part, { member }] of resource.parts.entries()) this.#main.members.set(member, { part });
  }

  flatten(text: string): FlatRecord {
    const row: Row = new Array(this.#main.columns.length + 1).fill(null);
    const parts: Row[][] = this.#parts.map(() => []);
    this.#misfits = [];
    const onPart = (part: number, at: number): void => {
      parts[part] = this.#readElements(text, at, this.#parts[part] as Layout);
    };
    this.#readObject(text, 0, this.#main.members, { layout: this.#main, row, offset: 0, onPart });
    const id = row[this.#main.columns.findIndex(({ path }) => path.join() === 'id')];
    if (id === null || id === undefined) throw new RefusedRequest(200, `A record of ${this.resource.name} has no id.`);
    for (const [{ table }, column, json] of this.#misfits)
      this.onMisfit(table, table.columns[column] as Column, json, id);
    for (const rows of parts) for (const each of rows) each[0] = id;
    row.push(this.#hashRecord(row, parts));
    return { id, row, parts };
  }

  /** Reads the members of an object into a row; null has none. Throws RefusedRequest for another value. */
  #readObject(text: string, start: number, members: Map<string, Member>, target: RowTarget): void {
    const { layout, row, offset, onPart } = target;
    if (text[start] !== '{') {
      if (text.startsWith('null', start)) return;
      throw new RefusedRequest(
        200,
        `${layout.table.name}: ${text.slice(start, start + 40)} is no object, as the document says.`,
      );
    }
    let at = skipSpace(text, start + 1);
    while (text[at] !== '}') {
      const nameEnd = findStringEnd(text, at);
      const member = members.get(formatText(text.slice(at, nameEnd)));
      at = skipSpace(text, nameEnd);
      if (text[at] !== ':') throw new BrokenAnswer('its reply is no JSON');
      at = skipSpace(text, at + 1);
      const end = findValueEnd(text, at);
      if (member?.group !== undefined) this.#readObject(text, at, member.group, target);
      else if (member?.part !== undefined) onPart?.(member.part, at);
      else if (member?.column !== undefined)
        row[offset + member.column] = this.#readValue(text.slice(at, end), layout, member.column);
      at = skipSpace(text, end);
      if (text[at] === ',') at = skipSpace(text, at + 1);
    }
  }

  #readValue(json: string, layout: Layout, column: number): string | null {
    if (json === 'null') return null;
    const text = toCanonical[layout.kinds[column] ?? 'text'](json);
    if (text !== undefined) return text;
    this.#misfits.push([layout, column, json]);
    return null;
  }

  #readElements(text: string, start: number, layout: Layout): Row[] {
    const rows: Row[] = [];
    if (text.startsWith('null', start)) return rows;
    if (text[start] !== '[')
      throw new RefusedRequest(
        200,
        `${layout.table.name}: ${text.slice(start, start + 40)} is no array, as the document says.`,
      );
    for (let at = skipSpace(text, start + 1); text[at] !== ']'; ) {
      const row: Row = [null, String(rows.length + 1), ...new Array(layout.columns.length).fill(null)];
      this.#readObject(text, at, layout.members, { layout, row, offset: 2 });
      rows.push(row);
      at = skipSpace(text, findValueEnd(text, at));
      if (text[at] === ',') at = skipSpace(text, at + 1);
    }
    return rows;
  }

  /** Hashes a record; sql/copy.ts computes the same hash from the stored rows. */
  #hashRecord(row: Row, parts: readonly Row[][]): string {
    const mainText = composeRowText(row, [...this.#main.kinds, 'text'], 0);
    const hashes = parts.map((rows, i) => {
      const kinds = (this.#parts[i] as Layout).kinds;
      return hashPart(rows.map((each) => hashMd5(`${each[1]}|${composeRowText(each, kinds, 2)}`)));
    });
    return hashMd5([hashMd5(mainText).toString('hex'), ...hashes].join('|')).toString('hex');
  }
}

function listMembers(columns: readonly Column[]): Map<string, Member> {
  const root = new Map<string, Member>();
  for (const [column, { path }] of columns.entries()) {
    let members = root;
    for (const name of path.slice(0, -1)) {
      const group: Map<string, Member> = members.get(name)?.group ?? new Map();
      members.set(name, { group });
      members = group;
    }
    members.set(path.at(-1) as string, { column });
  }
  return root;
}

const hashMd5 = (text: string): Buffer => createHash('md5').update(text).digest();

/** Longer texts enter the hash as their own hash. */
export const longTextBytes = 1000;

/** Writes a text that differs whenever a value differs: values of other kinds than these contain no `|`. */
function composeRowText(row: Row, kinds: readonly Kind[], offset: number): string {
  let text = '';
  for (const [i, kind] of kinds.entries()) {
    const value = row[offset + i] as string | null;
    if (i > 0) text += '|';
    if (value === null) text += '-';
    else if (isFree(kind)) {
      const bytes = Buffer.byteLength(value);
      text += bytes > longTextBytes ? `#${hashMd5(value).toString('hex')}` : `${bytes}:${value}`;
    } else text += value;
  }
  return text;
}

/** Tells whether values of the kind can hold any character. */
export const isFree = (kind: Kind): boolean => kind === 'text' || kind === 'json';

/** Returns the number of rows and the XOR of their hashes; an empty text without rows. */
function hashPart(hashes: readonly Buffer[]): string {
  if (hashes.length === 0) return '';
  let [high, low] = [0, 0];
  for (const hash of hashes) [high, low] = [high ^ hash.readUInt32BE(0), low ^ hash.readUInt32BE(4)];
  const toHex = (word: number): string => (word >>> 0).toString(16).padStart(8, '0');
  return `${hashes.length} ${toHex(high)}${toHex(low)}`;
}
