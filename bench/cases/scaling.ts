import { randomBytes } from 'node:crypto';
import { type Cluster, startCluster } from '../../demo/cluster/cluster.js';
import { type DemoWorkspace, databaseName, makeDatabase } from '../../demo/database.js';
import { apps } from '../../demo/seed/apps.js';
import { arranged, nameOf, type Plan, type Setting } from '../arrangement.js';
import { hasProgram } from '../balancer.js';
import type { Options } from '../options.js';
import { type CaseResult, figure, type Table, type Verdict } from '../result.js';
import { median } from '../rounds.js';
import {
  type Arrangement,
  balance,
  type Done,
  largePages,
  manyRequests,
  repeated,
  sum,
  type Usage,
  usageOf,
} from '../scaling-loads.js';
import { rowsOf } from '../stage.js';

const workOrders = 20_000;
const pageRows = 10_000;
const secondsMax = 2;
const roundsMax = 3;
/** `warmUp` is for each process: V8 compiles during that many requests, and two processes would compile twice as long. */
const details = { connections: 32, count: 200, warmUp: 20_000 };
const pages = { connections: 2, each: 3 };
const goals = { balance: 0.8, workers: 1.2 };

const plans: readonly Plan[] = [
  { gateways: 1, workers: 1, replicas: 1 },
  { gateways: 1, workers: 1, replicas: 2 },
  { gateways: 1, workers: 1, replicas: 3 },
  { gateways: 1, workers: 2, replicas: 1 },
  { gateways: 1, workers: 2, replicas: 3 },
  { gateways: 2, workers: 1, replicas: 2 },
];

/** Workers, replicas, and gateways behind one Redis: processor time for a unit of work, and its balance. */
export async function scalingCase(
  options: Options,
  onStarted: (cluster: Cluster) => void,
): Promise<CaseResult & { postgresVersion: string }> {
  const cluster = await startCluster({ replicas: 0 });
  onStarted(cluster);
  try {
    const keys = Object.fromEntries(['k1', 'k2', 'k3'].map((id) => [id, randomBytes(32).toString('base64')]));
    const [workspace] = await makeDatabase(
      cluster,
      apps.first,
      { app: 'first', rows: String(workOrders), keys },
      () => undefined,
    );
    for (let i = 0; i < 3; i++) await cluster.addReplica();
    await cluster.caughtUp();
    const setting: Setting = { cluster, keys, workspace: workspace as DemoWorkspace };
    const missing = ['nginx', 'redis-server'].filter((name) => !hasProgram(name));
    const feasible = plans.filter(({ gateways }) => gateways === 1 || missing.length === 0);
    const measured: { plan: Plan; details: Usage[]; pages: Usage[] }[] = [];
    let sizing: Table | null = null;
    for (const plan of feasible) {
      process.stderr.write(`  ${nameOf(plan)}\n`);
      await arranged(setting, plan, async (arrangement) => {
        sizing ??= await sizingOf(setting, arrangement, options);
        measured.push({ plan, ...(await measure(setting, arrangement, options)) });
      });
    }
    const [version] = await cluster.primary.query<{ server_version: string }>('show server_version');
    return {
      postgresVersion: version?.server_version ?? 'unknown',
      verdicts: verdictsOf(measured),
      tables: [...(sizing === null ? [] : [sizing]), throughputOf(measured, options)],
      skipped: missing.map((name) => `Two gateways were not measured: there is no ${name} on this machine.`),
    };
  } finally {
    await cluster.stop();
  }
}

/** Small requests on many connections, or large pages on a few. */
interface Work {
  readonly paths: readonly string[];
  readonly isLarge: boolean;
}

/** Warms up, then measures the work. */
async function worked(
  { workspace }: Setting,
  arrangement: Arrangement,
  { paths, isLarge }: Work,
  seconds: number,
  runs: number,
): Promise<Usage[]> {
  const token = workspace.tokens.all as string;
  const { origin } = arrangement;
  const headers = { authorization: `Bearer ${token}` };
  const path = (paths[0] as string).replace('/api/v1', '');
  const once = (): Promise<Done> =>
    isLarge
      ? largePages({ origin, token }, path, pages)
      : manyRequests({ origin, paths, headers, connections: details.connections, seconds });
  const warmUp = isLarge ? 1 : details.warmUp;
  const usage = (): Promise<Usage> => repeated(() => usageOf(arrangement, once));
  for (let done = 0; done < warmUp; ) {
    const { requests, partsMs } = await usage();
    done += requests / partsMs.length;
  }
  const usages: Usage[] = [];
  for (let run = 0; run < runs; run++) usages.push(await usage());
  return usages;
}

async function detailsOf(setting: Setting, name: string): Promise<Work> {
  return { paths: (await idsOf(setting, name)).map((id) => `/api/v1/${name}/${id}`), isLarge: false };
}

const pagesOf = (name: string): Work => ({ paths: [`/api/v1/${name}?perPage=${pageRows}`], isLarge: true });

async function idsOf({ cluster, workspace }: Setting, table: string): Promise<string[]> {
  const text = `select id from app.${table} where workspace_id = $1 order by id limit ${details.count}`;
  return (await rowsOf(cluster.primary.url(databaseName), text, [workspace.id])).map(([id]) => id as string);
}

