import { resolve } from 'node:path';
import { parseArgs } from 'node:util';
import { createsCase } from './cases/creates.js';
import { exportCase } from './cases/export.js';
import { pagesCase } from './cases/pages.js';
import { requestsCase } from './cases/requests.js';
import { startCase } from './cases/start.js';
import { syncCase } from './cases/sync.js';
import { togetherCase } from './cases/together.js';
import { needWrk } from './load.js';
import { type Figure, type Goal, type Measured, markdown, type Options, type Table, writePage } from './report.js';
import { runScale, runScaleSync } from './scale/run.js';
import { type Stage, startStage } from './stage.js';

interface Case {
  readonly goals: Readonly<Record<string, Goal>>;
  readonly measure: (stage: Stage, options: Options) => Promise<Measured>;
}

const atMost = (value: number, unit: Goal['unit']): Goal => ({ bound: 'at most', value, unit });
const atLeast = (value: number, unit: Goal['unit'] = '×'): Goal => ({ bound: 'at least', value, unit });
const ofPage = (name: string, times: number): Case['goals'] => ({
  [`${name} in one page against COPY: time`]: atMost(times, '×'),
  [`${name}: p99 of the event loop's delay`]: atMost(10, 'ms'),
  [`${name}: gateway memory`]: atMost(150, 'MB'),
});

/** The cases of a run in their order, and the floors that a release keeps. */
const cases: Readonly<Record<string, Case>> = {
  start: {
    measure: startCase,
    goals: {
      'Start of serve to the first 200': atMost(600, 'ms'),
      'Memory of serve at rest': atMost(90, 'MB'),
      'Start of serve with 100 resources to the first 200': atMost(2000, 'ms'),
      'Memory of serve with 100 resources at rest': atMost(250, 'MB'),
    },
  },
  pages: {
    measure: pagesCase,
    goals: {
      ...ofPage('100,000 work orders', 1.1),
      '100,000 work orders, four of eleven members against all: rows/s': atLeast(3),
      ...ofPage('10,000 customers', 4),
      ...ofPage('100,000 log entries', 1.6),
    },
  },
  requests: {
    measure: requestsCase,
    goals: {
      'Detail against bare node:http + pg: requests/s': atLeast(0.85),
      'Detail against Platformatic DB: requests/s': atLeast(1.9),
      'List of 100 against bare node:http + pg: requests/s': atLeast(1),
    },
  },
  creates: {
    measure: createsCase,
    goals: { 'Creates against the same statements, pipelined: creates/s': atLeast(0.75) },
  },
  sync: {
    measure: syncCase,
    goals: {
      'Sync pass over 200,000 work orders, ten changed: time': atMost(600, 'ms'),
      "Digest of 200,000 work orders: replica's processors": atMost(1500, 'ms'),
    },
  },
  export: {
    measure: exportCase,
    goals: {
      'Export of 200,000 work orders against COPY: time': atMost(1.3, '×'),
      'Export of 200,000 work orders: memory': atMost(200, 'MB'),
    },
  },
  together: {
    measure: togetherCase,
    goals: { 'Details beside eight pages of 10,000 against alone: p99': atMost(4, '×') },
  },
};
/** Runs on servers of its own, and only on request. */
const syncGoals = { 'Sync of all work orders: longest statement': atMost(1000, 'ms') };
const scaleGoals = {
  ...syncGoals,
  'Slowest first page of all combinations of filters against the small set: time': atMost(1.3, '×'),
  'Slowest last page of all combinations of filters against the small set: time': atMost(1.3, '×'),
  'Walk over all work orders against COPY: time': atMost(1.15, '×'),
  'Walk over all work orders: last pages against the first: time': atMost(1.2, '×'),
  'Walk over all work orders: gateway memory': atMost(150, 'MB'),
  'Export of all work orders against COPY: time': atMost(1.3, '×'),
  'Export of all work orders: memory': atMost(200, 'MB'),
  'Walk over all log entries against COPY: time': atMost(1.6, '×'),
  'Walk over all log entries: last pages against the first: time': atMost(1.2, '×'),
  'Walk over all log entries: gateway memory': atMost(150, 'MB'),
};

const help = `Usage: npm run bench -- [options]

Starts a primary, a replica with 200,000 work orders and the gateway, measures them in turns with their alternatives, and prints a page
of figures and goals. Needs Linux, wrk and psql; a whole run takes some fifteen minutes.

Options:
  --only CASE      One of ${Object.keys(cases).join(', ')}, several with commas; or scale: one workspace with 5,000,000 work orders and
                   10,000,000 log entries, which takes a quarter of an hour and 20 GB of disk; or scale-sync: its sync and export alone
  --seconds N      Length of one load run; default 4
  --rounds N       How often each contender gets its turn; default 5
  --work-orders N  Another number of work orders for scale
  --out DIR        Writes the goals to performance.md there, or scale.md; docs/understand/evidence has those of this version
  --dir DIR        Keeps the data in DIR between runs
  --help           This text
`;

