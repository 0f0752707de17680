import { readFileSync } from 'node:fs';
import { request as httpRequest, type RequestOptions } from 'node:http';
import { PassThrough } from 'node:stream';
import suite, { type ExecutionContext, registerCompletionHandler } from 'ava';
import { freePort } from '../../demo/cluster/ports.js';
import { startGateway } from '../../src/serve/gateway.js';
import { type FaultCluster, faultCluster } from '../support/fault-cluster.js';
import { until } from '../support/patience.js';
import { type ServeProcess, serveProcess } from '../support/serve-process.js';
import { type TcpProxy, tcpProxy } from '../support/tcp-proxy.js';
import { allScopes } from '../support/workspace.js';

const test = suite.serial;

// Read-your-writes across the end of a process: replicas that do not replay, and gateways that are killed or restarted.

// With its tests done this process was seen to run on for ever, at full load, in about one run of five; the cause is not known.
registerCompletionHandler(() => process.exit());

let setUp: FaultCluster;
let token: string;
let primaryProxy: TcpProxy;

test.before(async () => {
  setUp = await faultCluster();
  token = await setUp.token({ scopes: allScopes });
  primaryProxy = await tcpProxy(setUp.cluster.primary.port);
});
test.beforeEach(() => setReplay('pause'));
test.afterEach.always(() => setReplay('resume'));
test.after.always(async () => {
  await primaryProxy?.close();
  await setUp?.stop();
});

async function setReplay(how: 'pause' | 'resume'): Promise<void> {
  for (const node of setUp.cluster.replicas) await node.query(`select pg_wal_replay_${how}()`);
}

