import type pg from 'pg';
import { getCorrection } from '../postgres/database-errors.js';
import { runReadOnly } from './check-session.js';
import { fail, type Item, readCheckSql, sumUp } from './finding.js';
import { findScans, readPlan, type Scans } from './plan-scans.js';

/** With these settings plans name every scan, also of partitions, and the schemas of functions. */
const planned = `set local search_path = ''; set local quote_all_identifiers = off; set local max_parallel_workers_per_gather = 0`;

interface RelationRow {
  readonly name: string;
  readonly columns: readonly string[];
  readonly indirect: boolean;
  /** The function reads as its owner; its name is "schema.name()". */
  readonly isDefiner: boolean;
  readonly keys: readonly { readonly own: string[]; readonly name: string; readonly other: string[] }[];
}

/** The tables of a plan by alias, as far as they are proven to be read for one workspace only. */
interface Proof extends Scans {
  readonly relationOf: (alias: string) => RelationRow | undefined;
  readonly proven: Set<string>;
}

/**
 * Proves tables of a plan one after the other until none is added: by a column that is compared with the workspace, or with the same
 * column of a proven table; or by a foreign key to a proven row. Lists the tables that need a proof and have none. In the example of
 * plan-scans.ts the workspace proves o. If p has a column of the workspace, it is a finding, because the plan does not compare it:
 * "it reads app.parts (p) without comparing workspace_id with the workspace". If p has none, its foreign key to o proves it.
 */
function listUnproven(scans: Scans, relations: ReadonlyMap<string, RelationRow>): string[] {
  const relationOf = (alias: string): RelationRow | undefined => relations.get(scans.tables.get(alias) ?? '');
  const proof: Proof = { ...scans, relationOf, proven: new Set() };
  const needy = [...scans.tables.keys()].flatMap((alias) => {
    const relation = relationOf(alias);
    return relation && (relation.columns.length > 0 || relation.indirect) ? [{ alias, relation }] : [];
  });
  for (let before = -1; before < proof.proven.size; ) {
    before = proof.proven.size;
    for (const { alias, relation } of needy)
      if (isCompared(proof, alias, relation) || isNamedByKey(proof, alias, relation)) proof.proven.add(alias);
  }
  return needy
    .filter(({ alias }) => !proof.proven.has(alias))
    .map(({ alias, relation: { name, columns, indirect } }) =>
      indirect
        ? `it reads ${name} (${alias}), whose workspace another table tells, without the key of a row of the workspace`
        : `it reads ${name} (${alias}) without comparing ${columns.join(' or ')} with the workspace`,
    );
}

function isCompared(proof: Proof, alias: string, { columns }: RelationRow): boolean {
  return proof.comparisons.some(({ column, other, ...comparison }) => {
    if (comparison.alias !== alias || !columns.includes(column)) return false;
    if ('isWorkspace' in other) return true;
    return isProven(proof, other.alias) && (proof.relationOf(other.alias)?.columns.includes(other.column) ?? true);
  });
}

/** A foreign key proves a row without a column of the workspace, and a row of which the plan only learns whether it exists. */
function isNamedByKey(proof: Proof, alias: string, { indirect, keys }: RelationRow): boolean {
  if (!indirect && !proof.verdicts.has(alias)) return false;
  const pairs = proof.comparisons.flatMap(({ column, other, ...comparison }) =>
    comparison.alias === alias && 'alias' in other ? [{ column, other }] : [],
  );
  return pairs.some(({ other: { alias: target } }) => {
    const isPaired = (column: string, key = ''): boolean =>
      pairs.some(({ other, ...pair }) => other.alias === target && pair.column === column && other.column === key);
    const name = proof.tables.get(target); // a subquery has none
    const holds = keys.some((key) => key.name === name && key.own.every((column, i) => isPaired(column, key.other[i])));
    return isProven(proof, target) && (name === undefined || holds);
  });
}

/** A subquery is proven by one of its tables. */
function isProven({ subqueries, proven }: Proof, alias: string): boolean {
  const below = subqueries.get(alias);
  return below === undefined ? proven.has(alias) : below.some((table) => proven.has(table));
}

/** Reads the plans, because they show inlined functions and conditions that cannot be pushed down as they run. */
export async function scanItems(client: pg.Client, views: readonly string[]): Promise<Item[]> {
  const scansOfViews = new Map<string, Scans>();
  const items: Item[] = [];
  const { rows } = await client.query<{ name: string; columns: string }>(readableColumns, [views]);
  for (const { name, columns } of rows) {
    const plan = async (): Promise<Item[]> => {
      scansOfViews.set(name, findScans(await readPlan(client, `select ${columns} from ${name}`)));
      return [];
    };
    const refused = (error: Error): Item[] => [
      { ...fail('scans', `It cannot be planned: ${error.message}.`, name), advice: getCorrection(error) },
    ];
    items.push(...(await runReadOnly(client, { settings: planned, object: name }, plan, refused)));
  }
  const relations = await readRelations(client, [...scansOfViews.values()]);
  for (const [name, scans] of scansOfViews) {
    const definers = scans.functions.filter((each) => relations.get(`${each}()`)?.isDefiner);
    const faults = [
      ...listUnproven(scans, relations),
      ...definers.map((each) => `it calls ${each}(), which reads as its owner, and whose scans no check sees`),
    ];
    items.push(sumUp('scans', faults, `Each of ${scans.tables.size} scans is of one workspace.`, name));
  }
  return items;
}

const readableColumns = `select v.name, string_agg(quote_ident(a.attname), ', ') as columns
  from unnest($1::text[]) with ordinality v (name, place) join pg_attribute a on a.attrelid = to_regclass(v.name) and a.attnum > 0
  where has_column_privilege(a.attrelid, a.attnum, 'select') group by v.name, v.place order by v.place`;

async function readRelations(client: pg.Client, all: readonly Scans[]): Promise<ReadonlyMap<string, RelationRow>> {
  const compared = all.flatMap(({ tables, comparisons }) =>
    comparisons.flatMap(({ alias, column, other }) =>
      'isWorkspace' in other && tables.has(alias) ? [[tables.get(alias), column]] : [],
    ),
  );
  const { rows } = await client.query<RelationRow>(readCheckSql('scans'), [
    all.flatMap(({ tables }) => [...tables.values()]),
    compared.map(([table]) => table),
    compared.map(([, column]) => column),
    all.flatMap(({ functions }) => functions),
  ]);
  return new Map(rows.map((row) => [row.name, row]));
}
