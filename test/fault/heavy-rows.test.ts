import { get, type IncomingMessage } from 'node:http';
import { setTimeout as sleep } from 'node:timers/promises';
import test from 'ava';
import { type FaultCluster, faultCluster } from '../support/fault-cluster.js';
import { readPage } from '../support/page-reader.js';
import { asInProduction, type ServeProcess, serveProcess } from '../support/serve-process.js';

// 2,000 rows of 300 KB are one page of usual size: every chunk of it ends at its bytes.

const rows = 2000;
const rowBytes = 300_000;
const growthMbMax = 100;
let setUp: FaultCluster;
let serving: ServeProcess;
let authorization: string;

test.before(async () => {
  setUp = await faultCluster({ replicas: 1 });
  const workspace = setUp.workspaces[0]?.id;
  await setUp.sql('delete from app.werkbon_uren; delete from app.werkbon_handelingen; delete from app.werkbonnen');
  await setUp.sql('delete from app.installaties where workspace_id = $1'.replace('$1', `'${workspace}'`));
  await setUp.sql(
    `insert into app.installaties (id, workspace_id, klant_id, naam, omschrijving)
     select gen_random_uuid(), workspace_id, id, n, repeat('x', ${rowBytes})
     from (select * from app.klanten where workspace_id = $1 limit 1) one, generate_series(1, ${rows}) n`,
    [workspace],
  );
  await setUp.caughtUp();
  authorization = `Bearer ${await setUp.token()}`;
  serving = await serveProcess(setUp.settings({ logLevel: 'warn' }), asInProduction);
});
test.after.always(async () => {
  await serving?.stop();
  await setUp?.stop();
});

async function megabytes(): Promise<number> {
  const metrics = await (await fetch(`${serving.opsUrl}/metrics`)).text();
  return Number(/^process_resident_memory_bytes (\S+)$/m.exec(metrics)?.[1]) / 1e6;
}

function begin(path: string, origin = serving.url): Promise<IncomingMessage> {
  return new Promise((resolve, reject) =>
    get(`${origin}/api/v1${path}`, { headers: { authorization } }, resolve).once('error', reject),
  );
}

test.serial('a slow reader of any page of heavy rows costs the gateway at most 100 MB', async (t) => {
  const before = await megabytes();
  for (const path of ['/installaties?perPage=2000', '/installaties?perPage=150', '/sync/installaties?perPage=2000']) {
    let most = before;
    const watched = sleep(6000, 'over');
    const reply = await begin(path);
    t.is(reply.statusCode, 200);
    reply.pause();
    while ((await Promise.race([watched, sleep(100)])) !== 'over') {
      reply.read(10_000);
      most = Math.max(most, await megabytes());
    }
    reply.destroy();
    t.log(`${path}: ${Math.round(before)} MB before, at most ${Math.round(most)} MB`);
    t.true(most - before <= growthMbMax, `${path}: ${most - before} MB`);
  }
});

test.serial('a page of rows that are known to be heavy waits for its turn before it reads', async (t) => {
  const gateway = await setUp.gateway({ largePagesPerToken: 1, queueWaitMs: 1000 });
  const token = authorization.slice('Bearer '.length);
  const path = '/installaties?perPage=150';
  const first = await begin(path, gateway.gateway.url); // nothing reads it, so it keeps its turn
  await setUp.pace(10_000); // a statement would be answered otherwise, and later
  const { status, body } = await readPage(gateway.url(path), { token });
  await setUp.pace(0);
  t.is(status, 503);
  t.is(JSON.parse(body).code, 'overloaded');
  t.is(await gateway.metric('gateway_requests_shed_total', { bound: 'large_pages' }), 1);
  first.destroy();
  await gateway.stop();
});

test.serial('a page of heavy rows is whole, and so is a list of light ones after it', async (t) => {
  let bytes = 0;
  let end = '';
  for await (const piece of await begin('/installaties?perPage=2000')) {
    bytes += (piece as Buffer).length;
    end = (end + (piece as Buffer).toString('latin1')).slice(-2000);
  }
  t.true(bytes > rows * rowBytes);
  t.regex(end, /"perPage":2000,"count":2000,"hasMore":false,.*"complete":true\}\}$/);
  const light = async (path: string) =>
    (await (await fetch(`${serving.url}/api/v1${path}`, { headers: { authorization } })).json()) as {
      data: { id: string }[];
    };
  const { data } = await light('/installaties?perPage=2000&fields=naam');
  t.is(new Set(data.map(({ id }) => id)).size, rows);
  const pages = await Promise.all(
    [1, 2, 3, 4].map((page) => light(`/installaties?perPage=500&page=${page}&fields=naam`)),
  );
  const inPages = pages.flatMap((each) => each.data);
  t.deepEqual(inPages, data);
});