async function main(): Promise<void> {
  const { values } = parseArgs({
    options: {
      only: { type: 'string' },
      seconds: { type: 'string', default: '4' },
      rounds: { type: 'string', default: '5' },
      'work-orders': { type: 'string', default: '5000000' },
      out: { type: 'string' },
      dir: { type: 'string' },
      help: { type: 'boolean', default: false },
    },
  });
  if (values.help) return void process.stdout.write(help);
  const options = {
    seconds: count('seconds', values.seconds, 1, 999),
    rounds: count('rounds', values.rounds, 1, 999),
    workOrders: count('work-orders', values['work-orders'], 10_000, 99_999_999),
  };
  const isScale = values.only?.startsWith('scale') === true;
  const runLarge = values.only === 'scale-sync' ? runScaleSync : runScale;
  const names = values.only?.split(',') ?? Object.keys(cases);
  const unknown = ['scale', 'scale-sync'].includes(values.only ?? '')
    ? undefined
    : names.find((name) => cases[name] === undefined);
  if (unknown !== undefined)
    throw new TypeError(`--only takes ${Object.keys(cases).join(', ')}, scale or scale-sync, not "${unknown}".`);
  const startedMs = performance.now();
  const { goals, ...found } = isScale
    ? { goals: values.only === 'scale' ? scaleGoals : syncGoals, ...(await runLarge(options.workOrders)), faults: [] }
    : await run(names, options, values.dir);
  const text = markdown({ goals, ...found });
  process.stdout.write(`\n${text}`);
  if (values.out !== undefined && values.only === 'scale') writePage(resolve(values.out), scalePage, text);
  else if (values.out !== undefined) writePage(resolve(values.out), page, markdown({ goals, ...found, tables: [] }));
  process.stderr.write(`Took ${Math.round((performance.now() - startedMs) / 1000)} s.\n`);
}

async function run(names: readonly string[], options: Options, dir: string | undefined) {
  needWrk();
  const [goals, figures]: [Record<string, Goal>, Record<string, Figure>] = [{}, {}];
  const [tables, faults]: [Table[], string[]] = [[], []];
  const stage = await startStage(dir === undefined ? undefined : resolve(dir));
  for (const signal of ['SIGINT', 'SIGTERM'] as const)
    process.once(signal, () => void stage.stop().finally(() => process.exit(1)));
  try {
    for (const name of names) {
      const { measure, goals: floors } = cases[name] as Case;
      process.stderr.write(`${name}\n`);
      Object.assign(goals, floors);
      try {
        const measured = await measure(stage, options);
        Object.assign(figures, measured.figures);
        tables.push(...measured.tables);
      } catch (error) {
        process.exitCode = 1;
        faults.push(`The case ${name} broke off: ${(error as Error).message}`);
      }
    }
    return { goals, figures, tables, faults, postgresVersion: stage.postgresVersion };
  } finally {
    await stage.stop();
  }
}

function count(name: string, value: string, least: number, most: number): number {
  if (!/^\d{1,8}$/.test(value) || Number(value) < least || Number(value) > most)
    throw new TypeError(`--${name} must be a whole number from ${least} to ${most}.`);
  return Number(value);
}

const page = {
  file: 'performance.md',
  title: 'Performance',
  about: `Written by \`npm run bench -- --out docs/understand/evidence\`. A primary, a streaming replica with 200,000 work orders, the gateway and its alternatives are
processes of one machine and take turns, so the ratios say more than the figures. The command prints rates, latencies, memory and processor time of each.

- **gateway**: all that it does for every request: token, rate limit, workspace guard, conditional headers, metrics, read-your-writes. Only the rate
  limit is lifted, and nothing but warnings is logged.
- **bare node:http + pg**: two pipelined connections that run the gateway's own prepared statements and send its headers as constants; a list is one
  value that PostgreSQL's \`json_agg\` makes. A gateway in Node.js can hardly be faster.
- **Platformatic DB**: REST over the table itself, without authentication, a pool of 8.`,
};

const scalePage = {
  file: 'scale.md',
  title: 'Scale',
  about: `Written by \`npm run bench -- --only scale --out docs/understand/evidence\`. One workspace with 5,000,000 work orders and 10,000,000 log entries over eight years in
ten yearly partitions, beside a workspace with ten rows of each list and a thousand with a hundred; and a small set of 10,000 work orders of the same kind
in a database of its own, with a gateway of its own on the same replica.`,
};

try {
  await main();
} catch (error) {
  process.stderr.write(`${error instanceof TypeError ? error.message : (error as Error).stack}\n`);
  process.exitCode = 1;
}
