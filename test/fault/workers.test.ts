import type { ChildProcess } from 'node:child_process';
import { once } from 'node:events';
import { cpSync, mkdtempSync, readdirSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { Agent, type IncomingMessage, request } from 'node:http';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import type { Readable } from 'node:stream';
import { setTimeout as sleep } from 'node:timers/promises';
import type { ExecutionContext } from 'ava';
import { freePort } from '../../demo/cluster/ports.js';
import { runAsAdmin } from '../../src/postgres/admin.js';
import type { StatusReport } from '../../src/serve/ops/status.js';
import type { Settings } from '../../src/settings.js';
import { apiClient } from '../support/client.js';
import { limitMs } from '../support/patience.js';
import { customerOf } from '../support/primary-side.js';
import { killGroup, type ServeOptions, type ServeProcess, serveProcess } from '../support/serve-process.js';
import { eventually, gatewayTest, type TestContext } from '../support/workspace.js';
import { created } from '../support/writes.js';

const test = gatewayTest().serial;

let served: ServeProcess;
let token: string;
const folder = mkdtempSync(join(tmpdir(), 'workers-'));
const keys = join(folder, 'keys');
const definitions = join(folder, 'definitions');

test.before(async (t) => {
  const { database } = t.context;
  token = await database.token();
  const { dataKeys, ...settings } = database.settings;
  writeFileSync(keys, dataKeys);
  cpSync(settings.resourcesDir || 'config/resources', definitions, { recursive: true });
  const files = { dataKeysFile: keys, resourcesDir: definitions } as Partial<Settings>;
  const patience = { headersTimeoutMs: 60_000, notReadyMs: 2000, fitnessIntervalMs: 3000, logLevel: 'info' } as const; // idle connections stay
  // Workers that are all killed leave no listener behind from which their successors could inherit a random port.
  served = await serveProcess({ ...settings, ...files, ...patience, webConcurrency: 2, port: await freePort() });
});
test.after.always(() => {
  killGroup(served.child.pid as number);
  rmSync(folder, { recursive: true });
});

/** Serves with two workers of its own until the end of the test. */
async function serveTwo(t: ExecutionContext<TestContext>, options?: ServeOptions): Promise<ServeProcess> {
  const { settings } = t.context.database;
  const two = { ...settings, logLevel: 'info', webConcurrency: 2, port: await freePort() } as const;
  const own = await serveProcess(two, options);
  t.teardown(() => killGroup(own.child.pid as number));
  return own;
}

function children({ child }: Pick<ServeProcess, 'child'> = served): number[] {
  const list = readFileSync(`/proc/${child.pid}/task/${child.pid}/children`, 'utf8');
  return list.trim().split(/\s+/).filter(Boolean).map(Number);
}

interface Answer {
  readonly status: number;
  readonly headers: Readonly<Record<string, string | string[] | undefined>>;
  readonly body: string;
}

function send(
  path: string,
  options: { method?: string; headers?: Record<string, string>; body?: string; agent?: Agent; by?: ServeProcess } = {},
): Promise<Answer> {
  return new Promise((resolve, reject) => {
    const headers = { authorization: `Bearer ${token}`, ...options.headers };
    const { agent = false, by = served, method = 'GET' } = options;
    const outgoing = request(`${by.url}/api/v1${path}`, { agent, method, headers, timeout: 20_000 }, (response) => {
      let body = '';
      response.on('data', (chunk: Buffer) => (body += chunk.toString()));
      response.on('close', () => resolve({ status: response.statusCode as number, headers: response.headers, body }));
    });
    outgoing.on('timeout', () => outgoing.destroy(Object.assign(new Error(), { code: 'never' })));
    outgoing.on('error', reject);
    outgoing.end(options.body);
  });
}

function read(): Promise<number | string> {
  return send('/klanten?perPage=1').then(
    ({ status }) => status,
    ({ code }: NodeJS.ErrnoException) => String(code),
  );
}

const ops = (path: string): Promise<Response> => fetch(served.opsUrl + path, { signal: AbortSignal.timeout(5000) });
const status = async (path: string): Promise<number> => (await ops(path)).status;

async function counted(): Promise<number> {
  const text = await (await ops('/metrics')).text();
  const counts = [...text.matchAll(/^gateway_request_seconds_count\{.*\} (\d+)$/gm)].map(([, n]) => Number(n));
  return counts.reduce((sum, n) => sum + n, 0);
}

const statusOf = async (of = served): Promise<StatusReport> =>
  (await (await fetch(`${of.opsUrl}/status.json`)).json()) as StatusReport;
const isComplete = async (): Promise<boolean> => (await statusOf()).workers?.reporting === 2;

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

function threads(pid: number): number {
  try {
    return readdirSync(`/proc/${pid}/task`).length;
  } catch {
    return 0;
  }
}

test('a parent whose first worker is refused ends with the reason', async (t) => {
  const port = Number(new URL(served.url).port);
  const starting = serveProcess({ ...t.context.database.settings, webConcurrency: 2, port });
  await t.throwsAsync(starting, { message: /A worker did not start: Cannot listen on [^ ]+:\d+: / });
});

test('a write through one worker is seen through all of them', async (t) => {
  const list = JSON.parse((await send('/installaties?perPage=1')).body) as { data: { id: string }[] };
  const path = `/installaties/${list.data[0]?.id}`;
  for (let i = 0; i < 20; i++) {
    const { headers } = await send(path);
    const conditions = { 'idempotency-key': `workers-${i}`, 'if-match': String(headers.etag) };
    const body = JSON.stringify({ locatie: `Plek ${i}` });
    const changed = { 'content-type': 'application/json', ...conditions };
    const written = await send(path, { method: 'PATCH', headers: changed, body });
    t.is(written.status, 200, written.body);
    const reads = await Promise.all([1, 2, 3, 4].map(() => send(path)));
    for (const read of reads) t.is(read.headers.etag, written.headers.etag);
  }
});

test('the parent shows metrics, readiness and status of all workers', async (t) => {
  const before = await counted();
  for (let i = 0; i < 6; i++) await send('/installaties?perPage=1');
  t.is((await counted()) - before, 6);
  t.is(await status('/readyz'), 200);
  const { summary, workers } = await statusOf();
  t.like({ summary, workers }, { summary: 'All is well.', workers: { configured: 2, reporting: 2 } });
});

test('workers share one limit of writes, and a write is answered while another is frozen and the parent counts for other clients', async (t) => {
  const { database } = t.context;
  const [reading, writing] = [await database.token(), await database.token()];
  // A limit this small is counted request by request, so the parent answers the worker all the time.
  const limits = { rateLimitPerMinute: 200, writesPerMinute: 6 };
  const own = await serveProcess({ ...database.settings, webConcurrency: 2, ...limits });
  t.teardown(() => own.stop('SIGKILL'));
  const written: number[] = [];
  for (let i = 0; i < 10; i++) written.push((await send('/installaties', { method: 'POST', by: own })).status);
  t.deepEqual([...new Set(written.slice(0, 6)), ...new Set(written.slice(6))], [415, 429]);
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
    const answered = await Promise.race([created(client, body), sleep(limitMs(3000), null, { ref: false })]);
    t.truthy(answered, 'the write is answered');
  }
  process.kill(frozen, 'SIGCONT');
  isOver = true;
  await reads;
  t.deepEqual([...new Set(statuses)], [200]);
  t.is(await own.stop(), 0, 'SIGTERM ends parent and workers');
});

