import type pg from 'pg';
import { isNamed, toSnakeCase } from '../../../base/words.js';
import { findReasonToLeaveOut } from '../columns/reasons.js';
import { AdoptRefused, listKeysTo, type Survey, type Table } from '../schema.js';
import type { OpenReference } from './guesses.js';
import { choosePartKeys, findIdColumn } from './keys.js';
import { isPeople, listReferences, type Reference } from './workspace-paths.js';

// The public face of tables/ is one question in each file, asked in the order of survey.ts. This file chooses which tables become resources
// or parts, and says why the others do not. Example: `orders` has company_id and becomes a resource. `order_lines` refers to orders alone,
// and nothing refers to it: each order shows its lines as a list. `countries` is left out, because nothing tells whose they are.

/** Each part costs a query for each record, and `sync` takes no more; further tables become resources. */
const partsMax = 8;
export const draftsMax = 100; // `serve` starts within two seconds with so many resources

interface ChoiceInput extends Pick<Survey, 'tenant' | 'users' | 'workspaces'> {
  readonly schema: string;
  readonly all: readonly Table[];
  readonly only: readonly string[] | undefined;
  readonly keep: readonly string[];
  readonly open: readonly OpenReference[];
  /** Some rows of these tables have no workspace. */
  readonly shared: ReadonlySet<Table>;
}

export type Choice = ReturnType<typeof chooseTables>;

/** Throws AdoptRefused when `only` names what cannot be a resource. */
export function chooseTables(choosing: ChoiceInput) {
  const { all, only } = choosing;
  const partsOf = findParts(choosing);
  const allParts = [...partsOf.values()].flat();
  const wholes = all.filter((table) => !allParts.includes(table));
  const unfit = wholes.flatMap((table) => {
    const reason = findReasonToSkip(table, choosing);
    return reason === undefined ? [] : [{ table, reason }];
  });
  const fit = wholes.filter((table) => !unfit.some((each) => each.table === table));
  requireFit(choosing, fit, unfit);
  const wanted = fit.filter(({ name }) => only?.includes(name) ?? true);
  const chosen = only ? wanted : chooseImportant(wanted, choosing);
  const reason = `a gateway has at most ${draftsMax} resources, and others have more rows or references to them: name it in --tables, with the others that clients read`;
  const beyond = wanted.flatMap((table) => (chosen.includes(table) ? [] : [{ table, reason }]));
  return { chosen, partsIn: (table: Table) => partsOf.get(table) ?? [], leftOut: [...unfit, ...beyond] };
}

function requireFit({ schema, only = [] }: ChoiceInput, fit: readonly Table[], unfit: Survey['leftOut']): void {
  const refused = only.filter((name) => !fit.some((table) => table.name === name));
  const reasonOf = (name: string): string =>
    unfit.find(({ table }) => table.name === name)?.reason ?? `"${schema}" has no such table`;
  const reasons = refused.map((name) => `${name} (${reasonOf(name)})`).join(', ');
  if (refused.length > 0) throw new AdoptRefused(`--tables names what cannot be a resource: ${reasons}.`);
}

/** Takes the tables that the operator named, then those with the most rows and the most tables that refer to them. */
function chooseImportant(tables: readonly Table[], { all, keep }: ChoiceInput): Table[] {
  const weight = (table: Table): number =>
    Math.log10(1 + table.rows) + new Set(listKeysTo(table, all).map(({ from }) => from)).size;
  const rankKept = ({ name }: Table): number => Number(keep.includes(name));
  const ranked = [...tables].sort((a, b) => rankKept(b) - rankKept(a) || weight(b) - weight(a));
  return tables.filter((table) => ranked.indexOf(table) < draftsMax);
}

function findReasonToSkip(table: Table, choosing: ChoiceInput): string | undefined {
  const { tenant, users, workspaces, only } = choosing;
  if (table.isUnlogged) return 'it is unlogged, so replicas do not have its rows: alter it with `set logged`';
  if (table === tenant.root) return 'it is the list of workspaces';
  if (only?.includes(table.name) !== true) {
    if (table === users) return 'it is the list of users, whose owners may have tokens made';
    if (isNamed('secretTable', table.name))
      return 'its name speaks of secrets: name it in --tables where clients may read it';
  }
  const other = table.columns.find(({ name }) => toSnakeCase(name) === toSnakeCase(tenant.column));
  if (!workspaces.has(table) && other)
    return `its column ${other.name} (${other.type}) is of another type than the workspaces, or refers to something else`;
  if (!workspaces.has(table) && isNamed('bookkeeping', table.name))
    return 'it holds what the app or its framework notes for itself, such as migrations, which clients do not need';
  if (!workspaces.has(table))
    return `it has no column ${tenant.column} and no required reference to a table with one: ${suggestRemedy(table, choosing)}`;
  if (findIdColumn(table, tenant) === undefined) return explainNoId(table);
  return undefined;
}

function explainNoId({ name, quoted, columns, primaryKey, isInherited }: Table): string {
  if (isInherited)
    return `another table inherits from it, and no key covers the rows of both: show it by a view of your own \`from only ${quoted}\``;
  const hidden = columns.filter((column) => primaryKey.includes(column.name) && findReasonToLeaveOut(column));
  const shown = hidden.map((column) => `${name}.${column.name}`).join();
  if (hidden.length > 0)
    return `its primary key has ${hidden.map((column) => `${column.name} (${findReasonToLeaveOut(column)})`).join(', ')}: where clients may see that, name ${shown} in --show`;
  return 'no unique index over columns that are NOT NULL, and that clients may see, identifies its rows: give it a primary key';
}

