import type pg from 'pg';
import { auditLogIn, documentsIn } from './audit-log.js';
import { readCatalog, sample } from './catalog.js';
import { chooseTables, otherRelations } from './choice.js';
import { crossingsOf } from './crossings.js';
import { openReferences, withGuessedKeys } from './guesses.js';
import { idColumn } from './keys.js';
import { findOwners, findUsers } from './owners.js';
import { workspacesOf } from './paths.js';
import { AdoptRefused, type Column, type Subject, type Survey, type Table, type WorkspaceOf } from './schema.js';
import { findTenant } from './tenant.js';

export interface SurveyOptions {
  readonly schema: string;
  readonly tenantColumn?: string | undefined;
  /** Whatever they seem to hold, as TABLE.COLUMN. */
  readonly show?: readonly string[] | undefined;
  /** Absent: all that can be. */
  readonly only?: readonly string[] | undefined;
  /** Before others, if there are more than a gateway has resources. */
  readonly keep?: readonly string[] | undefined;
  readonly allFilters?: boolean | undefined;
}

/** Changes nothing. Throws AdoptRefused. */
export async function survey(
  client: pg.Client,
  { schema, tenantColumn, only, keep = [], show = [], allFilters = false }: SurveyOptions,
): Promise<Survey> {
  const all = await withGuessedKeys(client, withWanted(await readCatalog(client, schema), show));
  const tables = all.filter(({ isUnlogged }) => !isUnlogged);
  const tenant = findTenant(schema, tables, tenantColumn);
  const users = findUsers(tables, tenant);
  const workspaces = workspacesOf(tables, tenant);
  const owners = findOwners(tables, tenant, users, workspaces);
  const open = await openReferences(client, tables);
  const choice = chooseTables({ schema, all, tenant, users, workspaces, only, keep, open });
  const { chosen, partsIn } = choice;
  const leftOut = [...choice.leftOut, ...(only ? [] : await otherRelations(client, schema))];
  const named = chosen.flatMap(({ foreignKeys }) => foreignKeys.map(({ table }) => table));
  const above = [
    ...tables.filter(({ name }) => named.includes(name)),
    ...chosen.flatMap((table) => workspaces.get(table)?.steps.map((step) => step.table) ?? []),
  ];
  const ofUsers = [users, owners?.table, owners?.role?.table, tenant.root];
  for (const table of new Set([...chosen, ...chosen.flatMap(partsIn), ...above, ...ofUsers]))
    if (table) await sample(client, table);
  const subjects = chosen.map((table): Subject => {
    const [workspace, id] = [workspaces.get(table) as WorkspaceOf, idColumn(table, tenant) as Column];
    const log = auditLogIn(table);
    const [parts, documents] = [partsIn(table), documentsIn(table, log)];
    return { table, ...workspace, id, parts, documents, crossings: new Set(), ...(log && { log }) };
  });
  const judged: Subject[] = [];
  for (const subject of subjects)
    judged.push({ ...subject, crossings: await crossingsOf(client, subject, { subjects }) });
  return { tenant, subjects: judged, tables, leftOut, users, owners, allFilters };
}

function withWanted(tables: readonly Table[], show: readonly string[]): Table[] {
  const unknown = new Set(show);
  const wanted = ({ name, columns }: Table): Column[] =>
    columns.map((column) => (unknown.delete(`${name}.${column.name}`) ? { ...column, isWanted: true } : column));
  const marked = tables.map((table) => ({ ...table, columns: wanted(table) }));
  if (unknown.size > 0) throw new AdoptRefused(`--show names what is no TABLE.COLUMN: ${[...unknown].join(', ')}.`);
  return marked;
}