test('a worker that dies while another still starts is replaced', async (t) => {
  const { settings } = t.context.database;
  const port = await freePort();
  let child: ChildProcess | undefined;
  const onSpawn = (spawned: ChildProcess) => (child = spawned);
  const own = serveProcess({ ...settings, webConcurrency: 2, port }, { onSpawn });
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
  const started = await own;
  await eventually(t, 'two workers that report', async () => (await statusOf(started)).workers?.reporting === 2);
  t.false(pids().includes(first));
});

test('a worker that served is replaced at once, however many died; a start that fails is delayed', async (t) => {
  const { dataKeys } = t.context.database.settings;
  const killed: number[] = [];
  const kill = (pid: number): void => {
    killed.push(pid);
    process.kill(pid, 'SIGKILL');
  };
  for (let round = 0; round < 2; round++) {
    for (const pid of children()) kill(pid);
    await eventually(t, 'all their deaths', () => deaths().length === killed.length);
    await eventually(t, 'two workers', isComplete, 30_000);
  }
  t.deepEqual(new Set(deaths().map(({ restartMs }) => restartMs)), new Set([0]));
  const dead = deaths().map(({ workerPid }) => workerPid);
  t.deepEqual(dead.sort(), killed.sort());
  t.true(deaths().every(({ pid }) => pid === served.child.pid));

  writeFileSync(keys, 'no keys');
  const [first, second] = children() as [number, number];
  kill(first);
  await eventually(t, 'a start that fails again', () => deaths().length === killed.length + 2, 30_000);
  const failed = deaths().slice(-2);
  t.true(failed.every(({ restartMs }) => restartMs >= 500));
  writeFileSync(keys, dataKeys);
  kill(second);
  await eventually(t, 'two workers again', isComplete, 30_000);
  t.is(deaths().find(({ workerPid }) => workerPid === second)?.restartMs, 0);
});

