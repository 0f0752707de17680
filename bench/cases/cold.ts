import { setTimeout as sleep } from 'node:timers/promises';
import { fileURLToPath } from 'node:url';
import { freePort } from '../../src/demo/cluster/ports.js';
import { nodeEnvironment, nodeFlags } from '../../src/node-flags.js';
import { startChild } from '../child.js';
import { gatedServers } from '../gated-servers.js';
import type { Options } from '../options.js';
import { barePeer } from '../peers.js';
import { cpuMsOf, environmentOf, rssMbOf } from '../process-cost.js';
import { type CaseResult, figure, type Table } from '../result.js';
import { alternate, median } from '../rounds.js';
import type { Stage } from '../stage.js';

const goals = { firstMs: 500, idleMb: 90 };
/** How long a started process rests before its memory counts. */
const restMs = 3000;
const startMsMax = 60_000;
/** How long a process that is started before PostgreSQL waits for it. */
const waitMs = 3000;
const servers = ['REPLICA_URLS', 'PRIMARY_URLS'];
const settings = [...servers, 'DATA_KEYS', 'RESOURCES_DIR'];

interface Start {
  /** From the start of the process, or from the moment at which PostgreSQL answers a waiting one, to the end of its first whole 200. */
  readonly firstMs: number;
  /** Processor time until then. */
  readonly cpuMs: number;
  readonly idleMb: number;
}

/** A process that is started to be measured: its arguments of Node, settings, and the URL of its first answer. */
interface Program {
  readonly name: string;
  readonly args: (port: number) => readonly string[];
  readonly env: (port: number) => NodeJS.ProcessEnv;
  readonly path: string;
  readonly startsBeforePostgres?: boolean;
}

/** The start of `serve`, to the first read that is answered, and its memory at rest; beside the bare server's. */
export async function coldCase(stage: Stage, { rounds }: Options): Promise<CaseResult> {
  const inForce = environmentOf(stage.gatewayPid);
  const program = fileURLToPath(new URL('../../bundle/gateway.cjs', import.meta.url)); // as the image runs it
  const bare = barePeer(stage);
  const gateway: Program = {
    name: 'gateway',
    args: (port) => [...nodeFlags, program, 'serve', '--port', String(port), '--ops-port', '0'],
    env: () => ({ ...nodeEnvironment, NODE_ENV: 'production', LOG_LEVEL: 'warn', ...pick(inForce, settings) }),
    path: '/api/v1/installaties?perPage=1',
  };
  const programs: readonly Program[] = [
    gateway,
    { ...gateway, name: 'gateway, started before PostgreSQL', startsBeforePostgres: true },
    {
      name: bare.name,
      args: () => [fileURLToPath(new URL('../peers/bare.js', import.meta.url))],
      env: (port) => ({ NODE_ENV: 'production', PORT: String(port), ...bare.launch(port, '').env }),
      path: '/installaties',
    },
  ];
  const measure = (program: Program): Promise<Start> =>
    program.startsBeforePostgres ? startBefore(program, stage.token) : start(program, stage.token);
  for (const program of programs) await measure(program); // reads its files and PostgreSQL's catalogs into memory; not counted
  const runs = await alternate(programs, rounds, measure);
  const middle = (each: readonly Start[], of: keyof Start): number => median(each.map((run) => run[of]));
  const [ours = [], waiting = []] = runs;
  const table: Table = {
    title: 'Start and rest',
    note: `Medians of ${rounds} starts. PostgreSQL answers already; of a process that was started ${waitMs / 1000} s before, the time from the moment at which PostgreSQL can be reached. Memory is that of the process ${restMs / 1000} s after its first answer, the program of Node included.`,
    head: ['', 'start to first 200, ms', 'CPU until then, ms', 'memory at rest, MB'],
    rows: programs.map(({ name }, i) => {
      const each = runs[i] ?? [];
      return [name, ...(['firstMs', 'cpuMs', 'idleMb'] as const).map((of) => figure(middle(each, of)))];
    }),
  };
  const bound = 'at most';
  return {
    verdicts: [
      {
        what: 'Start of serve to the first 200',
        value: middle(ours, 'firstMs'),
        goal: goals.firstMs,
        bound,
        unit: 'ms',
      },
      {
        what: 'PostgreSQL reachable to the first 200 of a waiting serve',
        value: middle(waiting, 'firstMs'),
        goal: goals.firstMs,
        bound,
        unit: 'ms',
      },
      { what: 'Memory of serve at rest', value: middle(ours, 'idleMb'), goal: goals.idleMb, bound, unit: 'MB' },
    ],
    tables: [table],
    skipped: [],
  };
}

async function startBefore(program: Program, token: string): Promise<Start> {
  const env = program.env(0);
  const gates = await gatedServers(servers.flatMap((name) => (env[name] as string).split(' ')));
  const gated = servers.map((name) => [name, (env[name] as string).split(' ').map(gates.urlOf).join(' ')]);
  try {
    return await start({ ...program, env: () => ({ ...env, ...Object.fromEntries(gated) }) }, token, gates.open);
  } finally {
    gates.close();
  }
}

/** `open` lets PostgreSQL answer, after a while; without it PostgreSQL answers already. */
async function start({ name, args, env, path }: Program, token: string, open?: () => Promise<void>): Promise<Start> {
  const port = await freePort();
  let startedMs = performance.now();
  const child = startChild(process.execPath, args(port), env(port));
  try {
    if (open !== undefined) {
      await sleep(waitMs);
      await open();
      startedMs = performance.now();
    }
    const url = `http://127.0.0.1:${port}${path}`;
    while (!(await answers(url, token))) {
      if (!child.running) throw new Error(`${name} ended before it served.`);
      if (performance.now() - startedMs > startMsMax) throw new Error(`${name} does not answer.`);
      await sleep(5);
    }
    const firstMs = performance.now() - startedMs;
    const cpuMs = cpuMsOf(child.pid);
    await sleep(restMs);
    return { firstMs, cpuMs, idleMb: rssMbOf(child.pid) };
  } finally {
    await child.stop();
  }
}

async function answers(url: string, token: string): Promise<boolean> {
  try {
    const response = await fetch(url, { headers: { authorization: `Bearer ${token}` } });
    await response.arrayBuffer();
    return response.status === 200;
  } catch {
    return false; // it does not listen yet
  }
}

function pick(from: NodeJS.ProcessEnv, names: readonly string[]): NodeJS.ProcessEnv {
  return Object.fromEntries(names.map((name) => [name, from[name]]));
}
