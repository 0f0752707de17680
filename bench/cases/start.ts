import { setTimeout as sleep } from 'node:timers/promises';
import { fileURLToPath } from 'node:url';
import { nodeEnvironment, nodeFlags } from '../../bundle/node-flags.js';
import { freePort } from '../../demo/cluster/ports.js';
import { cpuMsOf, environmentOf, rssMbOf, startChild } from '../processes.js';
import type { Options } from '../report.js';
import { figure, type Measured } from '../report.js';
import { alternate, middle } from '../rounds.js';
import type { Stage } from '../stage.js';

/** When the memory of a process is read after its first answer: V8 gives back what only the start used some ten seconds after it. */
const restMs = 30_000;
const startMsMax = 60_000;
const settings = ['REPLICA_URLS', 'PRIMARY_URLS', 'DATA_KEYS', 'WALL_KEY', 'RESOURCES_DIR'];
/** As the image runs it. */
const bundle = fileURLToPath(new URL('../../bundle/gateway.cjs', import.meta.url));

interface Start {
  /** From the start of the process to the end of its first whole 200. */
  readonly firstMs: number;
  /** Processor time until then. */
  readonly cpuMs: number;
  readonly idleMb: number;
}

/** The start of `serve`, to the first read that is answered, and its memory at rest. */
export async function startCase(stage: Stage, { rounds }: Options): Promise<Measured> {
  const idle = await start(stage, restMs); // Reads files and PostgreSQL's catalogs into memory as well.
  const [starts = []] = await alternate([stage], rounds, (each) => start(each, 0));
  const figures = [middle(starts, ({ firstMs }) => firstMs), middle(starts, ({ cpuMs }) => cpuMs), idle.idleMb];
  return {
    figures: { 'Start of serve to the first 200': figures[0] as number, 'Memory of serve at rest': idle.idleMb },
    tables: [
      {
        title: 'Start and rest',
        note: `Medians of ${rounds} starts; PostgreSQL answers already. Memory is read ${restMs / 1000} s after the first answer, the program of Node included.`,
        head: ['', 'start to first 200, ms', 'CPU until then, ms', 'memory at rest, MB'],
        rows: [['gateway', ...figures.map(figure)]],
      },
    ],
  };
}

async function start({ gatewayPid, token }: Stage, rest: number): Promise<Start> {
  const inForce = environmentOf(gatewayPid);
  const port = await freePort();
  const startedMs = performance.now();
  const child = startChild(
    process.execPath,
    [...nodeFlags, bundle, 'serve', '--port', String(port), '--ops-port', '0'],
    {
      ...nodeEnvironment,
      NODE_ENV: 'production',
      LOG_LEVEL: 'warn',
      ...Object.fromEntries(settings.map((name) => [name, inForce[name]])),
      // Node reads the certificates of that setting before anything else, which takes 50 to 80 ms; nothing here speaks TLS.
      NODE_EXTRA_CA_CERTS: undefined,
    },
  );
  try {
    while (!(await answers(`http://127.0.0.1:${port}/api/v1/installaties?perPage=1`, token))) {
      if (!child.running) throw new Error('serve ended before it served.');
      if (performance.now() - startedMs > startMsMax) throw new Error('serve does not answer.');
      await sleep(5);
    }
    const firstMs = performance.now() - startedMs;
    const cpuMs = cpuMsOf(child.pid);
    await sleep(rest);
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