test('a frozen worker is replaced, no client waits for it for ever, and counts do not fall', async (t) => {
  const answers: (number | string)[] = [];
  let isOver = false;
  const client = async (): Promise<void> => {
    while (!isOver) {
      answers.push(await read());
      await sleep(50);
    }
  };
  const clients = Array.from({ length: 4 }, client);
  await eventually(t, 'requests', () => answers.length > 50);
  const before = await counted();
  const died = deaths().length;
  t.true(before > 0);
  const [frozen] = children() as [number];
  process.kill(frozen, 'SIGSTOP');
  t.true((await counted()) >= before, 'while it is frozen');
  await eventually(t, 'a new worker', () => deaths().length === died + 1 && children().length === 2, 30_000);
  t.false(children().includes(frozen));
  t.like(deaths().at(-1), { signal: 'SIGKILL', silent: true });
  t.true((await counted()) >= before, 'when it is gone');
  t.regex(await (await ops('/metrics')).text(), new RegExp(`^gateway_worker_restarts_total ${died + 1}$`, 'm'));
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
  const before = deaths().length;
  let died = before;
  const isUnready = async (): Promise<boolean> => {
    died = deaths().length;
    return (await status('/readyz')) === 503;
  };
  await eventually(t, '503 of /readyz', isUnready);
  t.is(died, before, 'before a worker is given up');
  t.is(await status('/livez'), 200);
  t.like(await (await ops('/readyz')).json(), { reasons: ['no worker'] });
  await eventually(t, '503 of /livez', async () => (await status('/livez')) === 503, 30_000);
  clearInterval(freezing);
  for (const pid of children()) process.kill(pid, 'SIGCONT');
  await eventually(t, '200 of /livez', async () => (await status('/livez')) === 200, 30_000);
  await eventually(t, '200 of /readyz', async () => (await status('/readyz')) === 200, 30_000);
  await eventually(t, 'reads', async () => (await read()) === 200, 10_000);
  await eventually(t, 'two workers', isComplete, 30_000);
});

async function replaceAll(t: ExecutionContext): Promise<void> {
  for (const worker of children()) {
    process.kill(worker, 'SIGKILL');
    const isReplaced = async (): Promise<boolean> => !children().includes(worker) && (await isComplete());
    await eventually(t, 'its successor', isReplaced, 30_000);
  }
}

const rename = (from: string, to: string): string => `alter view if exists gateway.${from} rename to ${to}`;
for (const [what, harm, mend, named] of [
  [
    'a table is locked',
    'begin; lock table app.klanten in access exclusive mode; select pg_switch_wal()',
    'rollback',
    /klanten/,
  ],
  ['a view does not fit', rename('klanten_desc', 'away'), rename('away', 'klanten_desc'), /"refused":.*klanten_desc/],
] as const)
  test(`a worker that dies while ${what} is replaced, and requests for other tables are answered`, async (t) => {
    const { database } = t.context;
    await runAsAdmin(database.settings.adminUrl, async (app) => {
      await app.query(harm);
      await database.caughtUp();
      await replaceAll(t);
      for (let i = 0; i < 20; i++) t.like(await send('/installaties?perPage=1'), { status: 200 });
      await eventually(t, 'its refusal', async () => (await read()) === 503);
      await eventually(t, 'its name', async () => named.test(await (await ops('/readyz')).text()));
      await app.query(mend);
      await eventually(t, 'it is served again', async () => (await read()) === 200, 20_000);
    });
  });

