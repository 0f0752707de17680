import pg from 'pg';
import type { Statement } from '../../src/db/statement.js';
import type { Resource } from '../../src/definition/resource.js';
import { compileStatements } from '../../src/definition/statements.js';
import type { CaseResult, Verdict } from '../result.js';
import { figure } from '../result.js';
import { median } from '../rounds.js';
import { workspaceOf } from './data.js';
import { actFor, asReader, filterValues, type ParameterValues, resourceOf, type Subject } from './subject.js';

const rows = 100;
/** PostgreSQL's default considers a generic plan from the sixth run on. */
const runsBefore = 6;
/** Of a row its index entry and its heap page, of a work order those of its parts; further the descents into the indexes of every year. */
const buffersPerRow = 14;
const buffersOnce = 200;

interface Node {
  readonly 'Node Type': string;
  readonly 'Index Name'?: string;
  readonly 'Shared Hit Blocks': number;
  readonly 'Shared Read Blocks': number;
  readonly Plans?: readonly Node[];
}

interface Explained {
  readonly Plan: Node;
  readonly 'Planning Time': number;
}

/** The generic plans of the lists: the same indexes for the workspace with nearly all rows and for the one with ten, and their planning time. */
export async function plansOf({ readerUrl, replicaUrl }: Subject): Promise<CaseResult> {
  const table: string[][] = [];
  const faults: string[] = [];
  const planning: Record<string, { first: number[]; later: number[] }> = {};
  let count = 0;
  await asReader(readerUrl, workspaceOf(0), async (client) => {
    const filters = await filterValues(replicaUrl);
    for (const name of ['werkbonnen', 'logboeken']) {
      const resource = resourceOf(name);
      const { list } = compileStatements(resource);
      const names = Object.keys(resource.filters).filter((filter) => filter !== 'ids');
      const times = { first: [] as number[], later: [] as number[] };
      planning[name] = times;
      for (const shape of [[], ...names.map((filter) => [filter]), names]) {
        const { all, after } = list(shape).rows;
        for (const [end, statement] of [
          ['first page', all],
          ['later page', after],
        ] as const) {
          const values = {
            ...filters,
            ...(await keyBehind(client, resource, filters.from as string)),
          };
          const plan = await held(client, statement, values);
          count++;
          times.first.push(plan.firstMs);
          times.later.push(plan.laterMs);
          const label = `${name}${shape.length > 0 ? ` by ${shape.join(', ')}` : ''}, ${end}`;
          if (plan.fault !== null) faults.push(`${label}: ${plan.fault}`);
          table.push([label, plan.indexes.join(', '), ...plan.buffers.map(String), figure(plan.firstMs)]);
        }
      }
    }
  });
  const verdicts: Verdict[] = [
    {
      what: `Of ${count} statements those whose plan differs between workspaces, is made again, or reads too much`,
      value: faults.length,
      goal: 0,
      bound: 'at most',
      unit: 'statements',
    },
  ];
  const planningRows = Object.entries(planning).map(([name, { first, later }]) => [
    name,
    ...[median(first), Math.max(...first), median(later), Math.max(...later)].map(figure),
  ]);
  return {
    verdicts,
    tables: [
      {
        title: 'Plans after six executions',
        note: `Each statement as the gateway's role prepares it, run six times for the workspace with nearly all rows, then explained for it and for the one with ten rows: pages of ${rows}. "Planning" is PostgreSQL's time for the first run on a connection.${faults.length > 0 ? ` Faults: ${faults.join('; ')}.` : ''}`,
        head: ['statement', 'indexes', 'buffers, nearly all', 'buffers, ten rows', 'planning, ms'],
        rows: table,
      },
      {
        title: 'Planning time',
        note: 'The log has ten yearly partitions and one for earlier years. The first run of a statement on a connection makes the plan; the runs after it take it as it is.',
        head: ['', 'first run, median, ms', 'first run, longest, ms', 'later, median, ms', 'later, longest, ms'],
        rows: planningRows,
      },
    ],
    skipped: [],
  };
}

/** The first key of a day and later. */
async function keyBehind(client: pg.Client, { view, order }: Resource, day: string): Promise<ParameterValues> {
  const [first, second] = order.map(({ column }) => column);
  const { rows: found } = await client.query<string[]>({
    text: `select ${first}::text, ${second}::text from ${view}
      where workspace_id = '${workspaceOf(0)}' and ${first} >= '${day}' order by ${first}, ${second} limit 1`,
    rowMode: 'array',
  });
  return { after0: found[0]?.[0] as string, after1: found[0]?.[1] as string };
}

interface Held {
  readonly indexes: readonly string[];
  /** For the workspace with nearly all rows and for the one with ten. */
  readonly buffers: readonly number[];
  readonly firstMs: number;
  readonly laterMs: number;
  readonly fault: string | null;
}

/** Prepares the statement and runs it six times for the largest workspace; then explains it for that and for the smallest. */
async function held(client: pg.Client, statement: Statement, values: ParameterValues): Promise<Held> {
  const [largest, tiny] = [workspaceOf(0), workspaceOf(1)];
  const run = (workspace: string): string => {
    const all: ParameterValues = { ...values, workspace, timeZone: 'Europe/Amsterdam', limit: rows };
    return `execute held (${statement.parameters.map((name) => pg.escapeLiteral(String(all[name]))).join(', ')})`;
  };
  const explain = async (workspace: string): Promise<Explained> => {
    await actFor(client, workspace);
    const { rows: found } = await client.query<{ 'QUERY PLAN': [Explained] }>(
      `explain (analyze, buffers, format json) ${run(workspace)}`,
    );
    return (found[0] as { 'QUERY PLAN': [Explained] })['QUERY PLAN'][0];
  };
  await client.query(`prepare held as ${statement.text}`);
  const first = await explain(largest);
  for (let i = 1; i < runsBefore; i++) await client.query(run(largest));
  const plans = [await explain(largest), await explain(tiny)];
  await actFor(client, largest);
  const { rows: counts } = await client.query<{ custom: string }>(
    `select custom_plans as custom from pg_prepared_statements where name = 'held'`,
  );
  await client.query('deallocate held');
  const indexes = plans.map(({ Plan }) => [...new Set(indexesIn(Plan))]);
  const buffers = plans.map(({ Plan }) => Plan['Shared Hit Blocks'] + Plan['Shared Read Blocks']);
  const isSame = JSON.stringify(indexes[0]) === JSON.stringify(indexes[1]);
  const reads = buffers.every((each, i) => each <= (i === 0 ? rows : 10) * buffersPerRow + buffersOnce);
  const fault =
    counts[0]?.custom !== '0'
      ? `${counts[0]?.custom} custom plans`
      : isSame
        ? reads
          ? null
          : 'too many buffers'
        : 'other indexes';
  return {
    indexes: indexes[0] as string[],
    buffers,
    firstMs: first['Planning Time'],
    laterMs: (plans[0] as Explained)['Planning Time'],
    fault,
  };
}

/** Indexes without the year of their partition. */
function indexesIn(node: Node): string[] {
  const own = node['Index Name']?.replace(/_?(\d{4}|default)(?=_|$)/, '').replace(/\d+$/, '');
  return [...(own === undefined ? [] : [own]), ...(node.Plans ?? []).flatMap(indexesIn)];
}
