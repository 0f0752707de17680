import type pg from 'pg';
import { countCrossings } from './definition/fields.js';
import { findReasonWithoutColumns } from './definition/parts.js';
import { addHidings } from './hiding/above.js';
import { countLedger } from './hiding/ledger.js';
import type { Column, Subject, Survey, SurveySoFar, Table, WorkspaceOf } from './schema.js';
import { AdoptRefused } from './schema.js';
import { findAuditLog, listDocuments } from './tables/audit-log.js';
import { countValues, describeTwins, readCatalog, readSharedTables, sampleValues } from './tables/catalog.js';
import { addGuessedKeys, findOpenReferences } from './tables/guesses.js';
import { findIdColumn } from './tables/keys.js';
import { countOwnerless, findOwners, findUsers } from './tables/owners.js';
import { type Choice, chooseTables, readOtherRelations } from './tables/subject-choice.js';
import { findTenant } from './tables/tenant.js';
import { findWorkspaces } from './tables/workspace-paths.js';

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

/** Reads the catalog and samples of the app; changes nothing. Throws AdoptRefused when the schema allows no draft. */
export async function survey(client: pg.Client, options: SurveyOptions): Promise<Survey> {
  const { schema, tenantColumn, only, keep = [], show = [], allFilters = false } = options;
  const all = await addGuessedKeys(client, addWanted(await readCatalog(client, schema), show));
  const tables = all.filter(({ isUnlogged }) => !isUnlogged);
  const twins = await describeTwins(client, schema, all);
  const tenant = findTenant(schema, tables, tenantColumn, twins);
  const users = findUsers(tables, tenant);
  const workspaces = findWorkspaces(tables, tenant);
  const owners = findOwners({ tables, tenant, users, workspaces });
  const open = await findOpenReferences(client, tables);
  const shared = await readSharedTables(client, tables, tenant);
  const choice = chooseTables({ schema, all, tenant, users, workspaces, only, keep, open, shared });
  const others = only ? [] : await readOtherRelations(client, schema);
  const known = { tables, tenant, users, owners, workspaces };
  await sampleTables(client, choice, known);
  const leftOut = [...choice.leftOut, ...others, ...listEmptyParts(choice, known)];
  const drafted = choice.chosen.map((table) => makeSubject(table, choice, known));
  const subjects = await countSubjects(client, addHidings(drafted, known));
  const found = { ...known, twins, subjects, leftOut, allFilters };
  return { ...found, ownerless: await countOwnerless(client, found) };
}

/** Notes which columns the operator wants to be shown. */
function addWanted(tables: readonly Table[], show: readonly string[]): Table[] {
  const unknown = new Set(show);
  const wanted = ({ name, columns }: Table): Column[] =>
    columns.map((column) => (unknown.delete(`${name}.${column.name}`) ? { ...column, isWanted: true } : column));
  const all = tables.map((table) => ({ ...table, columns: wanted(table) }));
  if (unknown.size > 0) throw new AdoptRefused(`--show names what is no TABLE.COLUMN: ${[...unknown].join(', ')}.`);
  return all;
}

/** Samples the chosen tables, their parts, the tables above them, which can hide their rows, and the tables of workspaces and users. */
async function sampleTables(client: pg.Client, { chosen, partsIn }: Choice, known: SurveySoFar): Promise<void> {
  const { tables, tenant, users, owners, workspaces } = known;
  const onWay = chosen.flatMap((table) => workspaces.get(table)?.steps.map((step) => step.table) ?? []);
  const above = new Set([...chosen, ...onWay]);
  // A set also visits what is added to it meanwhile, so this follows references to their end.
  for (const { foreignKeys } of above)
    for (const table of tables) if (foreignKeys.some((key) => key.table === table.name)) above.add(table);
  const ofUsers = [users, owners?.table, owners?.role?.table, tenant.root].flatMap((table) => table ?? []);
  for (const table of new Set([...above, ...chosen.flatMap(partsIn), ...ofUsers])) {
    await sampleValues(client, table);
    await countValues(client, table);
  }
}

/** Makes a subject without the parts of which clients would see no column. */
function makeSubject(table: Table, { partsIn }: Choice, { tenant, workspaces }: SurveySoFar): Omit<Subject, 'shown'> {
  const log = findAuditLog(table);
  return {
    table,
    ...(workspaces.get(table) as WorkspaceOf),
    id: findIdColumn(table, tenant) as Column,
    parts: partsIn(table).filter((part) => findReasonWithoutColumns(part, table, tenant) === undefined),
    documents: listDocuments(table, log),
    crossings: new Set(),
    ...(log && { log }),
  };
}

function listEmptyParts({ chosen, partsIn }: Choice, { tenant }: SurveySoFar): Survey['leftOut'] {
  return chosen.flatMap((table) =>
    partsIn(table).flatMap((part) => {
      const reason = findReasonWithoutColumns(part, table, tenant);
      return reason === undefined ? [] : [{ table: part, reason }];
    }),
  );
}

/** Adds what only the rows tell: references to other workspaces, and how many rows each reason hides. */
async function countSubjects(client: pg.Client, subjects: readonly Subject[]): Promise<Subject[]> {
  const counted: Subject[] = [];
  for (const subject of subjects) {
    const crossings = await countCrossings(client, subject, { subjects });
    counted.push({ ...subject, crossings, ledger: await countLedger(client, subject, subjects) });
  }
  return counted;
}
