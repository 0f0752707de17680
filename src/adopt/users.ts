import { type Column, columnOf, type ForeignKey, type Table } from './catalog.js';
import { idColumn } from './ids.js';
import { isNamed } from './names.js';
import { type SampleRow, valuesOf } from './samples.js';
import type { SharedFile } from './shared-files.js';
import { literal } from './sql-text.js';
import type { Tenant } from './tenant.js';

/** The people who log in to the app, and the table whose rows tell the workspace of each. */
export interface Users {
  readonly table: Table;
  /** The table itself; else a table that joins users with workspaces or with what has them, or the list of workspaces, which names their owners. */
  readonly link: Table;
  /** From the link to the user; absent where the link is the table itself. */
  readonly key?: ForeignKey;
  /** Where the link names what has workspaces, such as their organization: its column, and the same in the list of workspaces. */
  readonly above?: { readonly link: Column; readonly root: Column };
}

/** A table of people with addresses by which they are known, and how they belong to workspaces. */
export function findUsers(tables: readonly Table[], tenant: Tenant): Users | undefined {
  const people = tables.filter(
    ({ name, columns }) => isNamed('users', name) && columns.some((column) => isNamed('email', column.name)),
  );
  const own = people.find((table) => table !== tenant.root && tenant.columnIn(table));
  if (own !== undefined) return { table: own, link: own };
  const links = people.flatMap((table) =>
    tables.flatMap((link): Users[] => {
      const isOwner = link === tenant.root;
      const above = isOwner || tenant.columnIn(link) ? undefined : sharedAbove(link, tenant.root, table);
      const isMembership = isNamed('membership', link.name) || isPair(link);
      if (!isOwner && (!isMembership || !(tenant.columnIn(link) ?? above))) return [];
      const keys = link.foreignKeys.filter((key) => key.table === table.name && key.columns.length === 1);
      const isMember = ([name = '']: readonly string[]): boolean => isNamed(isOwner ? 'ownerId' : 'memberId', name);
      const key = keys.find(({ columns }) => isMember(columns) || (!isOwner && isPair(link)));
      return key === undefined ? [] : [{ table, link, key, ...(above && { above }) }];
    }),
  );
  const score = ({ link, above }: Users): number => (link === tenant.root ? 1 : roleOf(link) ? (above ? 2 : 3) : 0);
  return links.sort((a, b) => score(b) - score(a))[0];
}

/** Whether it holds nothing but pairs of references, as the tables that Prisma makes for relations such as `_OrganizationToUser`. */
function isPair({ columns }: Table): boolean {
  return columns.length === 2 && columns.every(({ refers }) => refers);
}

/** The table to which both the link and the list of workspaces refer, by their columns. */
function sharedAbove(link: Table, root: Table | undefined, users: Table): Users['above'] {
  const single = (table: Table | undefined): readonly ForeignKey[] =>
    table?.foreignKeys.filter(({ columns, table: to }) => columns.length === 1 && to !== users.name) ?? [];
  for (const its of single(root)) {
    const own = single(link).find(
      ({ table, references }) => table === its.table && references[0] === its.references[0],
    );
    const [linkColumn, rootColumn] = [columnOf(link, own?.columns[0]), root && columnOf(root, its.columns[0])];
    if (linkColumn && rootColumn) return { link: linkColumn, root: rootColumn };
  }
  return undefined;
}

/** The SQL of gateway.token_owners: the users who are marked as owners; else all of them. */
export function ownersOf(users: Users | undefined, rows: readonly SampleRow[], tenant: Tenant): SharedFile {
  if (users === undefined) {
    const sql = `select null::text as workspace_id, null::text as id, null::text as email where false`;
    return { sql, open: ['no table of users was found, so no token can be made: show the users who may have tokens.'] };
  }
  const { table, link, key, above } = users;
  const email = table.columns.find(({ name }) => isNamed('email', name))?.quoted;
  const id = (idColumn(table, tenant) ?? columnOf(table, 'id'))?.quoted ?? email;
  const { root, rootId } = tenant;
  const workspace = link === root || above !== undefined ? rootId : tenant.columnIn(link);
  const [own, theirs] = key ? ['l.', 'u.'] : ['', ''];
  const columns = `${as(`${above ? 'w.' : own}${workspace?.quoted}`, 'workspace_id')}, ${as(`${theirs}${id}`, 'id')}, ${as(`${theirs}${email}`, 'email')}`;
  const join =
    key &&
    `l join ${table.quoted} u on u.${columnOf(table, key.references[0])?.quoted} = l.${columnOf(link, key.columns[0])?.quoted}`;
  const joinAbove = above && `join ${root?.quoted} w on w.${above.root.quoted} = l.${above.link.quoted}`;
  const select = `select ${key ? 'distinct ' : ''}${columns} from ${[link.quoted, join, joinAbove].join(' ').trim()}`;
  if (link === root) return { sql: select, open: [] };
  const condition = ownerCondition(link, rows);
  if (condition === undefined)
    return {
      sql: select,
      open: [`every user of ${link.quoted} may have tokens made: add a condition for the owners.`],
    };
  return { sql: `${select}\n  where ${own}${condition}`, open: [] };
}

/** `expression as name`, unless the column has that name. */
export function as(expression: string | undefined, name: string): string {
  return expression?.replace(/^[luw]\./, '') === name ? expression : `${expression} as ${name}`;
}

function roleOf({ columns }: Table) {
  return columns.find(({ name }) => isNamed('role', name));
}

function ownerCondition(table: Table, rows: readonly SampleRow[]): string | undefined {
  const flag = table.columns.find(({ name, type }) => isNamed('ownerFlag', name) && type === 'boolean');
  if (flag) return flag.quoted;
  const role = roleOf(table);
  const word = role && valuesOf(rows, role.name).find((value) => isNamed('owner', value));
  return word === undefined ? undefined : `${role?.quoted} = ${literal(word)}`;
}