async function serve(t: ExecutionContext, overrides: object = {}): Promise<ServeProcess> {
  const { primaryUrls, ...settings } = setUp.settings({
    primaryReadsPerSecond: 1000,
    freshnessWaitMs: 20,
    lagMaxMs: 600_000,
  });
  const proxied = primaryUrls.replace(/:\d+\//, `:${primaryProxy.port}/`);
  // Workers that are all killed leave no listener behind from which their successors could inherit a random port.
  const port = await freePort();
  const served = await serveProcess({ ...settings, primaryUrls: proxied, port, logLevel: 'info', ...overrides });
  t.teardown(() => served.stop('SIGKILL'));
  return served;
}

interface Answer {
  readonly status: number;
  readonly text: string;
}

/** Opens a connection for each request, so that any worker can get it. */
function send(served: ServeProcess, path: string, options: RequestOptions = {}, body?: string): Promise<Answer> {
  const headers = { authorization: `Bearer ${token}`, ...options.headers };
  return new Promise((resolve, reject) => {
    const signal = AbortSignal.timeout(2000);
    const request = httpRequest(
      `${served.url}/api/v1${path}`,
      { agent: false, ...options, headers, signal },
      (reply) => {
        let text = '';
        reply.on('data', (chunk: Buffer) => (text += chunk.toString()));
        reply.on('end', () => resolve({ status: reply.statusCode as number, text }));
        reply.on('error', reject);
      },
    );
    request.on('error', reject).end(body);
  });
}

let keys = 0;
async function create(served: ServeProcess): Promise<string> {
  const headers = { 'content-type': 'application/json', 'idempotency-key': `restarts-${keys++}` };
  const body = JSON.stringify({ customerId: setUp.customerId, naam: 'restarts' });
  const attempt = () => send(served, '/installaties', { method: 'POST', headers }, body);
  // A killed worker takes requests with it: as a client does, the test repeats them with the same key.
  const reply = await attempt().catch(attempt).catch(attempt);
  if (reply.status !== 201) throw new Error(`POST: ${reply.status} ${reply.text}`);
  return (JSON.parse(reply.text) as { id: string }).id;
}

async function statuses(served: ServeProcess, id: string, count: number): Promise<(number | null)[]> {
  const read = () =>
    send(served, `/installaties/${id}`).then(
      ({ status }) => status,
      () => null,
    );
  return Promise.all(Array.from({ length: count }, read));
}

async function answered(served: ServeProcess, id: string): Promise<(number | null)[]> {
  return [...new Set(await statuses(served, id, 20))].filter((status) => status !== 503);
}

function childrenOf({ child }: ServeProcess): number[] {
  return readFileSync(`/proc/${child.pid}/task/${child.pid}/children`, 'utf8').trim().split(/\s+/).map(Number);
}

function starts(served: ServeProcess): number {
  return served.log().match(/"msg":"started"/g)?.length ?? 0;
}

async function replace(
  t: ExecutionContext,
  served: ServeProcess,
  victim: number,
  meanwhile?: () => Promise<unknown>,
): Promise<void> {
  const before = starts(served);
  process.kill(victim, 'SIGKILL');
  await meanwhile?.();
  t.true(await until(() => starts(served) > before, 30_000, 25), 'a new worker listens');
}

test('a write is seen after its worker was killed, through the other worker and through the new one', async (t) => {
  const served = await serve(t, { webConcurrency: 2 });
  const seen: (number | null)[] = [];
  for (let round = 0; round < 2; round++) {
    const id = await create(served);
    const victim = childrenOf(served)[round] as number;
    await replace(t, served, victim, async () => seen.push(...(await statuses(served, id, 4))));
    seen.push(...(await statuses(served, id, 8)));
  }
  // A busy machine sheds requests, and those that the killed worker had accepted are never answered.
  const answers = seen.filter((status) => status !== 503 && status !== null);
  t.deepEqual([...new Set(answers)], [200], seen.join());
});

test('a write that was answered before a restart is seen after it, and after one without the primary from its first answer on', async (t) => {
  const before = await serve(t);
  const id = await create(before);
  await before.stop('SIGKILL');
  const after = await serve(t);
  t.deepEqual(await answered(after, id), [200], 'no 404');
  await after.stop('SIGKILL');
  primaryProxy.blackHole();
  t.teardown(() => primaryProxy.restore());
  const alone = await serve(t);
  primaryProxy.restore();
  t.true(await until(async () => (await statuses(alone, id, 1))[0] === 200, 5000, 50));
  t.deepEqual(await answered(alone, id), [200], 'no 404');
});

test('a worker that starts while the primary is away knows the writes that its parent keeps', async (t) => {
  const served = await serve(t, { webConcurrency: 2 });
  const id = await create(served);
  await primaryProxy.close();
  for (const victim of childrenOf(served)) await replace(t, served, victim);
  t.true(await until(async () => (await statuses(served, id, 1))[0] !== null, 30_000, 50), 'a new worker listens');
  // A request that the killed worker had accepted is never answered: null.
  const known = (await statuses(served, id, 12)).filter((status) => status !== null);
  t.deepEqual([...new Set(known)], [503], 'neither 404 nor an older state');
});

test('a worker that replaces another takes no request before a replica can be read: the others answer it', async (t) => {
  await setUp.sql('create table if not exists public.later as select 1');
  await setUp.sql('drop table public.later');
  const starting = startGateway(setUp.settings({ lagMaxMs: 100 }), new PassThrough().resume(), undefined, {
    isSuccessor: true,
  });
  t.teardown(async () => (await starting).stop());
  const probes = new Set<string>();
  const text = `select query_start::text from pg_stat_activity where usename = 'gateway_reader' and query ~ 'pg_control_system'`;
  const isAsked = async (): Promise<boolean> => {
    const asked = await setUp.cluster.replicas[0]?.query<{ query_start: string }>(text);
    for (const { query_start } of asked ?? []) probes.add(query_start);
    return probes.size >= 5;
  };
  t.true(await until(isAsked, 20_000, 20));
  await setReplay('resume');
  const { url } = await starting;
  const headers = { authorization: `Bearer ${token}` };
  t.is((await fetch(`${url}/api/v1/klanten?perPage=1`, { headers })).status, 200);
});
