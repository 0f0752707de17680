import type pg from 'pg';
import { getCorrection } from '../postgres/database-errors.js';
import { runReadOnly } from './check-session.js';
import { type Item, makeItem, readCheckSql, summarizeFaults } from './finding.js';
import { findScans, readPlan, type Scans } from './plan-scans.js';

/** With these settings plans name every scan, also of partitions, and the schemas of functions. */
const planSettings = `set local search_path = ''; set local quote_all_identifiers = off; set local max_parallel_workers_per_gather = 0`;

interface RelationRow {
  readonly name: string;
  readonly columns: readonly string[];
  /** Another table has the workspace of the rows. */
  readonly isIndirect: boolean;
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
  const toProve = [...scans.tables.keys()].flatMap((alias) => {
    const relation = relationOf(alias);
    return relation && (relation.columns.length > 0 || relation.isIndirect) ? [{ alias, relation }] : [];
  });
  for (let before = -1; before < proof.proven.size; ) {
    before = proof.proven.size;
    for (const { alias, relation } of toProve)
      if (isCompared(proof, alias, relation) || isNamedByKey(proof, alias, relation)) proof.proven.add(alias);
  }
  return toProve
    .filter(({ alias }) => !proof.proven.has(alias))
    .map(({ alias, relation: { name, columns, isIndirect } }) =>
      isIndirect
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
function isNamedByKey(proof: Proof, alias: string, { isIndirect, keys }: RelationRow): boolean {
  if (!isIndirect && !proof.existenceTests.has(alias)) return false;
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
export async function checkScans(client: pg.Client, names: readonly string[]): Promise<Item[]> {
  const views = new Map<ReadableView, Scans>();
  const items: Item[] = [];
  const { rows } = await client.query<ReadableView>(readCheckSql('readable-views'), [names]);
  for (const view of rows) {
    const { name, columns } = view;
    const plan = async (): Promise<Item[]> => {
      views.set(view, findScans(await readPlan(client, `select ${columns} from ${name}`)));
      return [];
    };
    const describeRefusal = (error: Error): Item[] => [
      { ...makeItem('failed', 'scans', `It cannot be planned: ${error.message}.`, name), advice: getCorrection(error) },
    ];
    items.push(...(await runReadOnly(client, { settings: planSettings, object: name }, plan, describeRefusal)));
  }
  const relations = await readRelations(client, [...views.values()]);
  for (const [{ name, definers }, scans] of views) {
    const planned = scans.functions.filter((each) => relations.get(`${each}()`)?.isDefiner);
    const called = new Set([...planned, ...definers].filter((each) => each !== 'gateway.workspace'));
    const faults = [
      ...listUnproven(scans, relations),
      ...[...called].map((each) => `it calls ${each}(), which reads as its owner, and whose scans no check sees`),
    ];
    const whenOk = `Each of ${scans.tables.size} scans is of one workspace.`;
    items.push(summarizeFaults('scans', faults, { whenOk, object: name }));
  }
  return items;
}

interface ReadableView {
  readonly name: string;
  /** Columns that the role may read, as SQL writes them. */
  readonly columns: string;
  /** Functions, as "schema.name", that the view calls and that read as their owner. */
  readonly definers: readonly string[];
}

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
