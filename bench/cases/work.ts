import { randomUUID } from 'node:crypto';
import { mkdtempSync, readFileSync, rmSync } from 'node:fs';
import { Agent, type RequestOptions, request } from 'node:http';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { setTimeout as sleep } from 'node:timers/promises';
import { fileURLToPath } from 'node:url';
import { nodeFlags } from '../../bundle/node-flags.js';
import { freePort } from '../../demo/cluster/ports.js';
import { startChild } from '../child.js';
import type { Work } from '../count-work.js';
import { barePeer } from '../peers.js';
import { environmentOf } from '../process-cost.js';
import { type CaseResult, figure, type Table } from '../result.js';
import { rowsOf, type Stage } from '../stage.js';

const connections = 32;
/** Most code is compiled by then, so that the compiler's objects do not count. */
const warmUpRequests = 6000;
const requests = 4000;
const startMsMax = 20_000;
const settings = [
  'REPLICA_URLS',
  'PRIMARY_URLS',
  'DATA_KEYS',
  'RESOURCES_DIR',
  'RATE_LIMIT_PER_MINUTE',
  'WRITES_PER_MINUTE',
];

interface Server {
  readonly name: string;
  readonly args: readonly string[];
  readonly env: NodeJS.ProcessEnv;
  readonly headers: Readonly<Record<string, string>>;
  /** Kinds of requests; `n` is the number of the request. */
  readonly kinds: Readonly<Record<string, (n: number) => Ask>>;
}

interface Ask {
  readonly method?: string;
  readonly path: string;
  readonly headers?: Readonly<Record<string, string>>;
  readonly body?: string;
}

/** The work of V8 for a request: figures that do not depend on how busy the machine is. */
export async function workCase(stage: Stage): Promise<CaseResult> {
  const text = 'select id, klant_id from app.installaties where workspace_id = $1 order by id limit 1000';
  const rows = await rowsOf(stage.replicaUrl, text, [stage.workspace]);
  const idOf = (n: number): string => rows[n % rows.length]?.[0] as string;
  const create = (n: number): Ask => ({
    method: 'POST',
    path: '/api/v1/installaties',
    headers: { 'content-type': 'application/json', 'idempotency-key': randomUUID() },
    body: JSON.stringify({ customerId: rows[n % rows.length]?.[1], naam: 'Koelcel' }),
  });
  const inForce = environmentOf(stage.gatewayPid);
  const bare = barePeer(stage);
  const servers: Server[] = [
    {
      name: 'gateway',
      args: [fileURLToPath(new URL('../../bundle/gateway.cjs', import.meta.url)), 'serve', '--ops-port', '0'],
      env: { LOG_LEVEL: 'warn', ...Object.fromEntries(settings.map((name) => [name, inForce[name]])) },
      headers: { authorization: `Bearer ${stage.token}` },
      kinds: {
        detail: (n) => ({ path: `/api/v1/installaties/${idOf(n)}` }),
        'list of 100': () => ({ path: '/api/v1/installaties?perPage=100' }),
        create,
      },
    },
    {
      name: bare.name,
      args: [fileURLToPath(new URL('../peers/bare.js', import.meta.url))],
      env: { ...bare.launch(0, '').env },
      headers: bare.headers,
      kinds: {
        detail: (n) => ({ path: bare.detail(idOf(n)) }),
        'list of 100': () => ({ path: bare.list.installaties }),
      },
    },
  ];
  const counted: (readonly string[])[] = [];
  for (const server of servers)
    for (const [kind, ask] of Object.entries(server.kinds)) {
      process.stderr.write(`  ${server.name}, ${kind}\n`);
      const { bytes, ...rest } = await workOf(server, ask);
      const each = [bytes / 1000, rest.promises, rest.microtasks, rest.ticks].map((sum) => figure(sum / requests));
      counted.push([`${server.name}, ${kind}`, ...each]);
    }
  const table: Table = {
    title: 'Work for a request',
    note: `Per request, of ${requests} over ${connections} connections, after ${warmUpRequests} that warm up: what JavaScript allocates, by V8's sampling profiler, and what async_hooks counts in a second run. The bare server reads no token and checks nothing.`,
    head: ['', 'allocated, KB', 'promises', 'microtasks', 'ticks'],
    rows: counted,
  };
  return { verdicts: [], tables: [table], skipped: [] };
}

async function workOf({ name, args, env, headers }: Server, ask: (n: number) => Ask): Promise<Work> {
  const folder = mkdtempSync(join(tmpdir(), 'gateway-bench-work-'));
  const file = join(folder, 'work.json');
  const port = await freePort();
  const preload = ['--import', new URL('../count-work.js', import.meta.url).href];
  const child = startChild(process.execPath, [...nodeFlags, ...preload, ...args], {
    ...env,
    NODE_ENV: 'production',
    PORT: String(port),
    WORK_FILE: file,
  });
  const agent = new Agent({ keepAlive: true, maxSockets: connections });
  const send = (n: number): Promise<void> => {
    const { body = '', ...rest } = ask(n);
    const length = body === '' ? {} : { 'content-length': String(Buffer.byteLength(body)) };
    const all = { ...rest.headers, ...headers, ...length };
    return answered({ ...rest, headers: all, host: '127.0.0.1', port, agent }, body);
  };
  const load = async (count: number): Promise<void> => {
    let n = 0;
    const repeat = async (): Promise<void> => {
      while (n < count) await send(n++);
    };
    await Promise.all(Array.from({ length: connections }, repeat));
  };
  const signal = async (): Promise<void> => {
    process.kill(child.pid, 'SIGUSR2');
    await sleep(200); // it is handled in a later turn of the process's event loop
  };
  try {
    for (const deadline = Date.now() + startMsMax; ; await sleep(50)) {
      const error = await send(0).then(
        () => null,
        ({ message }: Error) => message,
      );
      if (error === null) break;
      if (!child.running || Date.now() > deadline) throw new Error(`${name} does not answer: ${error}`);
    }
    await load(warmUpRequests);
    await signal();
    await load(requests);
    await signal();
    await load(requests);
    await signal();
    return JSON.parse(readFileSync(file, 'utf8')) as Work;
  } finally {
    agent.destroy();
    await child.stop();
    rmSync(folder, { recursive: true, force: true });
  }
}

/** Rejects unless the answer is a success. */
function answered(options: RequestOptions, body: string): Promise<void> {
  return new Promise((resolve, reject) => {
    request(options, (response) => {
      const { statusCode = 0 } = response;
      response.resume().once('end', () => {
        if (statusCode >= 200 && statusCode < 300) resolve();
        else reject(new Error(`${options.method ?? 'GET'} ${options.path} was answered ${statusCode}.`));
      });
    })
      .once('error', reject)
      .end(body);
  });
}