async function measure(
  setting: Setting,
  arrangement: Arrangement,
  { rounds, seconds: length }: Options,
): Promise<{ details: Usage[]; pages: Usage[] }> {
  const [seconds, runs] = [Math.min(length, secondsMax), Math.min(rounds, roundsMax)];
  return {
    details: await worked(setting, arrangement, await detailsOf(setting, 'installaties'), seconds, runs),
    pages: await worked(setting, arrangement, pagesOf('werkbonnen'), seconds, runs),
  };
}

const middle = (usages: readonly Usage[], of: (usage: Usage) => number): number => median(usages.map(of));
/** Seconds of the processor for a thousand units, of which each request has some. */
const secondsFor = (cpuMs: number, { requests }: Usage, units: number, of: number): number =>
  (cpuMs / 1000 / (requests * units)) * of;

function throughputOf(
  measured: readonly { plan: Plan; details: Usage[]; pages: Usage[] }[],
  { seconds, rounds }: Options,
): Table {
  const rows = measured.map(({ plan, details: ofDetails, pages: ofPages }) => [
    nameOf(plan),
    figure(middle(ofDetails, ({ perSecond }) => perSecond)),
    figure(middle(ofDetails, (usage) => secondsFor(usage.gatewayMs, usage, 1, 1000))),
    figure(middle(ofDetails, (usage) => secondsFor(sum(usage.replicasMs), usage, 1, 1000))),
    plan.gateways * plan.workers > 1 ? figure(middle(ofDetails, ({ partsMs }) => balance(partsMs))) : '',
    plan.replicas > 1 ? figure(middle(ofDetails, ({ replicasMs }) => balance(replicasMs))) : '',
    figure(middle(ofPages, ({ perSecond }) => (perSecond * pageRows) / 1000)),
  ]);
  const note = `Details of installations on ${details.connections} connections, pages of 10,000 work orders on ${pages.connections}; medians of ${Math.min(rounds, roundsMax)} runs of ${Math.min(seconds, secondsMax)} s. All processes share the processors of one machine, so more of them do not add up to more here; the processor time for a unit and the balance are what a larger machine keeps. Balance: processor time of the least loaded process or replica against that of the most loaded.`;
  const head = [
    '',
    'details/s',
    'gateway CPU s/1,000',
    'replica CPU s/1,000',
    'balance, processes',
    'balance, replicas',
    '1,000 rows/s',
  ];
  return { title: 'More than one', note, head, rows };
}

function verdictsOf(measured: readonly { plan: Plan; details: Usage[] }[]): Verdict[] {
  const of = ({ gateways, workers, replicas }: Plan): Usage[] | undefined =>
    measured.find(({ plan }) => plan.gateways === gateways && plan.workers === workers && plan.replicas === replicas)
      ?.details;
  const cpu = (usages: Usage[]): number => middle(usages, (usage) => secondsFor(usage.gatewayMs, usage, 1, 1000));
  const [one, three, workers, pair] = [plans[0], plans[2], plans[3], plans[5]].map((plan) => of(plan as Plan));
  const even = (what: string, values: number): Verdict => ({
    what,
    value: values,
    goal: goals.balance,
    bound: 'at least',
    unit: '×',
  });
  return [
    ...(three
      ? [
          even(
            'Three replicas, details: least against most loaded',
            middle(three, ({ replicasMs }) => balance(replicasMs)),
          ),
        ]
      : []),
    ...(workers
      ? [
          even(
            'Two workers, details: least against most loaded',
            middle(workers, ({ partsMs }) => balance(partsMs)),
          ),
        ]
      : []),
    ...(pair
      ? [
          even(
            'Two gateways, details: least against most loaded',
            middle(pair, ({ partsMs }) => balance(partsMs)),
          ),
        ]
      : []),
    ...(one && workers
      ? [
          {
            what: 'Details by two workers against one process: gateway CPU',
            value: cpu(workers) / cpu(one),
            goal: goals.workers,
            bound: 'at most',
            unit: '×',
          } as const,
        ]
      : []),
  ];
}

/** Processor time for a unit of each kind of work, by one process and one replica. */
async function sizingOf(setting: Setting, arrangement: Arrangement, { seconds: length }: Options): Promise<Table> {
  const rows: string[][] = [];
  const add = async (name: string, work: Work, units: number, of: number): Promise<void> => {
    const [usage] = (await worked(setting, arrangement, work, Math.min(length, secondsMax), 1)) as [Usage];
    const ofUnit = [usage.gatewayMs, sum(usage.replicasMs)].map((ms) => figure(secondsFor(ms, usage, units, of)));
    rows.push([name, ...ofUnit, figure((usage.bytes / usage.requests / units / 1e6) * of)]);
  };
  for (const [name, what] of Object.entries(lists)) {
    const text = `select count(*) from app.${name} where workspace_id = $1`;
    const [[count] = []] = await rowsOf(setting.cluster.primary.url(databaseName), text, [setting.workspace.id]);
    const held = Math.min(pageRows, Number(count));
    await add(`1,000,000 ${what}, ${held.toLocaleString('en')} in a page`, pagesOf(name), held, 1_000_000);
  }
  for (const name of ['klanten', 'installaties', 'werkbonnen'] as const)
    await add(`1,000 details, ${lists[name]}`, await detailsOf(setting, name), 1, 1000);
  return {
    title: 'Sizing',
    note: 'One process and one replica: seconds of a processor for a unit of work, and the bytes that it sends, not compressed.',
    head: ['', 'gateway CPU, s', 'replica CPU, s', 'MB'],
    rows,
  };
}

const lists = {
  werkbonnen: 'work orders',
  logboeken: 'log entries',
  installaties: 'installations',
  klanten: 'customers',
} as const;
