import { cpSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { Agent, request } from 'node:http';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { setTimeout as sleep } from 'node:timers/promises';
import type { ExecutionContext } from 'ava';
import type { StatusReport } from '../../src/ops/status.js';
import { type ServeProcess, serveProcess } from '../support/serve-process.js';
import { eventually, gatewayTest, type TestContext } from '../support/workspace.js';

const test = gatewayTest();

interface Answer {
  readonly status: number;
  readonly headers: Readonly<Record<string, string | string[] | undefined>>;
  readonly body: string;
}

/** One request, on a connection of its own without an agent, so that any worker may take it. */
function send(
  served: ServeProcess,
  token: string,
  path: string,
  options: { method?: string; headers?: Record<string, string>; body?: string; agent?: Agent } = {},
): Promise<Answer> {
  return new Promise((resolve, reject) => {
    const headers = { authorization: `Bearer ${token}`, ...options.headers };
    const outgoing = request(
      `${served.url}/api/v1${path}`,
      { agent: options.agent ?? false, method: options.method ?? 'GET', headers },
      (response) => {
        let body = '';
        response.on('data', (chunk: Buffer) => (body += chunk.toString()));
        response.on('end', () => resolve({ status: response.statusCode as number, headers: response.headers, body }));
      },
    );
    outgoing.on('error', reject);
    outgoing.end(options.body);
  });
}

/** Process ids of the workers, as Linux tells them. */
function childrenOf({ child }: ServeProcess): string[] {
  return readFileSync(`/proc/${child.pid}/task/${child.pid}/children`, 'utf8').trim().split(/\s+/);
}

function workers(t: ExecutionContext<TestContext>, overrides: object = {}): Promise<ServeProcess> {
  return serveProcess({ ...t.context.database.settings, logLevel: 'warn', webConcurrency: 2, ...overrides });
}

/** For all tests but that of the limits; the last one ends it. */
let served: ServeProcess;
test.serial.before(async (t) => {
  served = await workers(t);
});
test.after.always(() => served?.stop('SIGKILL'));

test('two workers share one limit of requests and one of writes', async (t) => {
  const served = await workers(t, { rateLimitPerMinute: 20, writesPerMinute: 6 });
  t.teardown(() => served.stop());
  const token = await t.context.database.token();
  const statuses: number[] = [];
  for (let i = 0; i < 30; i++) statuses.push((await send(served, token, '/installaties?perPage=1')).status);
  t.is(statuses.filter((status) => status === 200).length, 20);
  t.is(statuses.filter((status) => status === 429).length, 10);
  const writer = await t.context.database.token();
  const written: number[] = [];
  for (let i = 0; i < 10; i++) written.push((await send(served, writer, '/installaties', { method: 'POST' })).status);
  t.deepEqual([...new Set(written.slice(0, 6)), ...new Set(written.slice(6))], [415, 429]);
});

test.serial('a write through one worker is seen through all of them', async (t) => {
  const token = await t.context.database.token();
  const list = JSON.parse((await send(served, token, '/installaties?perPage=1')).body) as { data: { id: string }[] };
  const path = `/installaties/${list.data[0]?.id}`;
  for (let i = 0; i < 40; i++) {
    const { headers } = await send(served, token, path);
    const written = await send(served, token, path, {
      method: 'PATCH',
      headers: {
        'content-type': 'application/json',
        'idempotency-key': `workers-${i}`,
        'if-match': String(headers.etag),
      },
      body: JSON.stringify({ locatie: `Plek ${i}` }),
    });
    t.is(written.status, 200, written.body);
    const reads = await Promise.all([1, 2, 3, 4].map(() => send(served, token, path)));
    for (const read of reads) t.is(read.headers.etag, written.headers.etag);
  }
});

/** Requests for installations, by the metrics of the parent. */
async function counted(): Promise<number> {
  const metrics = await (await fetch(`${served.opsUrl}/metrics`)).text();
  const counts = metrics.matchAll(/^gateway_request_seconds_count\{[^}]*installaties[^}]*\} (\d+)$/gm);
  return [...counts].reduce((sum, [, count]) => sum + Number(count), 0);
}