/** Says how the operator can give the rows of a table a workspace. */
function suggestRemedy(table: Table, { all, tenant, workspaces, users, open }: ChoiceInput): string {
  const above = open.find((each) => each.table === table && each.to.length > 0);
  if (above)
    return `its ${above.type.name} and ${above.id.name} name its record, so show it by a view of your own with a join for each kind of record`;
  const below = open.find(({ table: other, to }) => workspaces.has(other) && to.includes(table));
  if (below)
    return `rows of ${below.table.quoted} name it by ${below.type.name} and ${below.id.name}, so show it by a view of your own with that join, as long as one row names each`;
  const keys = listReferences(table, all).filter(({ columns, table: to }) => columns.length === 1 && to !== table);
  const isOptional = ({ columns: [from], table: to }: Reference): boolean => !from?.notNull && workspaces.has(to);
  const optional = keys.find((key) => isOptional(key) && key.table !== users);
  if (optional) return suggestRemedyForNull(optional);
  const back = listKeysTo(table, all).find(
    ({ from, key }) => key.columns.length === 1 && (workspaces.has(from) || from === tenant.root),
  );
  if (back)
    return `rows of ${back.from.quoted} refer to it by ${back.key.columns[0]}, so show it by a view of your own that joins them, as long as each row is of one workspace`;
  const guess = keys.find(({ key, table: to }) => key.isGuess && workspaces.has(to))?.key;
  if (guess)
    return `no foreign key proves that its ${guess.columns[0]} leads to ${guess.table}, and its foreign keys lead elsewhere: give it that foreign key and draft again`;
  const next = keys.find(({ table: to }) => !isPeople(to)) ?? keys[0];
  if (next === undefined)
    return 'show it by a view of your own: with a row for each workspace if all may see its rows, otherwise with a join that tells whose they are';
  const leads = `its ${next.columns[0]?.name} leads to ${next.table.quoted}`;
  if (!isPeople(next.table))
    return `${leads}, which has none either: give one of them that column, or show it by a view of your own`;
  if (isOptional(next)) return suggestRemedyForNull(next);
  return `${leads}, whose people have no workspace: show it by a view of your own that joins their memberships`;
}

function suggestRemedyForNull({ columns: [from], table: { quoted } }: Reference): string {
  return `its ${from?.name} leads to ${quoted} and can be NULL; if no row has NULL there, alter it with \`set not null\` and draft again, or else show it by a view of your own with that join`;
}

function findParts(choosing: ChoiceInput): ReadonlyMap<Table, readonly Table[]> {
  const { all, tenant, users, workspaces, only, shared } = choosing;
  const isPart = (part: Table, above: Table): boolean => {
    // A record without a workspace is shown nowhere, so its parts, which have a workspace of their own, would be lost with it.
    if (shared.has(above) && tenant.columnIn(part)) return false;
    const [workspace, id] = [workspaces.get(above), findIdColumn(above, tenant)];
    return workspace && id ? choosePartKeys(part, { table: above, id }, workspace, tenant) !== undefined : false;
  };
  const partsOfTables = new Map<Table, Table[]>();
  for (const table of all.filter(({ isUnlogged }) => !isUnlogged)) {
    const above = only?.includes(table.name) || table === users ? undefined : findParent(table, choosing);
    const parts = (above && partsOfTables.get(above)) ?? [];
    if (above && isPart(table, above) && parts.length < partsMax) partsOfTables.set(above, [...parts, table]);
  }
  return partsOfTables;
}

/** Finds the record of which the rows are a part: the table refers to one other alone, no table refers to it, and its rows have no time. */
function findParent(table: Table, { all, tenant, users }: ChoiceInput): Table | undefined {
  const isAside = (name: string): boolean => name === tenant.root?.name || name === users?.name || name === table.name;
  const keys = table.foreignKeys.filter(({ isGuess }) => !isGuess);
  const above = new Set(keys.map((key) => key.table).filter((name) => !isAside(name)));
  const isReferredTo = listKeysTo(table, all).length > 0;
  const hasTime = table.columns.some(({ name }) => isNamed('created', name));
  if (above.size !== 1 || isReferredTo || hasTime || isNamed('secretTable', table.name)) return undefined;
  // The rows that a person wrote are no part of that person.
  return all.find((each) => above.has(each.name) && !isPeople(each));
}

export async function readOtherRelations(client: pg.Client, schema: string): Promise<Survey['leftOut']> {
  const { rows } = await client.query<{ name: string; quoted: string; kind: 'm' | 'f' }>(
    `select c.relname::text as name, format('%I.%I', n.nspname, c.relname) as quoted, c.relkind as kind
      from pg_class c join pg_namespace n on n.oid = c.relnamespace where n.nspname = $1 and c.relkind in ('m', 'f') order by 1`,
    [schema],
  );
  return rows.map(({ name, quoted, kind }) => ({ table: { name, quoted }, reason: remedies[kind] }));
}

const remedies = {
  m: 'it is a materialized view: show it by a view of your own with a workspace and an id, over a unique index of the two; a refresh without `concurrently` writes each row again for sync',
  f: 'it is a foreign table, whose rows replicas do not have: copy them into a table',
} as const;
