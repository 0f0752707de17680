import { isNamed, toSnakeCase } from '../../../base/words.js';
import { getFieldType } from '../columns/types.js';
import type { Column, ForeignKey, Table, Tenant } from '../schema.js';
import { AdoptRefused, findColumn, listKeysTo } from '../schema.js';
import { findWorkspaces, isPeople, mapKeys } from './workspace-paths.js';

// The column that divides rows among workspaces. Example: `orders`, `jobs` and most other tables have company_id, which refers to
// `companies`. Then company_id is the column, and companies are the root: each of its rows is a workspace.

/** `check` can try the wall with workspaces of these types. */
const workspaceTypes = ['uuid', 'bigint', 'integer', 'smallint', 'text', 'character varying'];

/** Integers of any width are the same kind, and so are texts of any length. */
export function isSameKind(a: Column, b: Column): boolean {
  return getTypeKind(a) === getTypeKind(b);
}

function getTypeKind({ type }: Column): string {
  return (workspaceTypes.includes(type) && getFieldType(type)) || type;
}

/** Goes by the majority of tables, through foreign keys and names. Throws AdoptRefused when nothing divides the rows. */
export function findTenant(schema: string, tables: readonly Table[], named?: string, hint = ''): Tenant {
  const candidates = listCandidates(tables);
  const listed = named === undefined ? candidates[0] : findRootBy(named, tables);
  const column = named ?? listed?.column ?? findSharedColumn(tables);
  if (column === undefined)
    throw new AdoptRefused(
      `Nothing in the schema "${schema}" divides its rows among workspaces: no table looks like workspaces or tenants, and no column such as workspace_id or tenant_id is in most of its tables. Name the column: --tenant COLUMN; docs/adopt/adapting.md shows the way for an app of one company.${hint}`,
    );
  const sample = findUsualColumn(schema, tables, column);
  const columnIn = makeColumnFinder(column, sample, listed);
  const root = listed && { root: listed.table, rootId: listed.id };
  const { size: reach } = findWorkspaces(tables, { columnIn, ...root });
  if (named === undefined && reach / tables.length < reachedFractionMin)
    throw new AdoptRefused(
      `Only ${reach} of the ${tables.length} tables of "${schema}" lead to a workspace by its likeliest column. Candidates: ${describeCandidates(candidates) || column}. If one is right, name it: --tenant COLUMN; docs/adopt/adapting.md shows the way for an app of one company.${hint}`,
    );
  const { length: count } = tables.filter((table) => columnIn(table) !== undefined);
  const next = candidates.filter(({ table }) => table !== listed?.table);
  const reason = [
    `${column} (${sample.type}) is in ${count} of ${tables.length} tables`,
    ...(listed ? [`references lead to ${listed.table.quoted}`] : []),
    ...(next.length > 0 ? [`next: ${describeCandidates(next)}`] : []),
  ].join('; ');
  const isSure = named !== undefined || (count * 2 >= tables.length - 1 && isClear(candidates));
  return { ...root, columnIn, column, reason, isSure };
}

/** Finds the column in one of the tables, with the type that it has in most. */
function findUsualColumn(schema: string, tables: readonly Table[], name: string): Column {
  const columns = tables.flatMap((table) => findColumnLike(table, name) ?? []);
  const usual = findMostFrequent(columns, getTypeKind);
  if (usual === undefined) throw new AdoptRefused(`No table of "${schema}" has the column "${name}" of --tenant.`);
  if (!workspaceTypes.includes(usual.type))
    throw new AdoptRefused(
      `The column "${name}" is of type ${usual.type}; a workspace is ${workspaceTypes.join(', ')}.`,
    );
  return usual;
}

/** A name gives 0.15 of the score, so a rival within a quarter has nearly as many tables. */
function isClear([first, rival]: readonly RootCandidate[]): boolean {
  if (first === undefined || !isNamed('workspaces', first.table.name)) return false;
  return rival === undefined || rival.score <= first.score - 0.25;
}

/** In an app with fewer tables that lead to a workspace, another column divides its rows. */
const reachedFractionMin = 0.2;

interface WorkspaceRoot {
  readonly table: Table;
  readonly column: string;
  readonly id: Column;
}

interface RootCandidate extends WorkspaceRoot {
  readonly count: number;
  readonly score: number;
}

function describeCandidates(candidates: readonly RootCandidate[]): string {
  return candidates
    .slice(0, 3)
    .map(({ column, table, count }) => `${column} of ${table.quoted} (${count})`)
    .join(', ');
}

