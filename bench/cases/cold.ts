import { setTimeout as sleep } from 'node:timers/promises';
import { fileURLToPath } from 'node:url';
import { nodeEnvironment, nodeFlags } from '../../bundle/node-flags.js';
import { freePort } from '../../demo/cluster/ports.js';
import { startChild } from '../child.js';
import { gatedServers } from '../gated-servers.js';
import type { Options } from '../options.js';
import { barePeer } from '../peers.js';
import { cpuMsOf, environmentOf, rssMbOf } from '../process-cost.js';
import { type CaseResult, figure, type Table } from '../result.js';
import { alternate, median } from '../rounds.js';
import type { Stage } from '../stage.js';

const goals = { firstMs: 500, idleMb: 90 };
/** When the memory of a process is read after its first answer: V8 gives back what only the start used some ten seconds after it. */
const soonMs = 3000;
const restMs = 30_000;
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
}

/** Resident memory of a process that has answered one request: after `soonMs`, and at rest after `restMs`. */
interface Memory {
  readonly soonMb: number;
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
  const run = <T>(program: Program, measure: Measure<T>): Promise<T> =>
    program.startsBeforePostgres ? startBefore(program, stage.token, measure) : start(program, stage.token, measure);
  // Reads files and PostgreSQL's catalogs into memory as well. Memory does not depend on what runs beside it.
  const memories = await Promise.all(programs.map((program) => run(program, memoryOf)));
  const runs = await alternate(programs, rounds, (program) => run(program, (_, started) => started));
  const middle = (each: readonly Start[], of: keyof Start): number => median(each.map((run) => run[of]));
  const [ours = [], waiting = []] = runs;
  const table: Table = {
    title: 'Start and rest',
    note: `Medians of ${rounds} starts. PostgreSQL answers already; of a process that was started ${waitMs / 1000} s before, the time from the moment at which PostgreSQL can be reached. Memory is that of one process of each, ${soonMs / 1000} and ${restMs / 1000} s after its first answer, the program of Node included; V8 collects in between.`,
    head: [
      '',
      'start to first 200, ms',
      'CPU until then, ms',
      `memory after ${soonMs / 1000} s, MB`,
      `memory at rest, after ${restMs / 1000} s, MB`,
    ],
    rows: programs.map(({ name }, i) => {
      const each = runs[i] ?? [];
      const { soonMb, idleMb } = memories[i] as Memory;
      return [name, ...[middle(each, 'firstMs'), middle(each, 'cpuMs'), soonMb, idleMb].map(figure)];
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
      {
        what: 'Memory of serve at rest',
        value: memories[0]?.idleMb ?? Number.NaN,
        goal: goals.idleMb,
        bound,
        unit: 'MB',
      },
    ],
    tables: [table],
    skipped: [],
  };
}

/** Takes a figure of a process that has just answered its first request. */
type Measure<T> = (pid: number, start: Start) => T | Promise<T>;

async function memoryOf(pid: number): Promise<Memory> {
  await sleep(soonMs);
  const soonMb = rssMbOf(pid);
  await sleep(restMs - soonMs);
  return { soonMb, idleMb: rssMbOf(pid) };
}

async function startBefore<T>(program: Program, token: string, measure: Measure<T>): Promise<T> {
  const env = program.env(0);
  const gates = await gatedServers(servers.flatMap((name) => (env[name] as string).split(' ')));
  const gated = servers.map((name) => [name, (env[name] as string).split(' ').map(gates.urlOf).join(' ')]);
  try {
    const behindGates = { ...program, env: () => ({ ...env, ...Object.fromEntries(gated) }) };
    return await start(behindGates, token, measure, gates.open);
  } finally {
    gates.close();
  }
}

/** `open` lets PostgreSQL answer, after a while; without it PostgreSQL answers already. */
async function start<T>(
  { name, args, env, path }: Program,
  token: string,
  measure: Measure<T>,
  open?: () => Promise<void>,
): Promise<T> {
  const port = await freePort();
  let startedMs = performance.now();
  // Node reads the certificates of that setting before anything else, which takes 50 to 80 ms; nothing here speaks TLS.
  const child = startChild(process.execPath, args(port), { ...env(port), NODE_EXTRA_CA_CERTS: undefined });
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
    return await measure(child.pid, { firstMs, cpuMs: cpuMsOf(child.pid) });
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
