import { stat } from 'node:fs/promises';
import { setTimeout as pause } from 'node:timers/promises';
import suite, { type ExecutionContext } from 'ava';
import pg from 'pg';
import type { PgNode } from '../../demo/cluster/node.js';
import type { Replica } from '../../src/postgres/replica.js';
import { type FaultCluster, type FaultGateway, faultCluster } from '../support/fault-cluster.js';
import { type PageRead, readPage, withoutCursors } from '../support/page-reader.js';
import { limitMs, until } from '../support/patience.js';
import { tcpProxy } from '../support/tcp-proxy.js';
import { templateName } from '../support/template.js';

const test = suite.serial;

// In the middle of a page a replica is lost, a single backend fails, or rows and tables change: the client notices nothing but a pause.

let setUp: FaultCluster;
let gateway: FaultGateway;
let token: string;
let undisturbed: string;
const path = '/installaties?perPage=800';
const small = { chunkRowsMax: 100, longConnections: 4, queueWaitMs: 10_000 };

test.before(async () => {
  setUp = await faultCluster({ replicaSettings: { max_standby_streaming_delay: '200ms' } });
  gateway = await setUp.gateway(small, true);
  token = await setUp.token();
  undisturbed = (await readPage(gateway.url(path), { token })).body;
  await setUp.pace(limitMs(1));
});
test.after.always(() => setUp?.stop());

async function readWhile(harm: (replica: number) => unknown, by = gateway): Promise<PageRead> {
  let harmed: unknown;
  const page = await readPage(by.url(path), {
    token,
    onFirstBytes: () => {
      const reading = by.gateway.replicas.findIndex(({ long }) => long.inFlight > 0);
      harmed = harm(Math.max(0, reading));
    },
  });
  await harmed;
  return page;
}

function isWhole(t: ExecutionContext, page: PageRead, gapMsMax = 2500): void {
  t.is(page.status, 200);
  t.true(page.complete);
  t.true(withoutCursors(page.body) === withoutCursors(undisturbed), 'byte for byte the rows of an undisturbed page');
  t.true(page.longestGapMs < limitMs(gapMsMax), `the longest pause was ${page.longestGapMs} ms`);
}

async function readMany(read: () => Promise<PageRead>, count: number): Promise<number[]> {
  const answers = await Promise.all(Array.from({ length: count }, read));
  return [...new Set(answers.map(({ status }) => status))];
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
  t.deepEqual(await readMany(() => readPage(gateway.url('/werkbonnen?perPage=5'), { token }), 20), [200]);
  t.is(await gateway.metric('gateway_replica_ejections_total'), ejections, 'the servers live, and stay in');

  const [node] = setUp.cluster.replicas as [PgNode];
  const third = await tcpProxy(node.port);
  t.teardown(() => third.close());
  const { replicaUrls: urls } = setUp.settings({}, true);
  const replicaUrls = `${urls} ${urls.split(' ')[0]?.replace(/:\d+\//, `:${third.port}/`)}`;
  const three = await setUp.gateway({ ...small, replicaUrls });
  for (let i = 0; i < 5; i++) {
    const readThere = () => readPage(three.url('/werkbonnen?perPage=5'), { token });
    await readMany(readThere, 60);
    for (const { endIdle } of [...setUp.proxies, third]) endIdle();
    const statuses = await readMany(readThere, 40);
    t.deepEqual(statuses, [200], 'reads survive that all idle connections to three replicas ended unnoticed');
  }
  await three.stop();

  const [only] = setUp.settings(small).replicaUrls.split(' ') as [string];
  const alone = await setUp.gateway({ ...small, replicaUrls: only });
  isWhole(t, await readWhile(() => terminate(), alone));
  await alone.stop();
  await healthy(t);
});

test('the end of a long statement costs no detail, although all short connections of its replica are busy', async (t) => {
  const [only] = setUp.settings().replicaUrls.split(' ') as [string];
  const narrow = await setUp.gateway({ chunkRowsMax: 100, shortConnections: 1, replicaUrls: only });
  const [{ short, long }] = narrow.gateway.replicas as [Replica];
  const list = await readPage(narrow.url('/klanten?perPage=1'), { token });
  const detail = narrow.url(`/klanten/${JSON.parse(list.body).data[0].id}`);
  await setUp.pace(30);
  const slow = readPage(narrow.url('/installaties?perPage=35'), { token });
  t.true(await until(() => short.inFlight > 0, 10_000));
  const page = readPage(narrow.url('/installaties?perPage=200'), { token });
  t.true(await until(() => long.inFlight > 0, 10_000));
  const newest = `select pid from pg_stat_activity where usename = 'gateway_reader' and state = 'active' and query ~ 'installaties' order by query_start desc limit 1`;
  await setUp.cluster.replicas[0]?.query(`select pg_terminate_backend((${newest}))`);
  t.true(await until(async () => (await narrow.metric('gateway_replica_failures_total')) > 0, 10_000));
  t.deepEqual(await readMany(() => readPage(detail, { token }), 5), [200]);
  await setUp.pace(0);
  t.is((await slow).status, 200);
  t.true((await page).complete);
  await narrow.stop();
  await setUp.pace(1);
});