/** Finds the column by its name, or by a single required reference to the list of workspaces. */
function makeColumnFinder(column: string, sample: Column, root: WorkspaceRoot | undefined): Tenant['columnIn'] {
  const isToRoot = (key: ForeignKey): boolean => key.table === root?.table.name && key.references[0] === root.id.name;
  return (table) => {
    if (table === root?.table) return undefined;
    const namedColumn = findColumnLike(table, column);
    // A column of that name can hold something else: then its foreign key leads elsewhere.
    const isOfWorkspace = (key: ForeignKey): boolean =>
      namedColumn !== undefined &&
      key.columns.includes(namedColumn.name) &&
      (key.columns.length > 1 || isToRoot(key) || key.references[0] === column);
    const leadsElsewhere = root !== undefined && namedColumn?.refers && !table.foreignKeys.some(isOfWorkspace);
    if (namedColumn && isSameKind(namedColumn, sample) && !leadsElsewhere) return namedColumn;
    // Another reference to the workspaces can name another company, such as a supplier.
    const [key, ...others] = table.foreignKeys.filter((each) => each.columns.length === 1 && isToRoot(each));
    const only = key && others.length === 0 ? findColumn(table, key.columns[0]) : undefined;
    return only?.notNull && isSameKind(only, sample) ? only : undefined;
  };
}

/** Finds the name in any spelling, such as companyId for company_id. */
function findColumnLike(table: Table, name: string): Column | undefined {
  return findColumn(table, name) ?? table.columns.find((column) => toSnakeCase(column.name) === toSnakeCase(name));
}

/** Puts the likeliest first: by the share of tables with its column, and of those that lead to it. A name outweighs a few tables. */
function listCandidates(tables: readonly Table[]): RootCandidate[] {
  const keys = mapKeys(tables);
  return tables
    .flatMap((table): RootCandidate[] => {
      const root = findWorkspaceRoot(table, tables);
      if (root === undefined) return [];
      const columnIn = makeColumnFinder(root.column, root.id, root);
      const { length: count } = tables.filter((other) => columnIn(other) !== undefined);
      const isOf = isNamed('workspaces', table.name) || isNamed('workspaceColumn', root.column);
      const fraction = count / tables.length;
      // A table that is no list of workspaces by its name divides most rows; groups, such as shops, can lack shared tables.
      const enough = isNamed('groups', table.name) ? 0.4 : 0.6;
      const hasPeople = listKeysTo(table, tables).some(({ from }) => isPeople(from));
      const isEnough = (fraction >= enough && tables.length >= 4) || (hasPeople && count >= 4);
      // Most rows name the user who made them, but they belong to that user's workspace.
      if (count === 0 || (!isOf && !isEnough) || (isPeople(table) && !isNamed('workspaceColumn', root.column)))
        return [];
      const reach = findWorkspaces(tables, { columnIn }, keys).size / tables.length;
      return [{ ...root, count, score: fraction + reach + (isOf ? 0.15 : 0) }];
    })
    .sort((a, b) => b.score - a.score);
}

function findWorkspaceRoot(table: Table, tables: readonly Table[]): WorkspaceRoot | undefined {
  const keys = listKeysTo(table, tables).flatMap(({ key }) => (key.columns.length === 1 ? [key] : []));
  const column = findMostFrequent(keys.map(({ columns }) => columns[0]));
  const ofColumn = keys.filter(({ columns }) => columns[0] === column);
  const id = findColumn(table, findMostFrequent(ofColumn.map(({ references }) => references[0])));
  return column === undefined || id === undefined ? undefined : { table, column, id };
}

function findRootBy(name: string, tables: readonly Table[]): WorkspaceRoot | undefined {
  const keys = tables.flatMap((table) => {
    const column = findColumnLike(table, name)?.name;
    return table.foreignKeys.filter(({ columns }) => columns.length === 1 && columns[0] === column);
  });
  const key = findMostFrequent(keys, ({ table, references }) => `${table} ${references[0]}`);
  const table = tables.find((each) => each.name === key?.table);
  const id = table && findColumn(table, key?.references[0]);
  return table && id && { table, column: name, id };
}

/** Finds a column named like a workspace that at least a fifth of the tables has. */
function findSharedColumn(tables: readonly Table[]): string | undefined {
  const names = tables.flatMap(({ columns }) => columns.map(({ name }) => name));
  const namedColumns = names.filter((name) => isNamed('workspaceColumn', name));
  const column = findMostFrequent(namedColumns);
  const { length: count } = namedColumns.filter((name) => name === column);
  return count >= 2 && count * 5 >= tables.length ? column : undefined;
}

export function findMostFrequent<T>(items: readonly T[], keyOf: (item: T) => unknown = (item) => item): T | undefined {
  const counts = new Map<unknown, { readonly item: T; count: number }>();
  for (const item of items) {
    const known = counts.get(keyOf(item));
    if (known) known.count++;
    else counts.set(keyOf(item), { item, count: 1 });
  }
  return [...counts.values()].sort((a, b) => b.count - a.count)[0]?.item;
}
