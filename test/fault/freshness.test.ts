import { setTimeout as sleep } from 'node:timers/promises';
import test, { type ExecutionContext } from 'ava';
import pg from 'pg';
import type { PgNode } from '../../demo/cluster/node.js';
import type { Replica } from '../../src/postgres/replica.js';
import { type FaultCluster, type FaultGateway, faultCluster } from '../support/fault-cluster.js';
import { readPage, withoutCursors } from '../support/page-reader.js';
import { limitMs, until } from '../support/patience.js';
import { templateName } from '../support/template.js';

// Replicas that answer, but not with what they should: behind, promoted, or of another history.

let setUp: FaultCluster;
let gateway: FaultGateway;
let token: string;
let first: PgNode;
let second: PgNode;
const page = '/installaties?perPage=600';

test.before(async () => {
  setUp = await faultCluster({ settings: { wal_writer_delay: '200ms' } });
  [first, second] = setUp.cluster.replicas as [PgNode, PgNode];
  gateway = await setUp.gateway({ chunkRowsMax: 100, lagMaxMs: 1500, queueWaitMs: 10_000 });
  token = await setUp.token();
});
test.afterEach.always(async () => {
  for (const node of setUp.cluster.replicas) {
    if (node.running) await node.query('select pg_wal_replay_resume() where pg_is_in_recovery()');
  }
});
test.after.always(() => setUp?.stop());

const pause = (node: PgNode) => node.query('select pg_wal_replay_pause()');
const resume = (node: PgNode) => node.query('select pg_wal_replay_resume()');
/** A change on the primary: from now on a replica that does not replay is behind. */
const move = () => setUp.sql('update fault.pace set ms = ms');
const reasons = () => gateway.gateway.replicas.map(({ state }) => state.reason ?? 'healthy');

async function healthy(t: ExecutionContext): Promise<void> {
  t.true(await until(() => reasons().every((reason) => reason === 'healthy'), 15_000, 25), reasons().join());
}

test.serial('Data-As-Of tells how current the answer is', async (t) => {
  const own = await setUp.gateway({ lagMaxMs: 60_000 });
  const asOf = async (): Promise<number> => {
    const { status, headers } = await readPage(own.url('/klanten?perPage=1'), { token });
    t.is(status, 200);
    return Date.parse(String(headers['data-as-of']));
  };
  // Records that no commit follows stay unflushed on an idle primary until its background writer logs the next, after 15 s.
  t.true(await until(async () => Date.now() - (await asOf()) < 1500, 20_000, 100), 'both replicas are current');
  await Promise.all([pause(first), pause(second)]);
  await move();
  const movedMs = Date.now(); // until then they knew everything there was
  for (const { name: replica } of own.gateway.replicas)
    t.true(await until(async () => (await own.metric('gateway_replica_lag_seconds', { replica })) > 0.5, 5000, 50));
  t.true((await asOf()) <= movedMs, 'no later than what they do not have');
  await own.stop();
  await Promise.all([resume(first), resume(second)]);
  await healthy(t);
});

test.serial('no commit before Data-As-Of is missing, although the app commits asynchronously', async (t) => {
  const own = await setUp.gateway({ probeIntervalMs: 50 });
  const first = 'select id from app.installaties where workspace_id = $1 limit 1';
  const [row] = await setUp.sql<{ id: string }>(first, [setUp.workspaces[0]?.id]);
  const app = new pg.Client(setUp.cluster.primary.url(templateName));
  await app.connect();
  t.teardown(() => app.end());
  await app.query('set synchronous_commit = off'); // such a commit is visible on the primary before replicas can get it
  const committedMs: number[] = [];
  let reads = 0;
  const isEnough = (): boolean => reads >= 200 && committedMs.length >= 200;
  const commits = (async () => {
    while (!isEnough()) {
      await app.query('update app.installaties set interne_notities = $1 where id = $2', [committedMs.length, row?.id]);
      committedMs.push(Date.now());
      await sleep(7);
    }
  })();
  const wrong: string[] = [];
  for (; !isEnough(); reads++) {
    const { body, headers } = await readPage(own.url(`/installaties/${row?.id}`), { token });
    const seen = Number(JSON.parse(body).interneNotities ?? -1);
    const nextMs = committedMs[seen + 1] ?? Number.POSITIVE_INFINITY;
    const asOfMs = Date.parse(String(headers['data-as-of']));
    if (nextMs < asOfMs) wrong.push(`commit ${seen + 1} is missing ${asOfMs - nextMs} ms after it`);
  }
  await commits;
  t.deepEqual(wrong.slice(0, 5), []);
  await own.stop();
});

