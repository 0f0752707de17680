import { findReasonToLeaveOut } from '../columns/reasons.js';
import { describeTextInKey, isInteger } from '../columns/types.js';
import type { Column, Index, Subject, Table, Tenant, WorkspaceOf } from '../schema.js';
import { findColumn, provesAll } from '../schema.js';
import { listReferences, type Reference } from './workspace-paths.js';

// The id of a record. A walk by cursor loses rows whose id repeats, so a unique index has to prove each id.

/** Prefers the column that other tables name, then the primary key, `id`, another number or UUID, and a text of several columns. */
export function findIdColumn(table: Table, tenant: Tenant, others: readonly string[] = []): Column | undefined {
  const beside = [tenant.columnIn(table)?.name ?? '', ...others];
  const ownKey = table.primaryKey.filter((name) => !beside.includes(name));
  const isKey = ({ name, refers }: Column): boolean => !refers && !beside.includes(name);
  const keys = table.columns.filter((column) => isKey(column) && (column.type === 'uuid' || isInteger(column)));
  const candidates = [
    findColumn(table, table.namingColumn),
    findColumn(table, ownKey.length === 1 ? ownKey[0] : undefined),
    findColumn(table, 'id'),
    ...keys,
  ];
  return candidates.find((column) => isIdentity(table, column, beside)) ?? composeId(table, beside);
}

function isIdentity(table: Table, column: Column | undefined, beside: readonly string[]): boolean {
  if (column === undefined || !isFitForId(column)) return false;
  // PostgreSQL proves an id within each partition alone, so over partitions only values that it makes, and UUIDs, are taken.
  const ofPartitions = column.isMade || column.type === 'uuid' ? table.partitionKey : [];
  return isUnique(table, column, beside) || isUnique(table, column, [...beside, ...ofPartitions]);
}

/** Finds a unique index of the column; the columns `beside` can be in the index, because they are the same in all rows of a list. */
function isUnique({ indexes }: Table, { name, notNull }: Column, beside: readonly string[]): boolean {
  const isSame = (key: string | null): boolean => key === name || (key !== null && beside.includes(key));
  const isProof = (index: Index): boolean =>
    provesAll(index) && index.columns.includes(name) && index.columns.every(isSame);
  return notNull && indexes.some(isProof);
}

/** An id must be a column that clients may see, and whose text an index can have. */
function isFitForId(column: Column): boolean {
  return describeTextInKey(column) !== undefined && findReasonToLeaveOut(column) === undefined;
}

/** Warns that PostgreSQL proves the id within each partition alone. */
export function describeId(table: Table, id: Column, tenant: Tenant): string | false {
  if (id.composedOf || isUnique(table, id, [tenant.columnIn(table)?.name ?? ''])) return false;
  return `${id.name} is unique beside ${table.partitionKey.join(', ')} alone, as PostgreSQL has it in a table with partitions: where the app gives an id twice, take another column.`;
}

/** Composes an id of the columns of the shortest unique index. If it has none but `beside`, a list has one row, whose id is the last. */
function composeId(table: Table, beside: readonly string[]): Column | undefined {
  const shortest = table.indexes
    .filter((index) => provesAll(index))
    .map(({ columns }) => columns.map((name) => findColumn(table, name ?? undefined)))
    .filter((columns): columns is Column[] => columns.every((column) => column?.notNull))
    .map((columns) => ({ last: columns.at(-1), own: columns.filter(({ name }) => !beside.includes(name)) }))
    .filter(({ own }) => own.every(isFitForId))
    .sort((a, b) => a.own.length - b.own.length)[0];
  if (shortest === undefined) return undefined;
  const { last, own } = shortest as { last: Column; own: Column[] };
  if (own.length > 0) return own.length === 1 ? own[0] : composeColumns(own);
  // An id that is the workspace becomes an expression: before version 17 PostgreSQL sorts what it finds by an index of the workspace alone.
  return last.name === beside[0] ? composeColumns([last]) : last;
}

/** Joins texts with hyphens, so that no two rows have the same. */
function composeColumns(columns: readonly Column[]): Column {
  const names = columns.map(({ quoted }) => quoted).join(', ');
  const [first] = columns as [Column, ...Column[]];
  const isVirtual = columns.some((column) => column.isVirtual);
  return {
    ...first,
    name: names,
    quoted: names,
    type: 'text',
    isMade: false,
    values: [],
    composedOf: columns,
    isVirtual,
  };
}

export interface PartKeys extends WorkspaceOf {
  readonly link: Column;
  readonly id: Column;
}

/** Follows the first foreign key of a part, which has one to the table. */
export function getReferenceTo(table: Table, part: Table): Reference {
  return listReferences(part, [table])[0] as Reference;
}

/** Finds the columns by which sync tells the parts and their records apart; undefined if there are none. */
export function choosePartKeys(
  part: Table,
  { table, id }: Pick<Subject, 'table' | 'id'>,
  workspace: WorkspaceOf,
  tenant: Tenant,
): PartKeys | undefined {
  const { columns, references } = getReferenceTo(table, part);
  const links = (id.composedOf ?? [id]).map((column) => columns[references.indexOf(column)]);
  const names = columns.map(({ name }) => name);
  const [partId, ownTenant] = [findIdColumn(part, tenant, names), tenant.columnIn(part)];
  const [link] = links;
  if (link === undefined || links.includes(undefined) || partId === undefined) return undefined;
  const keys = { id: partId, link: id.composedOf ? composeColumns(links as Column[]) : link, rivals: [] };
  if (ownTenant) return { ...keys, tenant: ownTenant, steps: [] };
  // A step compares one column, so a key of several columns leads to no workspace.
  if (id.composedOf) return undefined;
  return { ...keys, tenant: workspace.tenant, steps: [{ from: link, table, to: id }, ...workspace.steps] };
}
