import { randomUUID } from 'node:crypto';
import type pg from 'pg';
import type { Statement } from '../../postgres/statement.js';
import type { Resource } from '../../resource/definition/resource.js';
import { compileStatements } from '../../resource/statements/statements.js';
import { compileSyncStatements, type Section } from '../../resource/statements/sync-statements.js';
import { runReadOnly } from '../check-session.js';
import { type Item, makeItem, readCheckSql } from '../finding.js';
import { type QueryPlan, readPlan } from '../plan-scans.js';

/** Must run in a transaction whose plan_cache_mode is force_generic_plan. */
async function explainPlan(client: pg.Client, { text, parameters }: Statement): Promise<QueryPlan> {
  const values = parameters.length === 0 ? '' : ` (${parameters.map(() => 'null').join(', ')})`;
  const name = `"${randomUUID()}"`; // after an error the statement stays prepared
  await client.query(`prepare ${name} as ${text}`);
  const plan = await readPlan(client, `execute ${name}${values}`);
  await client.query(`deallocate ${name}`);
  return plan;
}

/** Recognizes a plan that makes a part of a row, and runs only for the rows of a page. */
function isOfRow(plan: QueryPlan): boolean {
  return /^(SubPlan|InitPlan)$/.test(plan['Parent Relationship'] ?? '');
}

/** Forbids scans and sorts: the planner scans a small table although an index fits. A scan that remains has no index. */
const planSettings = `set local statement_timeout = '1s'; set local plan_cache_mode = force_generic_plan;
  set local enable_seqscan = off; set local enable_sort = off; set local enable_incremental_sort = off`;

/**
 * Checks the plans of single records, lists and sync: a sort or a sequential scan costs as much as the table. Rows whose workspace another
 * table has are sorted, which is slow, and no fault.
 */
export async function checkPlans(client: pg.Client, resource: Resource): Promise<Item[]> {
  const faults: string[] = [];
  const sorted: string[] = [];
  const explainAll = async (): Promise<Item[]> => {
    const shapes = listShapes(resource);
    for (const [shape, statements] of shapes) {
      const flaws = new Set<string>();
      for (const statement of statements)
        for (const flaw of listFlaws(await explainPlan(client, statement))) flaws.add(flaw);
      if (flaws.delete('sorts what it joins')) sorted.push(shape);
      if (flaws.size > 0) faults.push(`${shape} ${[...flaws].join(' and ')}`);
    }
    const { name } = resource;
    const count = shapes.length;
    const sorting = `${sorted.length} of ${count} shapes sort all rows of a workspace.`;
    if (sorted.length > 0 && faults.length === 0) return [makeItem('warning', 'sorted_lists', sorting, name)];
    if (faults.length > 0) return [makeItem('failed', 'plans', `No index fits: ${faults.join('; ')}.`, name)];
    return [makeItem('ok', 'plans', `Every one of ${count} shapes has its index.`, name)];
  };
  return runReadOnly(client, { settings: planSettings, object: resource.view }, explainAll, ({ message }) => [
    makeItem('failed', 'plans', `They could not be made: ${message}.`, resource.name),
  ]);
}

/** Finds missing indexes of `migrate --indexes`: plans can use another one, many times as slow. */
export function checkIndexes(client: pg.Client): Promise<Item[]> {
  const look = async (): Promise<Item[]> => {
    const { rows } = await client.query<{ name: string }>(readCheckSql('indexes'));
    const names = rows.map(({ name }) => name).join(', ');
    const gone = `Gone, not valid, or of another table since \`migrate --indexes\` made them: ${names}.`;
    if (names !== '') return [makeItem('failed', 'indexes', gone)];
    return [makeItem('ok', 'indexes', 'Those that `migrate --indexes` made are there.')];
  };
  const bounds = { object: null, settings: 'set local quote_all_identifiers = off' };
  return runReadOnly(client, bounds, look, ({ message }) => [
    makeItem('failed', 'indexes', `They cannot be read: ${message}.`),
  ]);
}

type Shape = [name: string, statements: Statement[]];

function listShapes(resource: Resource): Shape[] {
  const { list, detail } = compileStatements(resource);
  const names = Object.keys(resource.filters);
  const combinations = [[], ...names.map((name) => [name]), ...(names.length > 1 ? [names] : [])];
  const lists = combinations.map((filters): Shape => {
    const { rows, keys, last, count } = list(filters);
    const shape = filters.length === 0 ? 'the list' : `the list by ${filters.join(', ')}`;
    return [shape, [...Object.values(rows), ...Object.values(keys), last, count]];
  });
  return [...lists, ...(detail === null ? [] : [['the detail', [detail]] as Shape]), ...listSyncShapes(resource)];
}

function listSyncShapes(resource: Resource): Shape[] {
  const statements = compileSyncStatements(resource);
  if (statements === null) return [];
  const { changed, hashed, digest } = statements;
  const parts = Object.keys(resource.sync?.parts ?? {}).map((part) => `${part} by since`);
  const names = ['the sync list by since', ...parts];
  const ofSection = ({ ahead, find }: Section): Statement[] =>
    [...Object.values(ahead), ...Object.values(find)].filter(({ inTableOrder }) => !inTableOrder);
  const lists = changed.map((section, i): Shape => [names[i] as string, ofSection(section)]);
  return [...lists, ['digest and ids', [...ofSection(hashed), ...Object.values(digest)]]];
}

/** Leaves out subplans, which run only for the rows of a page, and the few rows of a list of ids or of a bound. */
function listFlaws(plan: QueryPlan): string[] {
  if (isOfRow(plan)) return [];
  const type = plan['Node Type'];
  const flaws = (plan.Plans ?? []).flatMap(listFlaws);
  if (type === 'Seq Scan') return [`scans ${plan['Relation Name']}`, ...flaws];
  const isSort = /Sort$/.test(type) && !readsFewRows(plan);
  return isSort ? [isJoin(plan) ? 'sorts what it joins' : 'sorts', ...flaws] : flaws;
}

function isJoin(plan: QueryPlan): boolean {
  return !isOfRow(plan) && (/Join|Nested Loop/.test(plan['Node Type']) || (plan.Plans ?? []).some(isJoin));
}

/** A statement for few rows, or for rows by their ids, bounds them itself (statements.ts), or a limit does. */
function readsFewRows(plan: QueryPlan): boolean {
  if (isOfRow(plan)) return false;
  const { 'Node Type': type, Alias, Plans = [] } = plan;
  return /^(few|one)$/.test(Alias ?? '') || type === 'Limit' || Plans.some(readsFewRows);
}
