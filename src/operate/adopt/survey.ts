import type pg from 'pg';
import { countCrossings } from './definition/fields.js';
import { findReasonWithoutColumns } from './definition/parts.js';
import { addHidings } from './hiding/above.js';
import { countLedger } from './hiding/ledger.js';
import { AdoptRefused, type Column, type Subject, type Survey, type Table, type WorkspaceOf } from './schema.js';
import { findAuditLog, listDocuments } from './tables/audit-log.js';
import { countValues, describeTwins, readCatalog, readSharedTables, sample } from './tables/catalog.js';
import { chooseTables, readOtherRelations } from './tables/choice.js';
import { addGuessedKeys, findOpenReferences } from './tables/guesses.js';
import { findIdColumn } from './tables/keys.js';
import { countOwnerless, findOwners, findUsers } from './tables/owners.js';
import { findWorkspaces } from './tables/paths.js';
import { findTenant } from './tables/tenant.js';

export interface SurveyOptions {
  readonly schema: string;
  readonly tenantColumn?: string | undefined;
  /** Columns, as TABLE.COLUMN, that are shown whatever they seem to hold. */
  readonly show?: readonly string[] | undefined;
  /** If it is absent, all that can be are resources. */
  readonly only?: readonly string[] | undefined;
  /** Tables that go before others if there are more than a gateway has resources. */
  readonly keep?: readonly string[] | undefined;
  readonly allFilters?: boolean | undefined;
}

/** Changes nothing. Throws AdoptRefused. */
export async function survey(
  client: pg.Client,
  { schema, tenantColumn, only, keep = [], show = [], allFilters = false }: SurveyOptions,
): Promise<Survey> {
  const all = await addGuessedKeys(client, addWanted(await readCatalog(client, schema), show));
  const tables = all.filter(({ isUnlogged }) => !isUnlogged);
  const twins = await describeTwins(client, schema, all);
  const tenant = findTenant(schema, tables, tenantColumn, twins);
  const users = findUsers(tables, tenant);
  const workspaces = findWorkspaces(tables, tenant);
  const owners = findOwners(tables, tenant, users, workspaces);
  const open = await findOpenReferences(client, tables);
  const shared = await readSharedTables(client, tables, tenant);
  const choice = chooseTables({ schema, all, tenant, users, workspaces, only, keep, open, shared });
  const { chosen, partsIn } = choice;
  const leftOut = [...choice.leftOut, ...(only ? [] : await readOtherRelations(client, schema))];
  const above = new Set([
    ...chosen,
    ...chosen.flatMap((table) => workspaces.get(table)?.steps.map((step) => step.table) ?? []),
  ]);
  for (const { foreignKeys } of above)
    for (const table of tables) if (foreignKeys.some((key) => key.table === table.name)) above.add(table);
  const ofUsers = [users, owners?.table, owners?.role?.table, tenant.root];
  for (const table of new Set([...above, ...chosen.flatMap(partsIn), ...ofUsers]))
    if (table) {
      await sample(client, table);
      await countValues(client, table);
    }
  const partsOf = new Map(chosen.map((table) => [table, [] as Table[]]));
  for (const [table, parts] of partsOf)
    for (const part of partsIn(table)) {
      const reason = findReasonWithoutColumns(part, table, tenant);
      if (reason === undefined) parts.push(part);
      else leftOut.push({ table: part, reason });
    }
  const subjects = chosen.map((table): Omit<Subject, 'shown'> => {
    const [workspace, id] = [workspaces.get(table) as WorkspaceOf, findIdColumn(table, tenant) as Column];
    const log = findAuditLog(table);
    const [parts, documents] = [partsOf.get(table) ?? [], listDocuments(table, log)];
    return { table, ...workspace, id, parts, documents, crossings: new Set(), ...(log && { log }) };
  });
  const kept: Subject[] = [];
  const drafted = addHidings(subjects, { tables, tenant, workspaces });
  for (const subject of drafted)
    kept.push({
      ...subject,
      crossings: await countCrossings(client, subject, { subjects: drafted }),
      ledger: await countLedger(client, subject, drafted),
    });
  const found = { tenant, twins, subjects: kept, tables, leftOut, users, owners, workspaces, allFilters };
  return { ...found, ownerless: await countOwnerless(client, found) };
}

function addWanted(tables: readonly Table[], show: readonly string[]): Table[] {
  const unknown = new Set(show);
  const wanted = ({ name, columns }: Table): Column[] =>
    columns.map((column) => (unknown.delete(`${name}.${column.name}`) ? { ...column, isWanted: true } : column));
  const marked = tables.map((table) => ({ ...table, columns: wanted(table) }));
  if (unknown.size > 0) throw new AdoptRefused(`--show names what is no TABLE.COLUMN: ${[...unknown].join(', ')}.`);
  return marked;
}
