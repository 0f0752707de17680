import pg from 'pg';
import { type Item, verdict, warning } from '../../doctor/finding.js';
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

/** The rows of each resource as its view shows them, also if a person wrote it, beside those that a draft of today would show. */
export function countRows(
  adminUrl: string,
  resources: readonly Resource[],
): Promise<{ ledgers: ResourceLedger[]; items: Item[] }> {
  return asAdmin(adminUrl, async (client) => {
    const sources = new Map<Resource, Source | undefined>();
    for (const resource of resources) sources.set(resource, await sourceOf(client, recordsOf(resource.view)));
    const ledgers: ResourceLedger[] = [];
    const items: Item[] = [];
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
    for (const { name } of resources) {
      const ledger = ledgers.find((each) => each.resource === name);
      if (ledger === undefined)
        items.push(
          warning('rows', 'They are not counted: its id is no column of a table that `adopt` would draft.', name),
        );
      else
        items.push(
          verdict(
            'rows',
            oddities(ledger).map(({ text }) => text.replace(/[.]$/, '')),
            `${ledgerText(ledger)}.`,
            name,
            'warning',
          ),
        );
    }
    return { ledgers, items };
  });
}

interface PlanNode {
  readonly Output?: readonly string[];
  readonly Alias?: string;
  readonly Schema?: string;
  readonly 'Relation Name'?: string;
  readonly Plans?: readonly PlanNode[];
}

const policiesBelow = `(select string_agg(distinct polname, ', ') from pg_policy p join pg_class t on t.oid = polrelid
    join pg_class v on v.oid = $1::regclass join pg_roles o on o.oid = v.relowner
  where t.oid = format('%I.%I', $2::text, $3::text)::regclass and t.relrowsecurity and not o.rolsuper and not o.rolbypassrls and polcmd in ('r', '*')
    and (t.relforcerowsecurity or not pg_has_role(o.oid, t.relowner, 'usage')))`;

/** The column from which the view has its id, by the plan. */
async function sourceOf(client: pg.Client, name: string): Promise<Source | undefined> {
  const { rows } = await client.query<{ 'QUERY PLAN': [{ Plan: PlanNode }] }>(
    `explain (verbose, costs off, format json) select id from ${name}`,
  );
  const plan = rows[0]?.['QUERY PLAN'][0].Plan as PlanNode;
  const nodes = (node: PlanNode): PlanNode[] => [node, ...(node.Plans ?? []).flatMap(nodes)];
  const [, alias, column] =
    /^\(*(?:("(?:[^"]|"")+"|\w+)\.)?("(?:[^"]|"")+"|\w+)\)*(?:::[\w ]+\)?)*$/.exec(plan.Output?.[0] ?? '') ?? [];
  const unquoted = alias?.replace(/^"|"$/g, '').replaceAll('""', '"');
  const source = nodes(plan).find(
    (node) => node['Relation Name'] !== undefined && (unquoted === undefined || node.Alias === unquoted),
  );
  const { Schema: schema, 'Relation Name': table } = source ?? {};
  if (column === undefined || schema === undefined || table === undefined) return undefined;
  const { rows: facts } = await client.query<{ type: string; policies: string | null }>(
    `select pg_typeof(id)::text as type, ${policiesBelow} as policies from (select null::${name} as r) n, lateral (select (r).id) i`,
    [name, schema, table],
  );
  const { type = 'text', policies = null } = facts[0] ?? {};
  const [relation = '', view = ''] = [name.split('.')[0], name.split('.')[1]].map((part) =>
    pg.escapeIdentifier(part ?? ''),
  );
  return { schema, table, view: { name: `${relation}.${view}`, id: `(t.${column})::${type}`, policies } };
}

const valuesMax = 1000;

async function emptiedOf(client: pg.Client, resource: Resource): Promise<Emptied[]> {
  const found: Emptied[] = [];
  for (const { field } of leaves(resource)) {
    const { show, column } = field as { readonly show?: readonly string[]; readonly column: string };
    if (show === undefined) continue;
    const { rows } = await client.query<{ value: string }>(
      `select ${pg.escapeIdentifier(column)}::text as value from ${recordsOf(resource.view)} where ${pg.escapeIdentifier(column)} is not null limit ${valuesMax}`,
    );
    found.push(
      emptiedBy(
        column,
        rows.map(({ value }) => value),
        show.map(String),
      ),
    );
  }
  return found;
}
