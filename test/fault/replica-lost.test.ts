import suite, { type ExecutionContext } from 'ava';
import { type FaultCluster, type FaultGateway, faultCluster } from '../support/fault-cluster.js';
import { type PageRead, readPage, withoutCursors } from '../support/page-reader.js';
import { limitMs, until } from '../support/patience.js';

const test = suite.serial;

// A replica is lost in the middle of a page, in every way there is: the client notices nothing but a pause.

let setUp: FaultCluster;
let gateway: FaultGateway;
let token: string;
let undisturbed: string;
const path = '/installaties?perPage=800';
const small = { chunkRowsMax: 100, longConnections: 4, queueWaitMs: 10_000 };

test.before(async () => {
  setUp = await faultCluster();
  gateway = await setUp.gateway(small, true);
  token = await setUp.token();
  undisturbed = (await readPage(gateway.url(path), { token })).body;
  await setUp.pace(1);
});
test.after.always(() => setUp?.stop());

/** Reads the page; when its first bytes are there, `harm` is done to the replica that reads it. */
async function readWhile(harm: (replica: number) => unknown): Promise<PageRead> {
  let harmed: unknown;
  const page = await readPage(gateway.url(path), {
    token,
    onFirstBytes: () => {
      const reading = gateway.gateway.replicas.findIndex(({ long }) => long.inFlight > 0);
      harmed = harm(Math.max(0, reading));
    },
  });
  await harmed;
  return page;
}

function isWhole(t: ExecutionContext, page: PageRead): void {
  t.is(page.status, 200);
  t.true(page.complete);
  t.true(withoutCursors(page.body) === withoutCursors(undisturbed), 'byte for byte the rows of an undisturbed page');
  t.true(page.longestGapMs < limitMs(2500), `the longest pause was ${page.longestGapMs} ms`);
}

async function healthy(t: ExecutionContext): Promise<void> {
  const all = () => gateway.gateway.replicas.every(({ state }) => state.healthy);
  t.true(await until(all, 15_000, 25), 'both replicas are used again');
  await gateway.backToNormal(t);
}

test('a page survives kill -9 of its replica', async (t) => {
  const before = await gateway.metric('gateway_pages_resumed_total');
  const killed: number[] = [];
  const page = await readWhile((replica) => {
    killed.push(replica);
    return setUp.cluster.replicas[replica]?.kill9();
  });
  isWhole(t, page);
  t.is(await gateway.metric('gateway_pages_resumed_total'), before + 1);
  t.is((await readPage(gateway.url('/klanten'), { token })).status, 200, 'the other one serves');
  await setUp.cluster.replicas[killed[0] as number]?.start();
  await healthy(t);
});

test('a page survives SIGSTOP of its replica', async (t) => {
  let frozen = -1;
  const page = await readWhile((replica) => {
    frozen = replica;
    setUp.cluster.replicas[replica]?.freeze();
  });
  isWhole(t, page);
  t.is(
    await gateway.metric('gateway_replica_healthy', { replica: gateway.gateway.replicas[frozen]?.name as string }),
    0,
  );
  setUp.cluster.replicas[frozen]?.thaw();
  await healthy(t);
});

test('a page survives a black hole between gateway and replica', async (t) => {
  let lost = -1;
  const page = await readWhile((replica) => {
    lost = replica;
    setUp.proxies[replica]?.blackHole();
  });
  isWhole(t, page);
  setUp.proxies[lost]?.restore();
  await healthy(t);
  const reads = Array.from({ length: 40 }, () => readPage(gateway.url('/werkbonnen?perPage=5'), { token }));
  for (const { status, totalMs } of await Promise.all(reads)) {
    t.is(status, 200);
    t.true(totalMs < limitMs(1000), `a read took ${totalMs} ms: it was sent on a connection from before`);
  }
});

test('a page survives pg_terminate_backend, and idle connections too', async (t) => {
  const terminate = (node = 0) =>
    setUp.cluster.replicas[node]?.query(
      `select pg_terminate_backend(pid) from pg_stat_activity where application_name = 'workspace-data-gateway'`,
    );
  const ejections = await gateway.metric('gateway_replica_ejections_total');
  isWhole(t, await readWhile(terminate));
  for (const node of [0, 1]) await terminate(node); // now all are idle
  const answers = await Promise.all(
    Array.from({ length: 20 }, () => readPage(gateway.url('/werkbonnen?perPage=5'), { token })),
  );
  t.deepEqual([...new Set(answers.map(({ status }) => status))], [200]);
  t.is(await gateway.metric('gateway_replica_ejections_total'), ejections, 'the servers live, and stay in');

  const [only] = setUp.settings(small).replicaUrls.split(' ') as [string];
  const alone = await setUp.gateway({ ...small, replicaUrls: only });
  const page = await readPage(alone.url(path), { token, onFirstBytes: () => void terminate() });
  isWhole(t, { ...page, body: page.body.replaceAll(alone.gateway.url, gateway.gateway.url) });
  await alone.stop();
  await healthy(t);
});

test('before the first byte a request is repeated on the other replica', async (t) => {
  const node = setUp.cluster.replicas[0];
  await node?.kill9();
  const answers = await Promise.all(
    Array.from({ length: 40 }, () => readPage(gateway.url('/werkbonnen?perPage=5'), { token })),
  );
  t.deepEqual([...new Set(answers.map(({ status }) => status))], [200]);
  await node?.start();
  await healthy(t);
});

test('with every replica gone the page is broken off, requests get 503, and the primary is not asked', async (t) => {
  const [first, second] = setUp.cluster.replicas;
  const broken = await readWhile(() => Promise.all([first?.kill9(), second?.kill9()]));
  t.is(broken.status, 200);
  t.false(broken.complete);
  t.throws(() => JSON.parse(broken.body));
  t.is(await gateway.metric('gateway_pages_broken_total'), 1);

  const refused = await readPage(gateway.url('/klanten'), { token });
  t.is(refused.status, 503);
  t.is(JSON.parse(refused.body).code, 'replica_unavailable');
  t.regex(String(refused.headers['retry-after']), /^[1-9]\d*$/);
  t.is((await fetch(`${gateway.gateway.opsUrl}/readyz`)).status, 503);
  t.is((await fetch(`${gateway.gateway.opsUrl}/livez`)).status, 200);
  const asked = await setUp.sql<{ n: string }>(
    `select count(*) as n from pg_stat_activity where application_name = 'workspace-data-gateway' and query ~ 'gateway\\.'`,
  );
  t.is(Number(asked[0]?.n), 0);

  await Promise.all([first?.start(), second?.start()]);
  await healthy(t);
  t.is((await readPage(gateway.url('/klanten'), { token })).status, 200);
});

test('a gateway has logged in before its first reads, however slow a login is', async (t) => {
  for (const proxy of setUp.proxies) proxy.delayConnections(900);
  const slow = await setUp.gateway({ probeDeadlineMs: 5000, connectTimeoutMs: 5000 }, true);
  const { replicas } = slow.gateway;
  t.true(await until(() => replicas.every(({ short, long }) => short.open > 0 && long.open > 0), 15_000, 25));
  t.is((await readPage(slow.url('/werkbonnen?perPage=5000'), { token })).status, 200);
  await slow.stop();
  for (const proxy of setUp.proxies) proxy.restore();
  await healthy(t);
});
