import type pg from 'pg';
import { isNamed, snakeCase } from '../words.js';
import { auditLogIn, documentsIn } from './audit-log.js';
import { readCatalog, sample } from './catalog.js';
import { crossingsOf } from './crossings.js';
import { withGuessedKeys } from './guesses.js';
import { idColumn, partKeys } from './keys.js';
import { findOwners, findUsers } from './owners.js';
import { isPeople, workspacesOf } from './paths.js';
import {
  AdoptRefused,
  type Column,
  type Subject,
  type Survey,
  type Table,
  type Tenant,
  type WorkspaceOf,
} from './schema.js';
import { findTenant } from './tenant.js';

export interface SurveyOptions {
  readonly schema: string;
  readonly tenantColumn?: string | undefined;
  /** Columns that are shown whatever they seem to hold, each as TABLE.COLUMN. */
  readonly show?: readonly string[] | undefined;
  /** Names of the tables of which resources are drafted; absent: all that can be. */
  readonly only?: readonly string[] | undefined;
  /** Whether filters are drafted that need an index of their own. */
  readonly allFilters?: boolean | undefined;
}

/** Tables beyond these are resources of their own: each part is a query per record, and `sync` takes no more. */
const partsMax = 8;

/** Reads the catalog and a sample of each table of a resource. Changes nothing. Throws AdoptRefused. */
export async function survey(
  client: pg.Client,
  { schema, tenantColumn, only, show = [], allFilters = false }: SurveyOptions,
): Promise<Survey> {
  const all = await withGuessedKeys(client, withWanted(await readCatalog(client, schema), show));
  const tables = all.filter(({ isUnlogged }) => !isUnlogged);
  const tenant = findTenant(schema, tables, tenantColumn);
  const users = findUsers(tables, tenant);
  const workspaces = workspacesOf(tables, tenant);
  const owners = findOwners(tables, tenant, users, workspaces);
  const reasonWithout = (table: Table): string | undefined => {
    if (table.isUnlogged) return 'it is unlogged, so replicas do not have its rows';
    if (table === tenant.root) return 'it is the list of workspaces';
    if (only?.includes(table.name) !== true) {
      if (table === users) return 'it is the list of users, whose owners may have tokens made';
      if (isNamed('secretTable', table.name))
        return 'its name speaks of secrets: name it in --tables where clients may read it';
    }
    const other = table.columns.find(({ name }) => snakeCase(name) === snakeCase(tenant.column));
    if (!workspaces.has(table) && other)
      return `its column ${other.name} (${other.type}) is of another type than the workspaces, or refers to something else`;
    if (!workspaces.has(table))
      return `it has no column ${tenant.column} and no required reference to a table with one`;
    if (idColumn(table, tenant) === undefined)
      return 'no unique index over columns that are NOT NULL, and that clients may see, identifies its rows: give it a primary key';
    return undefined;
  };
  const isPart = (part: Table, above: Table): boolean => {
    const [workspace, id] = [workspaces.get(above), idColumn(above, tenant)];
    return workspace !== undefined && id !== undefined && !!partKeys(part, { table: above, id }, workspace, tenant);
  };
  const partsOf = new Map<Table, Table[]>();
  for (const table of tables) {
    const above = only?.includes(table.name) || table === users ? undefined : parent(table, tables, tenant, users);
    const parts = (above && partsOf.get(above)) ?? [];
    if (above && isPart(table, above) && parts.length < partsMax) partsOf.set(above, [...parts, table]);
  }
  const allParts = [...partsOf.values()].flat();
  const wholes = all.filter((table) => !allParts.includes(table));
  const leftOut = wholes.flatMap((table) => {
    const reason = reasonWithout(table);
    return reason === undefined ? [] : [{ table, reason }];
  });
  const fit = wholes.filter((table) => !leftOut.some((each) => each.table === table));
  const unfit = (only ?? []).filter((name) => !fit.some((table) => table.name === name));
  if (unfit.length > 0) {
    const reasonOf = (name: string): string =>
      leftOut.find(({ table }) => table.name === name)?.reason ?? `"${schema}" has no such table`;
    const reasons = unfit.map((name) => `${name} (${reasonOf(name)})`).join(', ');
    throw new AdoptRefused(`--tables names what cannot be a resource: ${reasons}.`);
  }
  const chosen = fit.filter(({ name }) => only?.includes(name) ?? true);
  const partsIn = (table: Table): readonly Table[] => partsOf.get(table) ?? [];
  const above = tables.filter(({ name }) =>
    chosen.some(
      (table) =>
        table.foreignKeys.some((key) => key.table === name) ||
        workspaces.get(table)?.steps.some((step) => step.table.name === name),
    ),
  );
  const read = [
    ...chosen,
    ...chosen.flatMap(partsIn),
    ...above,
    users,
    owners?.table,
    owners?.role?.table,
    tenant.root,
  ];
  for (const table of new Set(read)) if (table) await sample(client, table);
  const subjects = chosen.map((table): Subject => {
    const [workspace, id] = [workspaces.get(table) as WorkspaceOf, idColumn(table, tenant) as Column];
    const log = auditLogIn(table);
    return {
      table,
      ...workspace,
      id,
      parts: partsIn(table),
      documents: documentsIn(table, log),
      crossings: new Set(),
      ...(log && { log }),
    };
  });
  const judged: Subject[] = [];
  for (const subject of subjects)
    judged.push({ ...subject, crossings: await crossingsOf(client, subject, { subjects }) });
  return { tenant, subjects: judged, tables, leftOut, users, owners, allFilters };
}

/** The tables with the marks of the columns that the operator wants, each TABLE.COLUMN. */
function withWanted(tables: readonly Table[], show: readonly string[]): Table[] {
  const unknown = new Set(show);
  const wanted = ({ name, columns }: Table): Column[] =>
    columns.map((column) => (unknown.delete(`${name}.${column.name}`) ? { ...column, isWanted: true } : column));
  const marked = tables.map((table) => ({ ...table, columns: wanted(table) }));
  if (unknown.size > 0) throw new AdoptRefused(`--show names what is no TABLE.COLUMN: ${[...unknown].join(', ')}.`);
  return marked;
}

/** The table of which this one holds parts: it refers to that one alone, no table refers to it, and it has no time of its own. */
function parent(table: Table, tables: readonly Table[], tenant: Tenant, users: Table | undefined): Table | undefined {
  const isAside = (name: string): boolean => name === tenant.root?.name || name === users?.name || name === table.name;
  const keys = table.foreignKeys.filter(({ isGuess }) => !isGuess);
  const above = new Set(keys.map((key) => key.table).filter((name) => !isAside(name)));
  const isReferredTo = tables.some(({ foreignKeys }) => foreignKeys.some((key) => key.table === table.name));
  const hasTime = table.columns.some(({ name }) => isNamed('created', name));
  if (above.size !== 1 || isReferredTo || hasTime || isNamed('secretTable', table.name)) return undefined;
  // A person is no record that the rows they wrote are a part of.
  return tables.find((each) => above.has(each.name) && !isPeople(each));
}
