import type pg from 'pg';
import type { Keyring } from '../projection/keyring.js';
import { type AuditLog, auditLogIn, documentsIn } from './audit-log.js';
import { AdoptRefused, type Column, readCatalog, type SampleRow, sampleRows, type Table } from './catalog.js';
import { isNamed } from './names.js';
import { findTenant, findUsers, idColumn, type Tenant, type WorkspaceOf, workspaceOf } from './tenant.js';

/** A table of which a resource is drafted. */
export interface Subject extends WorkspaceOf {
  readonly table: Table;
  readonly id: Column;
  readonly rows: readonly SampleRow[];
  readonly log?: AuditLog;
  /** Its columns with documents of an audit log, beside the diff. */
  readonly documents: readonly Column[];
  /** Tables whose rows are parts of its own, shown as a list in each record. */
  readonly parts: readonly Table[];
}

/** A schema as it was found. */
export interface Survey {
  readonly schema: string;
  readonly tenant: Tenant;
  readonly subjects: readonly Subject[];
  /** Tables without a resource, each with the reason. */
  readonly leftOut: readonly { readonly table: Table; readonly reason: string }[];
  /** The people who log in to the app. */
  readonly users: Table | undefined;
  readonly userRows: readonly SampleRow[];
  /** Of each table of parts. */
  readonly partRows: ReadonlyMap<Table, readonly SampleRow[]>;
  readonly keyring: Keyring;
}

export interface SurveyOptions {
  readonly schema: string;
  readonly tenantColumn?: string;
  /** Names of the tables of which resources are drafted; absent: all that can be. */
  readonly only?: readonly string[];
  readonly keyring: Keyring;
}

/** Tables beyond these are resources of their own: each part is a query per record, and `sync` takes no more. */
const partsMax = 8;

/** Reads the catalog and a sample of each table of a resource. Changes nothing. Throws AdoptRefused. */
export async function survey(client: pg.Client, options: SurveyOptions): Promise<Survey> {
  const { schema, tenantColumn, only, keyring } = options;
  const all = await readCatalog(client, schema);
  const tables = all.filter(({ isUnlogged }) => !isUnlogged);
  const tenant = findTenant(schema, tables, tenantColumn);
  const users = findUsers(tables, tenant);
  const isNamedOne = ({ name }: Table): boolean => only?.includes(name) === true;
  const parentOf = new Map<Table, Table>();
  for (const table of tables) {
    const above = isNamedOne(table) ? undefined : parent(table, tables, tenant, users);
    if (above && [...parentOf.values()].filter((each) => each === above).length < partsMax) parentOf.set(table, above);
  }
  const subjects: Subject[] = [];
  const leftOut: Survey['leftOut'][number][] = all
    .filter(({ isUnlogged }) => isUnlogged)
    .map((table) => ({ table, reason: 'it is unlogged, so replicas do not have its rows' }));
  const partRows = new Map<Table, readonly SampleRow[]>();
  for (const table of tables) {
    if (parentOf.has(table)) continue;
    const [workspace, id] = [workspaceOf(table, tables, tenant, users), idColumn(table, tenant)];
    const reason = reasonWithout(table, tenant, users, workspace, id);
    if (reason !== undefined || workspace === undefined || id === undefined) {
      leftOut.push({ table, reason: reason ?? '' });
      continue;
    }
    if (only && !isNamedOne(table)) continue;
    const rows = await sampleRows(client, table, table.columns);
    const log = auditLogIn(table, rows);
    const parts = tables.filter((each) => parentOf.get(each) === table);
    for (const part of parts) partRows.set(part, await sampleRows(client, part, part.columns));
    const documents = documentsIn(table, rows, log);
    subjects.push({ table, ...workspace, id, rows, parts, documents, ...(log && { log }) });
  }
  const unfit = (only ?? []).filter((name) => !subjects.some(({ table }) => table.name === name));
  if (unfit.length > 0) {
    const reasonOf = (name: string): string =>
      leftOut.find(({ table }) => table.name === name)?.reason ?? `"${schema}" has no such table`;
    const reasons = unfit.map((name) => `${name} (${reasonOf(name)})`).join(', ');
    throw new AdoptRefused(`--tables names what cannot be a resource: ${reasons}.`);
  }
  const userRows = users ? await sampleRows(client, users, users.columns) : [];
  return { schema, tenant, subjects, leftOut, keyring, users, userRows, partRows };
}

function reasonWithout(
  table: Table,
  { root, column }: Tenant,
  users: Table | undefined,
  workspace: WorkspaceOf | undefined,
  id: Column | undefined,
): string | undefined {
  if (table === root) return 'it is the list of workspaces';
  if (table === users) return 'it is the list of users, whose owners may have tokens made';
  if (isNamed('secret', table.name)) return 'its name speaks of secrets';
  if (workspace === undefined) return `it has no column ${column} and no required reference to a table with one`;
  if (id === undefined)
    return 'no unique index proves that a column which clients may see alone identifies a row of a workspace';
  return undefined;
}

/** The table of which this one holds parts: it refers to that one alone, no table refers to it, and it has no time of its own. */
function parent(table: Table, tables: readonly Table[], tenant: Tenant, users: Table | undefined): Table | undefined {
  const isAside = (name: string): boolean => name === tenant.root?.name || name === users?.name || name === table.name;
  const above = new Set(table.foreignKeys.map((key) => key.table).filter((name) => !isAside(name)));
  const isReferredTo = tables.some(({ foreignKeys }) => foreignKeys.some((key) => key.table === table.name));
  const hasTime = table.columns.some(({ name }) => isNamed('created', name));
  if (above.size !== 1 || isReferredTo || hasTime || table === users || isNamed('secret', table.name)) return undefined;
  const found = tables.find(({ name }) => above.has(name));
  return found && workspaceOf(found, tables, tenant, users) && idColumn(found, tenant) ? found : undefined;
}
