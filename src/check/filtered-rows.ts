import type pg from 'pg';
import type { Statement } from '../db/statement.js';
import type { Resource } from '../definition/resource.js';
import { compileStatements } from '../definition/statements.js';
import { explain, isOfRow, type Plan } from './explain.js';
import { checkSql } from './finding.js';

/** With a smaller share of rows thrown away an index of its own gains little, and the planner would seldom use it. */
const shareMin = 0.5;

/**
 * Filters of the list without an index: their plan walks the index of the list and throws away most of the rows. Each as a sentence
 * with the index to create. The client is in the transaction of checkPlans.
 */
export async function filtersWithoutIndex(client: pg.Client, resource: Resource): Promise<string[]> {
  const { list } = compileStatements(resource);
  const all = rowsOf(scans(await explain(client, list([]).rows.all)));
  const found: string[] = [];
  for (const name of Object.keys(resource.filters)) {
    const statement = list([name]).rows.all;
    const nodes = scans(await explain(client, statement));
    const walks = nodes.flatMap((node) => comparedColumn(node, statement, name) ?? []);
    const [walk] = walks;
    if (walk === undefined || walks.length < nodes.length || rowsOf(nodes) > all * shareMin) continue;
    const index = await missingIndex(client, resource, name, walk);
    if (index !== null) found.push(`the list by ${name} reads the rows of all values: ${index}`);
  }
  return found;
}

function scans(plan: Plan): Plan[] {
  if (isOfRow(plan)) return [];
  return [...(plan['Index Name'] === undefined ? [] : [plan]), ...(plan.Plans ?? []).flatMap(scans)];
}

function rowsOf(nodes: readonly Plan[]): number {
  return nodes.reduce((sum, node) => sum + node['Plan Rows'], 0);
}

/** A scan that compares the filter's parameter row by row, and the column of the table that it compares. */
interface Walk {
  readonly index: string;
  readonly column: string;
}

function comparedColumn(
  { Filter = '', 'Index Name': index = '' }: Plan,
  { parameters }: Statement,
  name: string,
): Walk | undefined {
  const place = parameters.indexOf(name) + 1;
  const compared = new RegExp(String.raw`(\w+|"[^"]+")\)?(?:::[\w ]+)? (?:=|<=|>=|<|>) [^$=<>]*\$${place}(?!\d)`).exec(
    Filter,
  );
  return compared?.[1] === undefined ? undefined : { index, column: compared[1] };
}

/** The index of the list with the column behind that of the workspace; null when there is one, and the table is too small for it. */
async function missingIndex(
  client: pg.Client,
  { view }: Resource,
  filter: string,
  { index, column }: Walk,
): Promise<string | null> {
  const values = [view, index];
  const { rows } = await client.query<{ table: string; definition: string; all: string[] }>(checkSql('index'), values);
  const [found] = rows;
  const [, first, rest] = / using btree \(([^,()]+)(.*)$/i.exec(found?.definition ?? '') ?? [];
  if (found === undefined || first === undefined) return `${column} is in no index with the order of the list`;
  const leading = `(${first}, ${column}`;
  if (found.all.some((each) => each.includes(`${leading},`) || each.includes(`${leading})`))) return null;
  const name = `gateway_${view.replace(/^.*\./, '')}_${filter.toLowerCase()}`.slice(0, 63);
  return `create index concurrently if not exists ${name} on ${found.table} ${leading}${rest}`;
}
