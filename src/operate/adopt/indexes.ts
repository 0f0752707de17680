import { own } from '../../base/own.js';
import { shortened } from '../migrate/indexes.js';
import { alias } from './columns.js';
import { indexConditions, printedConditions } from './deletion.js';
import type { Column, Index, Table } from './schema.js';
import type { SqlFile } from './sql.js';

/** A key of an index: a column of the table, or an expression of a view over it. */
export interface Key {
  readonly of: Column;
  readonly select: string;
}

/** The column itself as a key. */
export function plainKey(of: Column): Key {
  return { of, select: `${alias}.${of.quoted}` };
}

/** Whether it is the column of the table as it is. */
export function isPlain({ of, select }: Key): boolean {
  return select === plainKey(of).select;
}

/**
 * The file of a proposed index on the keys, the first `fixed` of which have one value each, and those behind them are the order of a
 * list or a pass of sync; none where an index of the table, also one of the rows that are not deleted, serves it.
 */
export function proposedIndex(
  table: Table,
  name: string,
  purpose: string,
  given: readonly Key[],
  fixed: number,
  isOfKept = true,
): SqlFile[] {
  const keys = given.filter(({ select }, i) => given.findIndex((key) => key.select === select) === i);
  const conditions = isOfKept ? indexConditions(table) : [];
  const usable = usableIndexes(table, isOfKept);
  const names = keys.map(({ of }) => of.name);
  if (keys.every(isPlain) && usable.some((index) => leads(index, names, fixed))) return [];
  const listed = keys.map((key) => (isPlain(key) ? key.of.quoted : `(${withoutAlias(key.select)})`));
  const bytes = indexBytes(table, keys);
  const file = shortened(name, 55); // PostgreSQL and the command `migrate --indexes` cut no name below 64 bytes
  return [
    {
      path: `indexes/${file}.sql`,
      about: [purpose, `About ${sizeText(bytes)}, by the estimate of ${count(table.rows)} rows.`],
      index: { table: table.quoted, bytes },
      sql: `create index concurrently if not exists gateway_${file}
  on ${table.quoted} (${listed.join(', ')})${conditions.length === 0 ? '' : ` where (${withoutAlias(conditions.join(' and '))})`};`,
    },
  ];
}

/** Bytes of a value in an index, of types with one length. */
const widths: Readonly<Record<string, number>> = {
  ...{ boolean: 1, smallint: 2, integer: 4, date: 4, real: 4, enum: 4, bigint: 8, 'double precision': 8, uuid: 16 },
  ...{ 'timestamp with time zone': 8, 'timestamp without time zone': 8 },
};

/** The size of a new index: each entry has a header and a pointer of 12 bytes, and a page is filled to 90 % (CREATE INDEX, fillfactor). */
function indexBytes({ rows }: Table, keys: readonly Key[]): number {
  const width = keys.reduce(
    (sum, { of }) => sum + (of.composedOf ?? [of]).reduce((all, one) => all + widthOf(one), 0),
    0,
  );
  return Math.max(8192, (rows * (12 + Math.ceil(width / 8) * 8)) / 0.9);
}

function widthOf({ type, values }: Column): number {
  const sampled = values.reduce((sum, value) => sum + Buffer.byteLength(value), 0) / Math.max(1, values.length);
  return own(widths, type) ?? (Math.ceil(sampled) || 16) + 1;
}

/** "8 kB", "34 MB". */
export function sizeText(bytes: number): string {
  const step = Math.min(3, Math.max(1, Math.floor(Math.log2(bytes) / 10)));
  return `${Math.round(bytes / 1024 ** step)} ${['', 'kB', 'MB', 'GB'][step]}`;
}

function count(rows: number): string {
  return Math.round(rows).toLocaleString('en');
}

/** The indexes on all rows, or also those on all that are not deleted. */
export function usableIndexes(table: Table, isOfKept: boolean): Index[] {
  const conditions = isOfKept ? printedConditions(table) : [];
  return table.indexes.filter(({ condition }) => condition === null || conditions.includes(condition));
}

/**
 * Whether the index begins with these columns and gives the rows in the order of those behind the first `fixed`, which have one value
 * each: forwards, or backwards where all are DESC.
 */
export function leads({ columns, descending }: Index, names: readonly string[], fixed: number): boolean {
  const directions = new Set(descending.slice(fixed, names.length));
  return names.every((name, i) => columns[i] === name) && directions.size <= 1;
}

const quotedOrAlias = new RegExp(`"(?:[^"]|"")*"|'(?:[^']|'')*'|\\b${alias}\\.|\\s+`, 'g');

/** SQL of a view's column as an index of the table has it. */
function withoutAlias(sql: string): string {
  return sql.replace(quotedOrAlias, (found) => (found === `${alias}.` ? '' : /^\s/.test(found) ? ' ' : found));
}
