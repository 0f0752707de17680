import pg from 'pg';
import { projectText } from '../../base/paths.js';
import { type Item, verdict, warning } from '../../doctor/finding.js';
import { allNodes, type QueryPlan } from '../../doctor/scans.js';
import { asAdmin } from '../../postgres/admin.js';
import { leaves, type Resource } from '../../resource/definition/resource.js';
import { recordsOf } from '../../resource/statements/walls.js';
import { emptiedBy, ledgerOf, ledgerText, oddities, type View } from './ledger.js';
import type { Emptied, Ledger } from './schema.js';
import { survey } from './survey.js';

export type ResourceLedger = Ledger & { readonly resource: string };

interface Source {
  readonly schema: string;
  readonly table: string;
  readonly view: View;
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
      const { subjects } = await survey(client, { schema, keep: names });
      for (const [resource, source] of sources) {
        const subject = subjects.find(({ table }) => source?.schema === schema && table.name === source.table);
        if (source === undefined || subject === undefined) continue;
        const counted = await ledgerOf(client, subject, subjects, source.view);
        ledgers.push({ resource: resource.name, ...counted, emptied: await emptiedOf(client, resource) });
      }
    }
    const uncounted = 'They are not counted: its id is no column of a table that `adopt` would draft.';
    const items = resources.map(({ name }): Item => {
      const ledger = ledgers.find((each) => each.resource === name);
      if (ledger === undefined) return warning('rows', uncounted, name);
      const faults = oddities(ledger).map(({ text }) => text.replace(/[.]$/, ''));
      return verdict('rows', faults, `${ledgerText(ledger)}.`, name, 'warning');
    });
    return { ledgers, items };
  });
}

/** Asks the plan from which column the view has its id. */
async function sourceOf(client: pg.Client, name: string): Promise<Source | undefined> {
  const { rows } = await client.query<{ 'QUERY PLAN': [{ Plan: QueryPlan }] }>(
    `explain (verbose, costs off, format json) select id from ${name}`,
  );
  const plan = rows[0]?.['QUERY PLAN'][0].Plan as QueryPlan;
  const [, alias, column] =
    /^\(*(?:("(?:[^"]|"")+"|\w+)\.)?("(?:[^"]|"")+"|\w+)\)*(?:::[\w ]+\)?)*$/.exec(plan.Output?.[0] ?? '') ?? [];
  const unquoted = alias?.replace(/^"|"$/g, '').replaceAll('""', '"');
  const source = allNodes(plan).find(
    (node) => node['Relation Name'] !== undefined && (unquoted === undefined || node.Alias === unquoted),
  );
  const { Schema: schema, 'Relation Name': table } = source ?? {};
  if (column === undefined || schema === undefined || table === undefined) return undefined;
  const asked = [name, schema, table];
  const { rows: facts } = await client.query<{ type: string; policies: string | null }>(
    projectText('sql/adopt/source.sql'),
    asked,
  );
  const { type = 'text', policies = null } = facts[0] ?? {};
  const own = name.replace(/^records\./, '"records".'); // not one that the ledger replaces by its draft
  return { schema, table, view: { name: own, id: `(t.${column})::${type}`, policies } };
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
