import type { Contender, Contenders } from '../contenders.js';
import { generator, type LoadCost, runLoad } from '../load.js';
import type { Options } from '../options.js';
import { type CaseResult, figure, type Table, type Verdict } from '../result.js';
import { alternate, median, pairedRatio } from '../rounds.js';
import { rowsOf, type Stage } from '../stage.js';

const connections = 32;
const idsAsked = 2000;
/**
 * Just-in-time compilers and caches have settled by then; not counted. After 3 s Node.js 24 had not compiled all: details took the
 * gateway 130 µs instead of 120, and the bare server, which has less to compile, 90 in both.
 */
const warmUpSeconds = 12;
/** Begins each turn, not counted: V8 discards compiled code of a server that has rested while the others had their turns. */
const leadInSeconds = 2;

/** The factor by which the gateway must beat each contender, in requests per second; "Fastify + pg" → at least 1.2 × as many. */
type Goals = Readonly<Record<string, number>>;
const detailGoals: Goals = { 'Platformatic DB': 2, 'bare node:http + pg': 0.9, 'Fastify + pg': 1.2 };
const listGoals: Goals = { 'Platformatic DB': 2, 'bare node:http + pg': 0.9, 'Fastify + pg': 1.2 };

/** Single installations, thousands of different ones, against everybody. */
export async function detailsCase(stage: Stage, contenders: Contenders, options: Options): Promise<CaseResult> {
  const text = 'select id from app.installaties where workspace_id = $1 order by md5(id::text) limit $2';
  const ids = (await rowsOf(stage.replicaUrl, text, [stage.workspace, String(idsAsked)])).map(([id]) => id as string);
  const paths = ({ detail }: Contender): string[] => ids.map(detail);
  return compare('Detail read', detailGoals, stage, all(contenders), paths, options);
}

/** The first 100 installations against everybody, and the first 100 work orders against the bare server. */
export async function listsCase(stage: Stage, contenders: Contenders, options: Options): Promise<CaseResult> {
  const results: CaseResult[] = [];
  for (const [resource, title] of [
    ['installaties', 'List of 100 installations'],
    ['werkbonnen', 'List of 100 work orders'],
  ] as const) {
    const taking = all(contenders).filter(({ list }) => list[resource] !== undefined);
    const paths = ({ list }: Contender): string[] => [list[resource] as string];
    results.push(await compare(title, listGoals, stage, taking, paths, options));
  }
  return {
    verdicts: results.flatMap(({ verdicts }) => verdicts),
    tables: results.flatMap(({ tables }) => tables),
    skipped: [],
  };
}

function all({ gateway, bare, others }: Contenders): Contender[] {
  return [gateway, bare, ...others];
}

/** The first contender is the gateway. */
async function compare(
  title: string,
  goals: Goals,
  { replicaPid }: Stage,
  contenders: readonly Contender[],
  paths: (contender: Contender) => string[],
  { rounds, seconds }: Options,
): Promise<CaseResult> {
  const run = (contender: Contender, runSeconds: number): Promise<LoadCost> => {
    const { origin, headers, pid } = contender;
    return runLoad({ origin, headers, paths: paths(contender), connections, seconds: runSeconds }, pid, replicaPid);
  };
  for (const contender of contenders) await run(contender, Math.min(warmUpSeconds, 4 * seconds));
  const results = await alternate(contenders, rounds, async (contender, round) => {
    process.stderr.write(`  ${title}: round ${round + 1} of ${rounds}, ${contender.name}\n`);
    await run(contender, leadInSeconds);
    return run(contender, seconds);
  });
  const [ours = []] = results;
  const verdicts: Verdict[] = contenders.slice(1).flatMap(({ name }, i) => {
    const goal = goals[name];
    if (goal === undefined) return [];
    const value = pairedRatio(perSecond(ours), perSecond(results[i + 1] as LoadCost[]));
    return [
      { what: `${title} against ${name}: requests/s`, value, goal, bound: 'at least' as const, unit: '×' as const },
    ];
  });
  const table: Table = {
    title,
    note: `${generator().name}, ${connections} keep-alive connections, ${rounds} turns of ${seconds} s each, after ${leadInSeconds} s that do not count, medians. CPU is that of each one's process, of the replica's processes and of the load generator's, in seconds per 1,000 requests.`,
    head: [
      '',
      'requests/s',
      'p50, ms',
      'p99, ms',
      'bytes',
      'memory, MB',
      'CPU s/1,000',
      'replica CPU s/1,000',
      'generator CPU s/1,000',
    ],
    rows: contenders.map(({ name }, i) => [name, ...rowOf(results[i] as LoadCost[])]),
  };
  return { verdicts, tables: [table], skipped: [] };
}

function perSecond(runs: readonly LoadCost[]): number[] {
  return runs.map((run) => run.perSecond);
}

function rowOf(runs: readonly LoadCost[]): string[] {
  const middle = (of: (run: LoadCost) => number): string => figure(median(runs.map(of)));
  return [
    middle((run) => run.perSecond),
    middle(({ p50Ms }) => p50Ms),
    middle(({ p99Ms }) => p99Ms),
    middle(({ bytes, requests }) => bytes / requests),
    middle(({ rssMb }) => rssMb),
    // Milliseconds per request are seconds per 1,000 requests.
    middle(({ serverCpuMs, requests }) => serverCpuMs / requests),
    middle(({ databaseCpuMs, requests }) => databaseCpuMs / requests),
    middle(({ generatorCpuMs, requests }) => generatorCpuMs / requests),
  ];
}
