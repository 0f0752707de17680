import { type Column, columnOf, type Table } from './catalog.js';
import { isInteger, reasonToLeaveOut } from './columns.js';
import type { Tenant } from './tenant.js';

/**
 * The column that alone tells a row from the others of its workspace, or from those that have the same `others`: an index proves it,
 * because a walk by cursor loses rows whose id repeats. That of the primary key, or the one that is called id, or else a number or
 * UUID of its own; none whose name speaks of personal data, because clients see ids. Undefined: there is none.
 */
export function idColumn(table: Table, tenant: Tenant, others: readonly string[] = []): Column | undefined {
  const beside = [tenant.columnIn(table)?.name ?? '', ...others];
  const own = table.primaryKey.filter((name) => !beside.includes(name));
  const isKey = ({ name, refers }: Column): boolean => !refers && !beside.includes(name);
  const keys = table.columns.filter((column) => isKey(column) && (column.type === 'uuid' || isInteger(column)));
  const candidates = [columnOf(table, own.length === 1 ? own[0] : undefined), columnOf(table, 'id'), ...keys];
  return candidates.find(
    (column) =>
      column !== undefined &&
      reasonToLeaveOut(column) === undefined &&
      (isUnique(table, column, beside) || isOfPartitions(table, column, beside)),
  );
}

/** Whether an index allows each value once, beside columns that are the same for the rows to tell apart. */
function isUnique({ indexes }: Table, { name, notNull }: Column, beside: readonly string[]): boolean {
  const isSame = (each: string | null): boolean => each === name || (each !== null && beside.includes(each));
  return (
    notNull &&
    indexes.some(
      (index) =>
        index.isUnique && index.condition === null && index.columns.includes(name) && index.columns.every(isSame),
    )
  );
}

/** Whether PostgreSQL proves it for each partition alone, and the database makes the values, or they are UUIDs. */
function isOfPartitions(table: Table, column: Column, beside: readonly string[]): boolean {
  const { partitionKey } = table;
  const isMade = column.made || column.type === 'uuid';
  return partitionKey.length > 0 && isMade && isUnique(table, column, [...beside, ...partitionKey]);
}

/** The open point of an id that no index of the whole table proves. */
export function idPoints(table: Table, id: Column, tenant: Tenant): string[] {
  if (isUnique(table, id, [tenant.columnIn(table)?.name ?? ''])) return [];
  return [
    `${id.name} is unique beside ${table.partitionKey.join(', ')} alone, as PostgreSQL has it in a table with partitions: where the app gives an id twice, take another column.`,
  ];
}
