import pg from 'pg';
import { projectText } from '../../base/paths.js';
import { type Item, verdict, warning } from '../../doctor/finding.js';
import { allNodes, type QueryPlan } from '../../doctor/scans.js';
import { asAdmin } from '../../postgres/admin.js';
import { leaves, type Resource, recordsOf } from '../../resource/definition/resource.js';
import { followed } from './above.js';
import { emptiedBy, ledgerOf, ledgerText, oddities } from './ledger.js';
import { AdoptRefused, type Emptied, type Ledger, type Survey, type Table, type ViewId } from './schema.js';
import { type SurveyOptions, survey } from './survey.js';
import { mostFrequent } from './tenant.js';

export type ResourceLedger = Ledger & { readonly resource: string };

interface Source {
  readonly schema: string;
  readonly table: string;
  readonly tenantColumn?: string | undefined;
  readonly view: ViewId;
}

/** Compares the rows of each view, also one that a person wrote, with those that a draft would show today. */
export function countRows(
  adminUrl: string,
  resources: readonly Resource[],
): Promise<{ ledgers: ResourceLedger[]; items: Item[] }> {
  return asAdmin(adminUrl, async (client) => {
    const sources = new Map<Resource, Source | undefined>();
    for (const resource of resources) sources.set(resource, await sourceOf(client, recordsOf(resource.view)));
    const ledgers: ResourceLedger[] = [];
    for (const schema of new Set([...sources.values()].flatMap((source) => source?.schema ?? []))) {
      const names = [...sources.values()].flatMap((source) => (source?.schema === schema ? [source.table] : []));
      const columns = [...sources.values()].flatMap((source) => source?.tenantColumn ?? []);
      const surveyed = await surveyOf(client, { schema, keep: names, tenantColumn: mostFrequent(columns) });
      const isOf = (source: Source | undefined, { name }: Table): boolean =>
        source?.schema === schema && source.table === name;
      const viewsOf = (table: Table) =>
        [...sources.values()].flatMap((source) => (isOf(source, table) ? (source?.view ?? []) : []));
      for (const [resource, source] of sources) {
        const subject = surveyed?.subjects.find(({ table }) => isOf(source, table));
        if (source === undefined || subject === undefined || surveyed === undefined) continue;
        const view = { ...source.view, ...followed(subject, surveyed, viewsOf) };
        const counted = await ledgerOf(client, subject, surveyed.subjects, view);
        ledgers.push({ resource: resource.name, ...counted, emptied: await emptiedOf(client, resource) });
      }
    }
    const uncounted = 'They are not counted: its id comes from no columns of a table that `adopt` would draft.';
    const items = resources.map(({ name }): Item => {
      const ledger = ledgers.find((each) => each.resource === name);
      if (ledger === undefined) return warning('rows', uncounted, name);
      const faults = oddities(ledger).map(({ text, of }) => (of ? `not shown: ${of}` : text.replace(/[.]$/, '')));
      return verdict('rows', faults, `${ledgerText(ledger)}.`, name, 'warning');
    });
    return { ledgers, items };
  });
}

/** A person can have written the views, such as for an app of one company, which `adopt` cannot draft. */
async function surveyOf(client: pg.Client, options: SurveyOptions): Promise<Survey | undefined> {
  try {
    return await survey(client, options);
  } catch (error) {
    if (error instanceof AdoptRefused) return undefined;
    throw error;
  }
}

/** Texts, and the aliases before columns, of an expression that PostgreSQL prints. */
const aliases = /'(?:[^']|'')*'|("(?:[^"]|"")+"|\b[a-z_]\w*)\.(?=["a-z_])/g;

const isOfSeveralRows = (node: QueryPlan): boolean => /Agg|ProjectSet/.test(node['Node Type']);

const unquoted = (name = ''): string => name.replace(/^"|"$/g, '').replaceAll('""', '"');

/** Asks the plan from which columns of a table the view has its id: one, or the texts of several. */
async function sourceOf(client: pg.Client, name: string): Promise<Source | undefined> {
  const { rows } = await client.query<{ 'QUERY PLAN': [{ Plan: QueryPlan }] }>(
    `explain (verbose, costs off, format json) select id, workspace_id from ${name}`,
  );
  const plan = rows[0]?.['QUERY PLAN'][0].Plan as QueryPlan;
  const [id = '', workspace = ''] = plan.Output ?? [];
  const [alias, ...others] = new Set([...id.matchAll(aliases)].flatMap(([, before]) => before ?? []));
  const source = allNodes(plan).find((node) => node['Relation Name'] !== undefined && node.Alias === unquoted(alias));
  const { Schema: schema, 'Relation Name': table } = source ?? {};
  const isOfRow = !/SubPlan/.test(id) && !(/\w\(/.test(id) && allNodes(plan).some(isOfSeveralRows));
  if (others.length > 0 || !isOfRow || schema === undefined || table === undefined) return undefined;
  const asked = [name, schema, table];
  const { rows: facts } = await client.query<{ type: string; policies: string | null }>(
    projectText('sql/adopt/source.sql'),
    asked,
  );
  const { type = 'text', policies = null } = facts[0] ?? {};
  const viewName = name.replace(/^records\./, '"records".'); // not one that the ledger replaces by its draft
  const ofTable = id.replace(aliases, (text: string, before?: string) => (before === undefined ? text : 't.'));
  const [, of, column] = /^\(*("(?:[^"]|"")+"|\w+)\.("(?:[^"]|"")+"|\w+)/.exec(workspace) ?? [];
  return {
    schema,
    table,
    tenantColumn: of === alias ? unquoted(column) : undefined,
    view: { name: viewName, id: `(${ofTable})::${type}`, policies },
  };
}

const valuesMax = 1000;

async function emptiedOf(client: pg.Client, resource: Resource): Promise<Emptied[]> {
  const emptied: Emptied[] = [];
  for (const { field } of leaves(resource)) {
    const { show, column } = field as { readonly show?: readonly string[]; readonly column: string };
    if (show === undefined) continue;
    const { rows } = await client.query<{ value: string }>(
      `select ${pg.escapeIdentifier(column)}::text as value from ${recordsOf(resource.view)} where ${pg.escapeIdentifier(column)} is not null limit ${valuesMax}`,
    );
    const values = rows.map(({ value }) => value);
    emptied.push(emptiedBy(column, values, show.map(String)));
  }
  return emptied;
}