test('before the first byte a request is repeated on the other replica, also where idle connections to it have ended unnoticed', async (t) => {
  const read = () => readPage(gateway.url('/werkbonnen?perPage=5'), { token });
  const node = setUp.cluster.replicas[0];
  for (let i = 0; i < 4; i++) {
    await readMany(read, 60);
    for (const { endIdle } of setUp.proxies) endIdle();
    await node?.kill9();
    t.deepEqual(await readMany(read, 40), [200]);
    await node?.start();
    await healthy(t);
  }
});

test('with every replica gone the page is broken off, requests get 503, and the primary reads no record', async (t) => {
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
    `select count(*) as n from pg_stat_activity where application_name = 'workspace-data-gateway' and query ~ 'from "gateway"'`,
  );
  t.is(Number(asked[0]?.n), 0);
  t.true((await gateway.metric('gateway_primary_reads_total')) <= 1, 'the token is looked up there');

  await Promise.all([first?.start(), second?.start()]);
  await healthy(t);
  t.is((await readPage(gateway.url('/klanten'), { token })).status, 200);
});

test('a gateway has logged in before its first reads, however slow a login is', async (t) => {
  for (const proxy of setUp.proxies) proxy.delayConnections(900);
  const slow = await setUp.gateway({ probeDeadlineMs: 5000, connectTimeoutMs: 5000 }, true);
  const { replicas } = slow.gateway;
  t.true(await until(() => replicas.every(({ short, long }) => short.openCount > 0 && long.openCount > 0), 15_000, 25));
  t.is((await readPage(slow.url('/werkbonnen?perPage=5000'), { token })).status, 200);
  await slow.stop();
  for (const proxy of setUp.proxies) proxy.restore();
  await healthy(t);
});

async function toReading<Row extends object>(node: PgNode, action: string): Promise<Row[]> {
  return node.query<Row>(
    `select ${action} from pg_stat_activity
     where usename = 'gateway_reader' and state = 'active' and query ~ 'installaties'`,
  );
}

test('a page continues within 2.5 s when the backend that reads it is frozen', async (t) => {
  const frozen: number[] = [];
  const freeze = async (): Promise<void> => {
    const found = async (): Promise<boolean> => {
      for (const node of setUp.cluster.replicas)
        for (const { pid } of await toReading<{ pid: number }>(node, 'pid')) frozen.push(pid);
      return frozen.length > 0;
    };
    await until(found, 5000, 0);
    for (const pid of frozen) process.kill(pid, 'SIGSTOP');
  };
  const read = await readWhile(freeze);
  t.is(frozen.length, 1);
  for (const pid of frozen) process.kill(pid, 'SIGCONT');
  isWhole(t, read);
  t.true(read.longestGapMs > 1000, `the page was not disturbed: ${read.longestGapMs} ms`);
  await gateway.backToNormal(t);
});

test('pages continue when their statements are cancelled, up to 80 times in a second', async (t) => {
  const wide = await setUp.gateway({ chunkRowsMax: 100, largePagesPerToken: 8, longPerWorkspace: 8 });
  let [cancelled, begun] = [0, 0];
  const cancel = async (): Promise<void> => {
    if (++begun > 1) return;
    const startMs = performance.now();
    const isEnough = (): boolean => performance.now() > startMs + (cancelled < 20 ? limitMs(5000) : 1000);
    for (let round = 1; !isEnough(); round++) {
      for (const node of setUp.cluster.replicas) cancelled += (await toReading(node, 'pg_cancel_backend(pid)')).length;
      await pause(Math.max(0, startMs + 25 * round - performance.now()));
    }
  };
  const onFirstBytes = (): void => void cancel();
  const reads = await Promise.all(Array.from({ length: 8 }, () => readPage(wide.url(path), { token, onFirstBytes })));
  t.true(cancelled >= 20, `${cancelled} statements were cancelled`);
  const broken = reads.filter(({ complete }) => !complete);
  t.is(broken.length, 0, `${broken.length} of 8 were broken off`);
  for (const read of reads.filter(({ status }) => status === 200)) isWhole(t, read);
  await wide.backToNormal(t);
  await wide.stop();
});