test.serial('the parent shows metrics, readiness and status of all workers, and replaces one that dies', async (t) => {
  const token = await t.context.database.token();
  const before = await counted();
  for (let i = 0; i < 6; i++) await send(served, token, '/installaties?perPage=1');
  await eventually(t, 'readiness', async () => (await fetch(`${served.opsUrl}/readyz`)).status === 200);
  t.is((await counted()) - before, 6);
  const status = async () => (await (await fetch(`${served.opsUrl}/status.json`)).json()) as StatusReport;
  const { summary, workers: seen } = await status();
  t.like({ summary, seen }, { summary: 'All is well.', seen: { configured: 2, reporting: 2 } });
  const children = childrenOf(served);
  t.is(children.length, 2);
  process.kill(Number(children[0]), 'SIGKILL');
  await eventually(t, 'a new worker', () => {
    const now = childrenOf(served);
    return now.length === 2 && !now.includes(children[0] as string);
  });
  t.is((await send(served, token, '/installaties?perPage=1')).status, 200);
  await eventually(t, 'nothing wrong', async () => (await status()).summary === 'All is well.');
});

test('a signal to all processes, as Ctrl-C in a terminal or a supervisor sends it, lets the workers finish', async (t) => {
  for (const signal of ['SIGINT', 'SIGTERM'] as const) {
    const served = await workers(t, { notReadyMs: 2000 });
    const token = await t.context.database.token();
    const exited = new Promise((resolve) => served.child.once('exit', resolve));
    process.kill(-(served.child.pid as number), signal);
    await sleep(700);
    t.is((await send(served, token, '/installaties?perPage=1')).status, 200, signal);
    t.is(await exited, 0, signal);
  }
});

test.serial('SIGHUP replaces the workers by some with the definitions of now, and no request fails', async (t) => {
  const { database } = t.context;
  const folder = mkdtempSync(join(tmpdir(), 'reload-'));
  cpSync(database.settings.resourcesDir || 'config/resources', folder, { recursive: true });
  const file = join(folder, 'installaties.json');
  const definition = readFileSync(file, 'utf8');
  const served = await workers(t, { resourcesDir: folder, logLevel: 'info' });
  const token = await database.token();
  const agent = new Agent({ keepAlive: true });
  const [list, faults] = [{ members: '' }, [] as unknown[]];
  let [requests, isOver] = [0, false];
  const client = async (): Promise<void> => {
    while (!isOver)
      try {
        const page = await send(served, token, '/installaties?perPage=20', { agent });
        const [first] = (JSON.parse(page.body) as { data: { id: string }[] }).data;
        const detail = await send(served, token, `/installaties/${first?.id}`, { agent });
        list.members = Object.keys(JSON.parse(detail.body)).join();
        if (page.status !== 200 || detail.status !== 200) faults.push(page.status, detail.status);
        requests += 2;
        await sleep(60 * Math.random()); // a connection that is closed meanwhile fails its next request
      } catch (error) {
        faults.push(error);
      }
  };
  const clients = Promise.all(Array.from({ length: 12 }, client));
  t.teardown(async () => {
    isOver = true;
    await clients;
    agent.destroy();
    rmSync(folder, { recursive: true });
    await served.stop();
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
  const old = childrenOf(served);
  t.regex(await reload('{'), /installaties\.json.*reload_refused/);
  const stored = JSON.parse(definition) as { fields: Record<string, { column: string }> };
  const { merk, ...fields } = stored.fields;
  t.regex(await reload(definition.replace('"column": "merk"', '"column": "nowhere"')), /nowhere.*reload_refused/);
  t.deepEqual(childrenOf(served), old);
  t.regex(list.members, /,merk,/);
  t.regex(await reload(JSON.stringify({ ...stored, fields })), /"workers":2.*"reloaded"/);
  t.false(childrenOf(served).some((pid) => old.includes(pid)));
  await eventually(t, 'the new definition', () => !list.members.includes(',merk,'));
  t.truthy(merk);
  t.deepEqual(faults, [], `of ${requests} requests`);
});

test.serial('SIGTERM ends parent and workers with exit code 0', async (t) => {
  t.is(await served.stop(), 0);
});
