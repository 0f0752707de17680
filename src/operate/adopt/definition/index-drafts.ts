import { shortenName } from '../../../postgres/statement.js';
import { listIndexConditions, listPrintedConditions } from '../columns/deletions.js';
import { countBytes, type IndexKey, isPlain } from '../columns/types.js';
import type { Column, Index, Table } from '../schema.js';
import type { DraftFile } from '../sql.js';
import { alias } from '../sql.js';

export interface IndexKeys {
  readonly fixed: readonly IndexKey[];
  readonly ordered: readonly IndexKey[];
  readonly isOfKept?: boolean;
}

/** Proposes an index whose fixed keys have one value each and whose other keys are an order, unless an index of the table serves it. */
export function proposeIndex(table: Table, name: string, purpose: string, wanted: IndexKeys): DraftFile[] {
  const { fixed, ordered, isOfKept = true } = wanted;
  const all = [...fixed, ...ordered];
  const keys = all.filter(({ select }, i) => all.findIndex((key) => key.select === select) === i);
  const conditions = isOfKept ? listIndexConditions(table) : [];
  const usable = listUsableIndexes(table, isOfKept);
  const names = keys.map(({ of }) => of.name);
  if (keys.every(isPlain) && usable.some((index) => leads(index, names, fixed.length))) return [];
  const keyTexts = keys.map((key) => (isPlain(key) ? key.of.quoted : `(${stripAlias(key.select)})`));
  const where = conditions.length === 0 ? '' : ` where (${stripAlias(conditions.join(' and '))})`;
  const bytes = estimateIndexBytes(table, keys);
  const file = shortenName(name, 55); // PostgreSQL and the command `migrate --indexes` cut no name below 64 bytes
  return [
    {
      path: `indexes/${file}.sql`,
      about: [purpose, `About ${formatSize(bytes)}, by the estimate of ${sayCount(table.rows)} rows.`],
      index: { table: table.quoted, where, keys: keyTexts, bytes },
      sql: `create index concurrently if not exists gateway_${file}
  on ${table.quoted} (${keyTexts.join(', ')})${where};`,
    },
  ];
}

/** An entry of an index has 12 bytes beside its keys, and PostgreSQL fills a page to 90 % (CREATE INDEX, fillfactor). */
function estimateIndexBytes({ rows }: Table, keys: readonly IndexKey[]): number {
  const columns = keys.flatMap(({ of }) => of.composedOf ?? [of]);
  const width = columns.reduce((sum, column) => sum + estimateWidth(column), 0);
  return Math.max(8192, (rows * (12 + Math.ceil(width / 8) * 8)) / 0.9);
}

function estimateWidth({ type, values }: Column): number {
  const sampled = values.reduce((sum, value) => sum + Buffer.byteLength(value), 0) / Math.max(1, values.length);
  return countBytes(type) ?? (Math.ceil(sampled) || 16) + 1;
}

/** Writes "8 kB" or "34 MB". */
export function formatSize(bytes: number): string {
  const step = Math.min(3, Math.max(1, Math.floor(Math.log2(bytes) / 10)));
  return `${Math.round(bytes / 1024 ** step)} ${['', 'kB', 'MB', 'GB'][step]}`;
}

export function sayCount(rows: number): string {
  return Math.round(rows).toLocaleString('en');
}

/** Takes indexes on all rows and, if the list has kept rows alone, also indexes on the rows that are not deleted. */
export function listUsableIndexes(table: Table, isOfKept: boolean): Index[] {
  const conditions = isOfKept ? listPrintedConditions(table) : [];
  return table.indexes.filter(({ condition }) => condition === null || conditions.includes(condition));
}

/** Tells whether the index begins with these columns and has all behind the first `fixed` in one direction. */
export function leads({ columns, descending }: Index, names: readonly string[], fixed: number): boolean {
  const directions = new Set(descending.slice(fixed, names.length));
  return names.every((name, i) => columns[i] === name) && directions.size <= 1;
}

const quotedOrAlias = new RegExp(`"(?:[^"]|"")*"|'(?:[^']|'')*'|\\b${alias}\\.|\\s+`, 'g');

function stripAlias(sql: string): string {
  return sql.replace(quotedOrAlias, (found) => (found === `${alias}.` ? '' : /^\s/.test(found) ? ' ' : found));
}