test('a busy process refuses no request whose connection has become free meanwhile', async (t) => {
  const narrow = await setUp.gateway({ shortConnections: 1, shortDepth: 1, queueWaitMs: 800 });
  const url = narrow.url('/installaties?perPage=5');
  await readPage(url, { token });
  await setUp.pace(10); // 50 ms each
  const waiting = (): number => narrow.gateway.replicas.reduce((sum, { short }) => sum + short.waiting, 0);
  const reads = Array.from({ length: 3 }, () => readPage(url, { token }));
  t.true(await until(() => waiting() >= 1, 5000, 1));
  await stat('.'); // the loop below runs while sockets are read: timers come before the next read
  for (const endMs = performance.now() + 1600; performance.now() < endMs; ); // the gateway is in this process
  t.deepEqual([...new Set((await Promise.all(reads)).map(({ status }) => status))], [200]);
  await narrow.stop();
});

test('a page survives the conflict of its statement with recovery', async (t) => {
  const wide = await setUp.gateway({ chunkRowsMax: 400 });
  await setUp.pace(2);
  const conflicts = (): Promise<number> => wide.metric('gateway_replica_failures_total', { code: '40001' });
  // Only a statement whose snapshot still sees the rows that are gone stands in the way of their removal; where the
  // removal comes between two statements there is no conflict, and the page is read again.
  for (let turn = 1; turn <= 5 && (await conflicts()) === 0; turn++) {
    await setUp.sql(
      `insert into app.installaties (id, workspace_id, klant_id, naam)
       select gen_random_uuid(), $1, (select id from app.klanten where workspace_id = $1 limit 1), 'gone soon'
       from generate_series(1, 2000)`,
      [setUp.workspaces[1]?.id],
    );
    await setUp.caughtUp();
    const page = await readWhile(async () => {
      await setUp.sql(`delete from app.installaties where naam = 'gone soon'`);
      await setUp.sql('vacuum app.installaties');
    }, wide);
    isWhole(t, page);
  }
  t.true((await conflicts()) > 0, 'there was a conflict');
  await wide.backToNormal(t);
  await wide.stop();
});

test('a page survives ALTER TABLE, and prepared statements the change of a column type', async (t) => {
  const page = await readWhile(() => setUp.sql('alter table app.installaties add column nieuw text'));
  isWhole(t, page);

  await setUp.pace(0);
  const own = await setUp.gateway({ shortConnections: 8, shortDepth: 1, shortPerWorkspace: 16 });
  const read = (): Promise<PageRead> => readPage(own.url('/werkbonnen?perPage=3'), { token });
  await Promise.all(Array.from({ length: 60 }, read)); // every connection has the statement prepared
  const before = await read();
  await setUp.sql(retyped);
  await setUp.caughtUp();
  const first = await read(); // alone: it can meet one connection after the other
  const answers = [first, ...(await Promise.all(Array.from({ length: 20 }, read)))];
  t.deepEqual([...new Set(answers.map(({ status }) => status))], [200]);
  t.deepEqual([...new Set(answers.map(({ body }) => withoutCursors(body)))], [withoutCursors(before.body)]);
  t.true((await own.metric('gateway_replica_failures_total', { code: '0A000' })) > 0, 'a plan was stale');
  await own.backToNormal(t);
  await own.stop();
});

/** Locks the table of installations until the returned function is called; on the replicas, too, by then. */
async function lockOnReplicas(): Promise<() => Promise<void>> {
  const holder = new pg.Client(setUp.cluster.primary.url(templateName));
  await holder.connect();
  await holder.query('begin; lock table app.installaties');
  await setUp.sql('update fault.pace set ms = ms'); // a commit, so that the lock's record is flushed and goes out
  const locks = "select from pg_locks where mode = 'AccessExclusiveLock' and locktype = 'relation' and granted";
  for (const node of setUp.cluster.replicas) await until(async () => (await node.query(locks)).length > 0, 10_000);
  return async () => {
    await holder.query('commit');
    await holder.end();
  };
}

test('a page waits for a lock that goes away', async (t) => {
  await setUp.pace(limitMs(1));
  isWhole(t, await readWhile(async () => (await lockOnReplicas())()), 5000);
  await setUp.pace(0);
});

/** The view again, with a column of another type: what a prepared statement of before cannot return. */
const retyped = `do $$ declare definition text := pg_get_viewdef('gateway.werkbonnen_asc'); begin
  drop view gateway.werkbonnen_asc;
  execute 'create view gateway.werkbonnen_asc as ' || regexp_replace(definition, ' ((\\w+\\.)?status),', ' \\1::varchar(40) as status,');
  alter view gateway.werkbonnen_asc owner to gateway_owner;
  grant select on gateway.werkbonnen_asc to gateway_reader;
  update gateway.applied_files set digest = gateway.digest_of(objects) where root = 'gateway' and name = 'werkbonnen';
end $$`;
