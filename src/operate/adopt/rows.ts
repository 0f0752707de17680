import pg from 'pg';
import { readProject } from '../../base/paths.js';
import { type Item, makeItem, summarizeFaults } from '../../doctor/finding.js';
import { listNodes, type QueryPlan, readPlan, unquoteName } from '../../doctor/plan-scans.js';
import { runAsAdmin } from '../../postgres/admin.js';
import { listLeaves, nameRecords, type Resource } from '../../resource/definition/resource.js';
import { listFollowed } from './hiding/above.js';
import { countEmptied, countLedger, formatLedger, listOddities } from './hiding/ledger.js';
import { AdoptRefused, type DatabaseView, type Emptied, type Ledger, type Survey, type Table } from './schema.js';
import { type SurveyOptions, survey } from './survey.js';
import { findMostFrequent } from './tables/tenant.js';

export type ResourceLedger = Ledger & { readonly resource: string };

/** The table from which a view has its rows. */
interface Source {
  readonly resource: Resource;
  readonly schema: string;
  readonly table: string;
  readonly tenantColumn?: string | undefined;
  readonly view: DatabaseView;
}

/** Compares the rows of each view, also one that a person wrote, with those that a draft would show today. */
export function countShown(adminUrl: string, resources: readonly Resource[]) {
  return runAsAdmin(adminUrl, async (client) => {
    const sources: Source[] = [];
    for (const resource of resources) sources.push(...(await readSource(client, resource)));
    const tenantColumn = findMostFrequent(sources.flatMap((source) => source.tenantColumn ?? []));
    const ledgers: ResourceLedger[] = [];
    for (const schema of new Set(sources.map((source) => source.schema))) {
      const ofSchema = sources.filter((source) => source.schema === schema);
      const options = { schema, keep: ofSchema.map(({ table }) => table), tenantColumn };
      const surveyed = await surveyOrNone(client, options);
      if (surveyed !== undefined) ledgers.push(...(await countRows(client, ofSchema, surveyed)));
    }
    return { ledgers, items: resources.map(({ name }) => makeRowsItem(name, ledgers)) };
  });
}

async function countRows(client: pg.Client, sources: readonly Source[], surveyed: Survey): Promise<ResourceLedger[]> {
  const viewsOf = ({ name }: Table): DatabaseView[] =>
    sources.flatMap(({ table, view }) => (table === name ? [view] : []));
  const ledgers: ResourceLedger[] = [];
  for (const { resource, table, view } of sources) {
    const subject = surveyed.subjects.find((each) => each.table.name === table);
    if (subject === undefined) continue;
    const followed = listFollowed(subject, surveyed, viewsOf);
    const counted = await countLedger(client, subject, surveyed.subjects, { ...view, ...followed });
    ledgers.push({ resource: resource.name, ...counted, emptied: await readEmptied(client, resource) });
  }
  return ledgers;
}

function makeRowsItem(name: string, ledgers: readonly ResourceLedger[]): Item {
  const uncounted = 'They are not counted: its id comes from no columns of a table that `adopt` would draft.';
  const ledger = ledgers.find(({ resource }) => resource === name);
  if (ledger === undefined) return makeItem('warning', 'rows', uncounted, name);
  const faults = listOddities(ledger).map(({ text, of }) => (of ? `not shown: ${of}` : text.replace(/[.]$/, '')));
  return summarizeFaults('rows', faults, { whenOk: `${formatLedger(ledger)}.`, object: name, level: 'warning' });
}

/** A person can have written the views, such as for an app of one company, which `adopt` cannot draft. */
function surveyOrNone(client: pg.Client, options: SurveyOptions): Promise<Survey | undefined> {
  return survey(client, options).catch((error: unknown) => {
    if (error instanceof AdoptRefused) return undefined;
    throw error;
  });
}

/** Matches texts, and the aliases before columns, in an expression that PostgreSQL prints. */
const aliases = /'(?:[^']|'')*'|("(?:[^"]|"")+"|\b[a-z_]\w*)\.(?=["a-z_])/g;

const isOfSeveralRows = (node: QueryPlan): boolean => /Agg|ProjectSet/.test(node['Node Type']);

/** Asks the plan from which columns of a table the view has its id: one, or the texts of several. */
async function readSource(client: pg.Client, resource: Resource): Promise<Source[]> {
  const name = nameRecords(resource.view);
  const plan = await readPlan(client, `select id, workspace_id from ${name}`);
  const [id = '', workspace = ''] = plan.Output ?? [];
  const [alias, ...others] = new Set([...id.matchAll(aliases)].flatMap(([, before]) => before ?? []));
  const source = listNodes(plan).find(
    (node) => node['Relation Name'] !== undefined && node.Alias === unquoteName(alias ?? ''),
  );
  const { Schema: schema, 'Relation Name': table } = source ?? {};
  // An id from a subquery or an aggregate is of no single row.
  const isOfRow = !/SubPlan/.test(id) && !(/[\w"]\(/.test(id) && listNodes(plan).some(isOfSeveralRows));
  if (others.length > 0 || !isOfRow || schema === undefined || table === undefined) return [];
  const asked = [name, schema, table];
  const { rows: facts } = await client.query<{ type: string; policies: string | null }>(
    readProject('sql/adopt/source.sql'),
    asked,
  );
  const { type = 'text', policies = null } = facts[0] ?? {};
  const viewName = name.replace(/^records\./, '"records".'); // because the ledger replaces records.X by its draft
  const ofTable = id.replace(aliases, (text: string, before?: string) => (before === undefined ? text : 't.'));
  const [, of, column] = /^\(*("(?:[^"]|"")+"|\w+)\.("(?:[^"]|"")+"|\w+)/.exec(workspace) ?? [];
  const tenantColumn = of === alias ? unquoteName(column ?? '') : undefined;
  return [{ resource, schema, table, tenantColumn, view: { name: viewName, id: `(${ofTable})::${type}`, policies } }];
}

const valuesMax = 1000; // a member that `show` lacks is in many values, or the operator left it out

async function readEmptied(client: pg.Client, resource: Resource): Promise<Emptied[]> {
  const emptied: Emptied[] = [];
  for (const { field } of listLeaves(resource)) {
    const { show, column } = field as { readonly show?: readonly string[]; readonly column: string };
    if (show === undefined) continue;
    const { rows } = await client.query<{ value: string }>(
      `select ${pg.escapeIdentifier(column)}::text as value from ${nameRecords(resource.view)} where ${pg.escapeIdentifier(column)} is not null limit ${valuesMax}`,
    );
    const values = rows.map(({ value }) => value);
    emptied.push(countEmptied(column, values, show.map(String)));
  }
  return emptied;
}