test.serial('a replica that lags is ejected; when all lag, requests get 503 and never the primary', async (t) => {
  await pause(first);
  await move();
  t.true(await until(() => /lags/.test(reasons()[0] as string), 5000, 25));
  const replica = gateway.gateway.replicas[0]?.name as string;
  t.true((await gateway.metric('gateway_replica_lag_seconds', { replica })) > 1.5);
  const isServed = async (): Promise<boolean> => (await readPage(gateway.url('/klanten'), { token })).status === 200;
  t.true(await until(isServed, 5000, 25), reasons().join()); // on a busy machine the second can lag for a moment, too

  await pause(second);
  await move();
  t.true(await until(() => /lags/.test(reasons()[1] as string), 5000, 25));
  const refused = await readPage(gateway.url('/klanten'), { token });
  t.is(refused.status, 503);
  t.is(JSON.parse(refused.body).code, 'replica_unavailable');
  t.truthy(refused.headers['retry-after']);
  const ready = await fetch(`${gateway.gateway.opsUrl}/readyz`);
  t.is(ready.status, 503);
  t.regex(await ready.text(), /it lags behind the primary/);

  await Promise.all([resume(first), resume(second)]);
  await healthy(t);
  t.is((await readPage(gateway.url('/klanten'), { token })).status, 200);
});

test.serial('a page continues only on a replica as current as its first rows', async (t) => {
  const patient = await setUp.gateway({ chunkRowsMax: 100, lagMaxMs: 60_000, resumeMs: 2000 });
  /** Reads everything after the first row, by a cursor that requires a replica as current as that. */
  const behindFirstRow = async (asOfMs: number): Promise<string> => {
    let cursor = '';
    const isCurrent = async (): Promise<boolean> => {
      const { body, headers } = await readPage(patient.url('/installaties?perPage=1'), { token });
      cursor = JSON.parse(body).pagination.nextCursor;
      return Date.parse(String(headers['data-as-of'])) > asOfMs;
    };
    t.true(await until(isCurrent, 10_000, 25));
    return patient.url(`${page}&cursor=${cursor}`);
  };
  const undisturbed = (await readPage(await behindFirstRow(0), { token })).body;
  await setUp.pace(0.5);
  const begin = async (heal: () => unknown) => {
    await pause(second);
    await move();
    const ofFirst = await behindFirstRow(Date.now()); // which the second one cannot show: it is behind from now on
    const read = await readPage(ofFirst, { token, onFirstBytes: () => void first.kill9().then(heal) });
    await resume(second);
    await first.start();
    const both = () => patient.gateway.replicas.every(({ state }) => state.healthy);
    t.true(await until(both, 15_000, 25));
    return read;
  };
  const broken = await begin(() => undefined);
  t.is(broken.status, 200);
  t.false(broken.complete, 'the other replica stays behind: the page is broken off');
  t.throws(() => JSON.parse(broken.body));

  const whole = await begin(() => setTimeout(() => void resume(second), 700));
  t.true(whole.complete);
  t.true(withoutCursors(whole.body) === withoutCursors(undisturbed), 'the other replica catches up: the page goes on');
  t.true(whole.longestGapMs < limitMs(2500));
  await setUp.pace(0);
  await patient.backToNormal(t);
  await patient.stop();
});

test.serial('a replica that was promoted is ejected, whatever it answers', async (t) => {
  await healthy(t);
  await first.promote();
  t.true(await until(() => /promoted/.test(reasons()[0] as string), 3000, 10), reasons().join());
  const answers = await Promise.all(Array.from({ length: 10 }, () => readPage(gateway.url('/klanten'), { token })));
  t.deepEqual([...new Set(answers.map(({ status }) => status))], [200]);
  t.is(gateway.gateway.replicas[0]?.inFlight, 0);
});

test.serial('after a failover a replica that still follows the old primary is ejected', async (t) => {
  // `first` is the new primary now; the old one goes on writing, and `second` follows it.
  const write = 'create table if not exists lost (n int); insert into lost select generate_series(1, 200000)';
  const writeOn = () => setUp.sql(write).then(() => setUp.caughtUp([second])); // more than upkeep writes elsewhere
  await writeOn();
  const { replicaUrls } = setUp.settings();
  const failedOver = await setUp.gateway({
    replicaUrls: replicaUrls.split(' ')[1] as string,
    primaryUrls: first.url(templateName, 'gateway_writer'),
  });
  t.is((await readPage(failedOver.url('/klanten'), { token })).status, 503);
  const [follower] = failedOver.gateway.replicas as [Replica];
  t.regex(String(follower.state.reason), /another timeline/);
  await writeOn();
  await follower.probe();
  t.regex(String(follower.state.reason), /another timeline/, 'the old primary goes on writing');
  await failedOver.stop();

  await setUp.cluster.rebuildReplica(0);
  await healthy(t);
  await gateway.backToNormal(t);
});
