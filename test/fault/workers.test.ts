import type { ChildProcess } from 'node:child_process';
import { mkdtempSync, readdirSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { Agent, get } from 'node:http';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { setTimeout as sleep } from 'node:timers/promises';
import { freePort } from '../../demo/cluster/ports.js';
import type { StatusReport } from '../../src/ops/status.js';
import { asAdmin } from '../../src/postgres/admin.js';
import type { Settings } from '../../src/settings.js';
import { apiClient } from '../support/client.js';
import { customerOf } from '../support/primary-side.js';
import { killGroup, type ServeProcess, serveProcess } from '../support/serve-process.js';
import { eventually, gatewayTest } from '../support/workspace.js';
import { created } from '../support/writes.js';

const test = gatewayTest().serial;

let served: ServeProcess;
let token: string;

test.before(async (t) => {
  const { database } = t.context;
  token = await database.token();
  const settings = { ...database.settings, logLevel: 'warn', headersTimeoutMs: 60_000 } as const; // idle connections stay
  // Workers that are all killed leave no listener behind from which their successors could inherit a random port.
  served = await serveProcess({ ...settings, webConcurrency: 2, port: await freePort() });
});
test.after.always(() => {
  for (const pid of children()) process.kill(pid, 'SIGCONT');
  return served.stop();
});

function children({ child }: Pick<ServeProcess, 'child'> = served): number[] {
  const list = readFileSync(`/proc/${child.pid}/task/${child.pid}/children`, 'utf8');
  return list.trim().split(/\s+/).filter(Boolean).map(Number);
}

/** A read on a connection of its own: its status, the code of its failure, or `never` after 20 s. */
function read(): Promise<number | string> {
  return new Promise((resolve) => {
    const headers = { authorization: `Bearer ${token}` };
    const url = `${served.url}/api/v1/klanten?perPage=1`;
    const request = get(url, { agent: new Agent(), headers, timeout: 20_000 }, (response) => {
      response.resume().once('close', () => resolve(response.statusCode as number));
    });
    request.once('timeout', () => resolve('never'));
    request.once('error', (error: NodeJS.ErrnoException) => resolve(String(error.code)));
  });
}

const ops = (path: string): Promise<Response> => fetch(served.opsUrl + path, { signal: AbortSignal.timeout(5000) });
const status = async (path: string): Promise<number> => (await ops(path)).status;

/** Requests counted by all workers, by the metrics of the parent. */
async function counted(): Promise<number> {
  const text = await (await ops('/metrics')).text();
  const counts = [...text.matchAll(/^gateway_request_seconds_count\{.*\} (\d+)$/gm)].map(([, n]) => Number(n));
  return counts.reduce((sum, n) => sum + n, 0);
}

interface Death {
  readonly msg: string;
  readonly pid: number;
  readonly workerPid: number;
  readonly restartMs: number;
  readonly signal: string;
  readonly silent: boolean;
}

function deaths({ log } = served): Death[] {
  const lines = log().split('\n');
  return lines.filter((line) => line.includes('"worker_died"')).map((line) => JSON.parse(line) as Death);
}

/** 0 for a process that has ended. */
function threads(pid: number): number {
  try {
    return readdirSync(`/proc/${pid}/task`).length;
  } catch {
    return 0;
  }
}

test('a write is answered while another worker is frozen, also when the parent counts for other clients', async (t) => {
  const { database } = t.context;
  const [reading, writing] = [await database.token(), await database.token()];
  // A limit this small is counted request by request, so the parent answers the worker all the time.
  const own = await serveProcess({ ...database.settings, webConcurrency: 2, rateLimitPerMinute: 200 });
  t.teardown(() => own.stop());
  const [frozen] = children(own) as [number];
  process.kill(frozen, 'SIGSTOP');
  let isOver = false;
  t.teardown(() => {
    isOver = true;
  });
  const statuses: number[] = [];
  const readsOn = async (): Promise<void> => {
    while (!isOver) {
      const headers = { authorization: `Bearer ${reading}` };
      statuses.push((await fetch(`${own.url}/api/v1/klanten?perPage=1`, { headers })).status);
      await sleep(100);
    }
  };
  const reads = readsOn();
  await eventually(t, 'reads', () => statuses.length > 3);
  const client = apiClient(`${own.url}/api/v1`, { token: writing });
  t.teardown(() => client.close());
  const body = { naam: 'beside a frozen worker', customerId: await customerOf(database) };
  for (let i = 0; i < 3; i++) {
    const answered = await Promise.race([created(client, body), sleep(3000, null, { ref: false })]);
    t.truthy(answered, 'the write is answered');
  }
  process.kill(frozen, 'SIGCONT');
  isOver = true;
  await reads;
  t.deepEqual([...new Set(statuses)], [200]);
});

test('a worker that dies while another still starts is replaced', async (t) => {
  const { settings } = t.context.database;
  const port = await freePort();
  let child: ChildProcess | undefined;
  const own = serveProcess(
    { ...settings, webConcurrency: 2, port },
    {
      onSpawn: (spawned) => {
        child = spawned;
      },
    },
  );
  own.catch(() => undefined);
  const pids = (): number[] => (child === undefined ? [] : children({ child }));
  t.teardown(() => killGroup(child?.pid as number));
  await eventually(t, 'two workers', () => pids().filter((pid) => threads(pid) > 1).length === 2);
  const [frozen, first] = pids() as [number, number];
  process.kill(frozen, 'SIGSTOP');
  const isServing = async (): Promise<boolean> =>
    (await fetch(`http://127.0.0.1:${port}/api/v1`).catch(() => null))?.status === 200;
  await eventually(t, 'the first worker', isServing, 30_000);
  process.kill(first, 'SIGKILL');
  await eventually(t, 'its successor', () => pids().length === 2 && !pids().includes(first));
  process.kill(frozen, 'SIGCONT');
  const { opsUrl } = await own;
  await eventually(t, 'two workers that report', async () => {
    const { workers } = (await (await fetch(`${opsUrl}/status.json`)).json()) as StatusReport;
    return workers?.reporting === 2;
  });
  t.false(pids().includes(first));
});

test('a worker that served is replaced at once, however many died; a start that fails is delayed', async (t) => {
  const { dataKeys, ...settings } = t.context.database.settings;
  const folder = mkdtempSync(join(tmpdir(), 'keys-'));
  t.teardown(() => rmSync(folder, { recursive: true }));
  const keys = join(folder, 'keys.json');
  writeFileSync(keys, dataKeys);
  const files = { dataKeysFile: keys } as Partial<Settings>;
  const own = await serveProcess({
    ...settings,
    ...files,
    logLevel: 'warn',
    webConcurrency: 2,
    port: await freePort(),
  });
  t.teardown(() => own.stop());
  const isComplete = async (): Promise<boolean> => {
    const { workers } = (await (await fetch(`${own.opsUrl}/status.json`)).json()) as StatusReport;
    return workers?.reporting === 2;
  };
  const killed: number[] = [];
  const kill = (pid: number): void => {
    killed.push(pid);
    process.kill(pid, 'SIGKILL');
  };
  for (let round = 0; round < 3; round++) {
    for (const pid of children(own)) kill(pid);
    await eventually(t, 'all their deaths', () => deaths(own).length === killed.length);
    await eventually(t, 'two workers', isComplete, 30_000);
  }
  t.deepEqual(new Set(deaths(own).map(({ restartMs }) => restartMs)), new Set([0]));
  t.deepEqual(
    deaths(own)
      .map(({ workerPid }) => workerPid)
      .sort(),
    killed.sort(),
  );
  t.true(deaths(own).every(({ pid }) => pid === own.child.pid));

  writeFileSync(keys, 'no keys');
  const [first, second] = children(own) as [number, number];
  kill(first);
  await eventually(t, 'a start that fails again', () => deaths(own).length === killed.length + 2, 30_000);
  t.true(
    deaths(own)
      .slice(-2)
      .every(({ restartMs }) => restartMs >= 500),
  );
  writeFileSync(keys, dataKeys);
  kill(second);
  await eventually(t, 'two workers again', isComplete, 30_000);
  t.is(deaths(own).find(({ workerPid }) => workerPid === second)?.restartMs, 0);
});

test('a worker that dies while a table is locked is replaced, and no request for other tables fails', async (t) => {
  const { database } = t.context;
  const own = await serveProcess({
    ...database.settings,
    logLevel: 'warn',
    webConcurrency: 2,
    port: await freePort(),
  });
  t.teardown(() => own.stop());
  await asAdmin(database.settings.adminUrl, async (app) => {
    await app.query('begin; lock table app.klanten in access exclusive mode; select pg_switch_wal()');
    const held = `select from pg_locks where mode = 'AccessExclusiveLock' and relation = 'app.klanten'::regclass`;
    await eventually(t, 'the lock on the replica', async () => (await database.replica.query(held)).rows.length > 0);
    for (const worker of children(own)) {
      process.kill(worker, 'SIGKILL');
      const isReplaced = async (): Promise<boolean> => {
        const { workers } = (await (await fetch(`${own.opsUrl}/status.json`)).json()) as StatusReport;
        return !children(own).includes(worker) && workers?.reporting === 2;
      };
      await eventually(t, 'its successor', isReplaced, 30_000);
    }
    const headers = { authorization: `Bearer ${token}`, connection: 'close' };
    for (let i = 0; i < 20; i++)
      t.is((await fetch(`${own.url}/api/v1/installaties?perPage=1`, { headers })).status, 200);
    await app.query('rollback');
    const isRead = async () => (await fetch(`${own.url}/api/v1/klanten?perPage=1`, { headers })).status === 200;
    await eventually(t, 'the view is checked', isRead, 20_000);
  });
});

test('a frozen worker is replaced, no client waits for it for ever, and counts do not fall', async (t) => {
  const answers: (number | string)[] = [];
  let isOver = false;
  const client = async (): Promise<void> => {
    while (!isOver) {
      answers.push(await read());
      await sleep(5);
    }
  };
  const clients = Array.from({ length: 8 }, client);
  await eventually(t, 'requests', () => answers.length > 50);
  const before = await counted();
  t.true(before > 0);
  const [frozen] = children() as [number];
  process.kill(frozen, 'SIGSTOP');
  t.true((await counted()) >= before, 'while it is frozen');
  await eventually(t, 'a new worker', () => deaths().length === 1 && children().length === 2, 30_000);
  t.false(children().includes(frozen));
  t.like(deaths()[0], { signal: 'SIGKILL', silent: true });
  t.true((await counted()) >= before, 'when it is gone');
  t.regex(await (await ops('/metrics')).text(), /^gateway_worker_restarts_total 1$/m);
  isOver = true;
  await Promise.all(clients);
  t.false(answers.includes('never'), 'every request was answered, or its connection reset');
  t.true(answers.filter((answer) => answer !== 200).length <= 16, answers.filter((a) => a !== 200).join());
});

test('while every worker is frozen /readyz says so at once, and /livez when replacements do not help', async (t) => {
  const freezing = setInterval(() => {
    // With one thread it is a fork before its exec, for which the parent waits.
    for (const pid of children()) if (threads(pid) > 1) process.kill(pid, 'SIGSTOP');
  }, 20);
  t.teardown(() => clearInterval(freezing));
  await eventually(t, '503 of /readyz', async () => (await status('/readyz')) === 503, 4000);
  t.is(await status('/livez'), 200);
  t.like(await (await ops('/readyz')).json(), { reasons: ['no worker'] });
  await eventually(t, '503 of /livez', async () => (await status('/livez')) === 503, 30_000);
  clearInterval(freezing);
  for (const pid of children()) process.kill(pid, 'SIGCONT');
  await eventually(t, '200 of /livez', async () => (await status('/livez')) === 200, 30_000);
  await eventually(t, '200 of /readyz', async () => (await status('/readyz')) === 200, 30_000);
  await eventually(t, 'reads', async () => (await read()) === 200, 10_000);
});
