import type { Column, Table } from './catalog.js';
import { alias } from './columns.js';
import { isNamed } from './names.js';

/** Rows that count as deleted and stay in the table. */
export interface SoftDelete {
  readonly column: Column;
  /** SQL of the rows that are not deleted. */
  readonly condition: string;
  /** The same as PostgreSQL prints it for a partial index. */
  readonly printed: readonly string[];
}

/** The soft deletion of a table, by the name and type of a column; `as` is the alias of the table in the condition. */
export function softDeleteOf({ columns }: Table, as = alias): SoftDelete | undefined {
  const column = columns.find(
    ({ name, type }) => isNamed('deleted', name) && (type === 'boolean' || /timestamp|date/.test(type)),
  );
  if (column === undefined) return undefined;
  const { quoted, notNull, type } = column;
  const mark = `${as}.${quoted}`;
  if (type !== 'boolean') return { column, condition: `${mark} is null`, printed: [`(${quoted} IS NULL)`] };
  if (notNull) return { column, condition: `not ${mark}`, printed: [`(NOT ${quoted})`, `(${quoted} = false)`] };
  return { column, condition: `${mark} is not true`, printed: [`(${quoted} IS NOT TRUE)`] };
}

/** The open point of rows that count as deleted, and of those that may: of a column of another type nothing tells which value says so. */
export function deletedPoints(rows: string, table: Table): string[] {
  const known = softDeleteOf(table)?.column;
  if (known) return [`${rows} with ${known.name} count as deleted and are not shown.`];
  return table.columns
    .filter(({ name }) => isNamed('deleted', name))
    .map(
      ({ name, type }) =>
        `${rows} are shown whatever ${name} (${type}) says: if it marks those that are deleted, leave them out by a condition.`,
    );
}
