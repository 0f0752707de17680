import type pg from 'pg';
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
  const unfiltered = scans(await explain(client, list([]).rows.all));
  const all = rowsOf(unfiltered);
  // Before version 17 PostgreSQL prints the result of a subquery, with which the workspace is compared, like a parameter.
  const ofWorkspace = new Set(unfiltered.flatMap((node) => columnsComparedWith('\\d+', conditionsOf(node))));
  const found: string[] = [];
  for (const [name, filter] of Object.entries(resource.filters)) {
    if (resource.order.some(({ column }) => column === filter.column)) continue; // the index of the list has it
    const statement = list([name]).rows.all;
    const nodes = scans(await explain(client, statement));
    const place = statement.parameters.indexOf(name) + 1;
    const walks = nodes.flatMap(({ Filter = '', 'Index Name': index = '' }) =>
      columnsComparedWith(`${place}(?!\\d)`, Filter)
        .filter((column) => !ofWorkspace.has(column) && column !== 'true') // the second member of a row comparison
        .slice(0, 1)
        .map((column): Walk => ({ index, column })),
    );
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

function conditionsOf({ Filter = '', 'Index Cond': indexed = '' }: Plan): string {
  return `${indexed} ${Filter}`;
}

/** The columns that a condition of a plan compares with a parameter; `number` is a regular expression. */
function columnsComparedWith(number: string, condition: string): string[] {
  const compared = String.raw`(?:ROW\()?(\w+|"[^"]+")(?:, \w+)?\)?(?:::[\w ]+)? (?:=|<=|>=|<|>) [^$=<>]*\$${number}`;
  return [...condition.matchAll(new RegExp(compared, 'g'))].map(([, column]) => column as string);
}

/**
 * The index of the list, without columns behind those of the order, with the column behind that of the workspace; null when there is
 * one, and the table is too small for it.
 */
async function missingIndex(
  client: pg.Client,
  { view, order }: Resource,
  filter: string,
  { index, column }: Walk,
): Promise<string | null> {
  const values = [view, index];
  const { rows } = await client.query<{ table: string; definition: string; all: string[] }>(checkSql('index'), values);
  const [found] = rows;
  const form = new RegExp(String.raw` using btree \(([^,()]+)((?:, [^,()]+){${order.length}})[^)]*(\).*)$`, 'i');
  const [, first, keys, end] = form.exec(found?.definition ?? '') ?? [];
  if (found === undefined || first === undefined) return `${column} is in no index with the order of the list`;
  const leading = `(${first}, ${column}`;
  if (found.all.some((each) => each.includes(`${leading},`) || each.includes(`${leading})`))) return null;
  const name = `gateway_${view.replace(/^.*\./, '')}_${filter.toLowerCase()}`.slice(0, 63);
  return `create index concurrently if not exists ${name} on ${found.table} ${leading}${keys}${end}`;
}