test('SIGHUP replaces the workers by some with the definitions of now, and no request fails', async (t) => {
  const file = join(definitions, 'installaties.json');
  const definition = readFileSync(file, 'utf8');
  const agent = new Agent({ keepAlive: true });
  const [list, faults] = [{ members: '' }, [] as unknown[]];
  let [requests, isOver] = [0, false];
  const client = async (): Promise<void> => {
    while (!isOver)
      try {
        const page = await send('/installaties?perPage=20', { agent });
        const [first] = (JSON.parse(page.body) as { data: { id: string }[] }).data;
        const detail = await send(`/installaties/${first?.id}`, { agent });
        list.members = Object.keys(JSON.parse(detail.body)).join();
        if (page.status !== 200 || detail.status !== 200) faults.push(page.status, detail.status);
        requests += 2;
        await sleep(120 * Math.random()); // a connection that is closed meanwhile fails its next request
      } catch (error) {
        faults.push(error);
      }
  };
  const clients = Promise.all(Array.from({ length: 8 }, client));
  t.teardown(async () => {
    isOver = true;
    await clients;
    agent.destroy();
  });
  const outcomes = (): string[] => served.log().match(/^.*"msg":"reload.*$/gm) ?? [];
  const reload = async (text: string): Promise<string> => {
    const [before, events] = [requests, outcomes().length];
    writeFileSync(file, text);
    process.kill(-(served.child.pid as number), 'SIGHUP'); // as a supervisor or a terminal sends it: to the workers, too
    await eventually(t, 'the outcome', () => outcomes().length > events, 60_000);
    await eventually(t, 'requests', () => requests > before + 50);
    return String(outcomes().at(-1));
  };
  const old = children();
  t.regex(await reload('{'), /installaties\.json.*reload_refused/);
  const stored = JSON.parse(definition) as { fields: Record<string, { column: string }> };
  const { merk, ...fields } = stored.fields;
  t.regex(await reload(definition.replace('"column": "merk"', '"column": "nowhere"')), /nowhere.*reload_refused/);
  t.deepEqual(children(), old);
  t.regex(list.members, /,merk,/);
  t.regex(await reload(JSON.stringify({ ...stored, fields })), /"workers":2.*"reloaded"/);
  t.false(children().some((pid) => old.includes(pid)));
  await eventually(t, 'the new definition', () => !list.members.includes(',merk,'));
  t.truthy(merk);
  t.deepEqual(faults, [], `of ${requests} requests`);
});

test('a worker that dies after a refused reload is replaced by one with the definitions that serve, and all say so', async (t) => {
  const file = join(definitions, 'installaties.json');
  const definition = readFileSync(file, 'utf8');
  const gauge = async () => /^gateway_reload_refused (\d)$/m.exec(await (await ops('/metrics')).text())?.[1];
  t.is(await gauge(), '0');
  const scraping = setInterval(() => void ops('/metrics').catch(() => undefined), 20); // a scrape meets each start
  t.teardown(() => clearInterval(scraping));
  const { locatie, ...fields } = JSON.parse(definition).fields as Record<string, unknown>;
  writeFileSync(file, JSON.stringify({ ...JSON.parse(definition), fields })); // it is not released
  await replaceAll(t);
  for (let i = 0; i < 10; i++) t.regex((await send('/installaties?perPage=1')).body, /"locatie":/);
  t.truthy(locatie);
  writeFileSync(file, '{');
  process.kill(served.child.pid as number, 'SIGHUP');
  await eventually(t, 'the sentence', async () =>
    (await statusOf()).faults.some(
      ({ sentence, link }) =>
        /^The last reload was refused.*installaties\.json/s.test(sentence) && link.endsWith('#reload-refused'),
    ),
  );
  t.is(await gauge(), '1');
  await replaceAll(t);
  for (let i = 0; i < 10; i++) t.regex((await send('/installaties?perPage=1')).body, /"locatie":/);
  clearInterval(scraping);
  writeFileSync(file, definition);
  process.kill(served.child.pid as number, 'SIGHUP');
  await eventually(t, 'the end of the sentence', async () => (await gauge()) === '0', 60_000);
  t.false((await statusOf()).faults.some(({ link }) => link.endsWith('#reload-refused')));
});

/** Waits for so many workers beside the old ones, and returns the last. */
async function begun(own: ServeProcess, old: readonly number[], number: number): Promise<number> {
  const pids = () => children(own).filter((pid) => !old.includes(pid));
  while (pids().length < number) await sleep(2);
  return pids().at(-1) as number;
}

test('a reload goes on when the second of its workers dies before it serves', async (t) => {
  const own = await serveTwo(t);
  const old = children(own);
  process.kill(own.child.pid as number, 'SIGHUP');
  await begun(own, old, 1);
  process.kill(await begun(own, old, 2), 'SIGKILL');
  await eventually(t, 'the end of the reload', () => own.log().includes('"reloaded"'), 60_000);
  t.false(children(own).some((pid) => old.includes(pid)));
});

test('a reload whose first worker cannot be started is refused with the reason, and the present ones go on', async (t) => {
  const [tmp, node] = [mkdtempSync(join(folder, 'tmp-')), join(folder, 'node')];
  cpSync(process.execPath, node);
  const own = await serveTwo(t, { env: { TMPDIR: tmp }, node });
  const [old, parent] = [children(own), own.child.pid as number];
  const refused = (reasons: RegExp) => eventually(t, String(reasons), () => reasons.test(own.log()), 30_000);
  rmSync(node);
  process.kill(parent, 'SIGHUP');
  await refused(/ended with ENOENT.*reload_refused/);
  cpSync(process.execPath, node);
  process.kill(parent, 'SIGHUP');
  const first = await begun(own, old, 1);
  rmSync(tmp, { recursive: true });
  process.kill(parent, 'SIGHUP'); // it waits for the end of the first
  process.kill(first, 'SIGKILL');
  await refused(/ended with SIGKILL.*reload_refused.*cannot be written to [^ ]*: ENOENT.*reload_refused/s);
  t.deepEqual(children(own), old);
  t.is((await send('/klanten?perPage=1', { by: own })).status, 200);
  t.is(await own.stop(), 0);
});

test('two workers write whole lines into a pipe that is read slowly, and a long one is cut', async (t) => {
  const own = await serveTwo(t);
  const stdout = own.child.stdout as Readable;
  stdout.pause();
  for (let i = 0; i < 60; i++)
    await Promise.all(Array.from({ length: 20 }, (_, k) => send(`/klanten/${i}-${k}`, { by: own })));
  stdout.resume();
  const isRead = () => (own.log().match(/"request_finished"/g)?.length ?? 0) >= 100; // others can be dropped
  await eventually(t, 'many lines', isRead, 60_000);
  for (const line of own.log().split('\n').slice(0, -1))
    t.notThrows(() => line.startsWith('{') && JSON.parse(line), line);
  t.true(new Set(own.log().match(/"pid":\d+/g)).size >= 2);
});

test('a gateway ends although another process holds the channel of a worker that has died', async (t) => {
  const holding = `if (process.env.NODE_UNIQUE_ID)
    require('node:child_process').spawn('sleep', ['4'], { stdio: ['ignore', 'ignore', 'ignore', 3] }).unref()`;
  const module = join(folder, 'holding.cjs');
  writeFileSync(module, holding);
  const own = await serveTwo(t, { env: { NODE_OPTIONS: `--require ${module}` } });
  for (const pid of children(own)) process.kill(pid, 'SIGKILL');
  t.is(await own.stop(), 0);
});

test('a signal to all processes, as Ctrl-C in a terminal or a supervisor sends it, lets the workers finish', async (t) => {
  const stops = () => served.log().match(/"stopping"/g)?.length ?? 0;
  const before = stops();
  const [type, expect] = ['application/json', '100-continue'];
  const headers = { authorization: `Bearer ${token}`, 'content-type': type, 'content-length': 2, expect };
  const running = request(`${served.url}/api/v1/installaties`, { method: 'POST', headers });
  await once(running, 'continue');
  process.kill(-(served.child.pid as number), 'SIGINT');
  await eventually(t, 'the stop of both', () => stops() === before + 2);
  running.end('{}');
  const [{ statusCode }] = (await once(running, 'response')) as [IncomingMessage];
  t.is(statusCode, 400);
  t.is(await served.exited, 0);
});
