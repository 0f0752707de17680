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
  const file = shortened(name, 55); // PostgreSQL and the command `migrate --indexes` cut no name below 64 bytes
  return [
    {
      path: `indexes/${file}.sql`,
      about: [purpose],
      sql: `create index concurrently if not exists gateway_${file}
  on ${table.quoted} (${listed.join(', ')})${conditions.length === 0 ? '' : ` where (${withoutAlias(conditions.join(' and '))})`};`,
    },
  ];
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
