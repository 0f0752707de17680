import { isNamed } from './names.js';
import {
  AdoptRefused,
  type Column,
  columnOf,
  type ForeignKey,
  type Step,
  type Table,
  type Tenant,
  type WorkspaceOf,
} from './schema.js';

/** Types that gateway.workspace() can be cast to; `check` tries the wall with these. */
const tenantTypes = ['uuid', 'bigint', 'integer', 'smallint', 'text', 'character varying'];

/** Finds the workspaces by foreign keys, else by the names of columns. Throws AdoptRefused when nothing divides the rows. */
export function findTenant(schema: string, tables: readonly Table[], given?: string): Tenant {
  const roots = rootsOf(tables);
  const [best, second] = roots;
  const column = given ?? best?.column ?? sharedColumn(tables);
  if (column === undefined)
    throw new AdoptRefused(
      `Nothing in the schema "${schema}" divides its rows among workspaces: no table looks like workspaces or tenants, and no column such as workspace_id or tenant_id is in most of its tables. Name the column: --tenant COLUMN; docs/adopt/adapting.md shows the way for an app of one company.`,
    );
  const found = given === undefined ? best : roots.find((each) => each.column === given);
  const { table: root, id: rootId } = found ?? {};
  const type = tables.flatMap((table) => columnOf(table, column) ?? [])[0]?.type;
  if (type === undefined) throw new AdoptRefused(`No table of "${schema}" has the column "${column}" of --tenant.`);
  if (!tenantTypes.includes(type))
    throw new AdoptRefused(`The column "${column}" is of type ${type}; a workspace is ${tenantTypes.join(', ')}.`);
  const isToRoot = (key: ForeignKey): boolean => key.table === root?.name && key.references[0] === rootId?.name;
  const columnIn = (table: Table): Column | undefined => {
    if (table === root) return undefined;
    const named = columnOf(table, column);
    // A column of that name can hold something else: then its foreign key leads to another table, by another column, or to another schema.
    const isOfWorkspace = (key: ForeignKey): boolean =>
      key.columns.includes(column) && (key.columns.length > 1 || isToRoot(key) || key.references[0] === column);
    const leadsElsewhere = root !== undefined && named?.refers && !table.foreignKeys.some(isOfWorkspace);
    if (named?.type === type && !leadsElsewhere) return named;
    // Another reference to the workspaces can mean another one than that of the row, such as a supplier's.
    const [key, ...others] = table.foreignKeys.filter((each) => each.columns.length === 1 && isToRoot(each));
    const only = key && others.length === 0 ? columnOf(table, key.columns[0]) : undefined;
    return only?.notNull ? only : undefined;
  };
  const count = tables.filter((table) => columnIn(table) !== undefined).length;
  const share = `${column} (${type}) is in ${count} of ${tables.length} tables`;
  const other = second && given === undefined && second.score > (best?.score ?? 0) - 0.25 ? second.table.quoted : '';
  return {
    ...(root && { root }),
    ...(rootId && { rootId }),
    columnIn,
    column,
    reason: [share, root && `foreign keys lead to ${root.quoted}`, other && `${other} could be it, too`]
      .filter((part) => part)
      .join('; '),
    isSure: given !== undefined || (root !== undefined && other === '' && isNamed('workspaces', root.name)),
  };
}

const stepsMax = 3;

/**
 * The column of the workspace of each table that has one: its own, or that of the nearest table that required references lead to. Of
 * several at the same distance the row belongs to the one it is deleted with, and to the user who made it last of all.
 */
export function workspacesOf(
  tables: readonly Table[],
  { columnIn }: Tenant,
  users: Table | undefined,
): ReadonlyMap<Table, WorkspaceOf> {
  const found = new Map<Table, WorkspaceOf>();
  for (const table of tables) {
    const tenant = columnIn(table);
    if (tenant) found.set(table, { tenant, steps: [] });
  }
  for (let count = 0; count < stepsMax; count++) {
    const nearer = new Map(found);
    for (const table of tables) {
      const step = found.has(table)
        ? undefined
        : stepsFrom(table, tables, users).find((each) => nearer.has(each.table));
      const { tenant, steps } = (step && nearer.get(step.table)) ?? {};
      if (step && tenant && steps) found.set(table, { tenant, steps: [step, ...steps] });
    }
  }
  return found;
}

function stepsFrom(table: Table, tables: readonly Table[], users: Table | undefined): Step[] {
  const rank = (key: ForeignKey): number => (key.table === users?.name ? 2 : key.cascades ? 0 : 1);
  return [...table.foreignKeys]
    .sort((a, b) => rank(a) - rank(b))
    .flatMap(({ table: name, columns, references }) => {
      const to = tables.find((each) => each.name === name);
      const [from, key] = [columnOf(table, columns[0]), to && columnOf(to, references[0])];
      return columns.length === 1 && from?.notNull && to && key ? [{ from, table: to, to: key }] : [];
    });
}

interface Root {
  readonly table: Table;
  /** Name of the column by which most tables refer to it. */
  readonly column: string;
  /** The column that they refer to. */
  readonly id: Column;
  readonly score: number;
}

/** Tables that others refer to, the likeliest list of workspaces first: by the share of tables and by name. */
function rootsOf(tables: readonly Table[]): Root[] {
  return tables
    .flatMap((table): Root[] => {
      const keys = tables.flatMap(({ foreignKeys }) =>
        foreignKeys
          .filter((key) => key.table === table.name && key.columns.length === 1)
          .map(({ columns, references }) => ({ column: columns[0] as string, id: references[0] as string })),
      );
      const column = mostFrequent(keys.map((key) => key.column));
      const id = columnOf(table, mostFrequent(keys.filter((key) => key.column === column).map((key) => key.id)));
      if (column === undefined || id === undefined) return [];
      const share = tables.filter((other) => columnOf(other, column) !== undefined).length / tables.length;
      const named = isNamed('workspaces', table.name) || isNamed('workspaceColumn', column);
      const enough = isNamed('groups', table.name) ? 0.4 : 0.6;
      if (!named && (share < enough || tables.length < 4)) return [];
      return [{ table, column, id, score: share + (named ? 1 : 0) }];
    })
    .sort((a, b) => b.score - a.score);
}

/** A column with the name of a workspace that is in at least half of the tables. */
function sharedColumn(tables: readonly Table[]): string | undefined {
  const names = tables.flatMap(({ columns }) => columns.map(({ name }) => name));
  const named = names.filter((name) => isNamed('workspaceColumn', name));
  const column = mostFrequent(named);
  return named.filter((name) => name === column).length * 2 >= tables.length ? column : undefined;
}

function mostFrequent(names: readonly string[]): string | undefined {
  const counts = new Map<string, number>();
  for (const name of names) counts.set(name, (counts.get(name) ?? 0) + 1);
  return [...counts].sort(([, a], [, b]) => b - a)[0]?.[0];
}
