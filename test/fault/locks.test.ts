import { setTimeout as sleep } from 'node:timers/promises';
import suite, { type ExecutionContext } from 'ava';
import pg from 'pg';
import type { PgNode } from '../../demo/cluster/node.js';
import type { StatusReport } from '../../src/serve/ops/status.js';
import { type FaultCluster, type FaultGateway, faultCluster } from '../support/fault-cluster.js';
import { readPage } from '../support/page-reader.js';
import { until } from '../support/patience.js';
import { templateName } from '../support/template.js';

const test = suite.serial;

/** So long that none is refused, or ejected, by the slowness of the machine; a locked statement takes longer. */
const patient = { detailWaitMs: 5000, probeDeadlineMs: 10_000 };

// One resource waits in the database: for a lock of each kind, or for a slow plan. The others have all connections, and are answered.

let setUp: FaultCluster;
let app: pg.Client;
let token: string;
test.before(async () => {
  setUp = await faultCluster();
  app = new pg.Client(setUp.cluster.primary.url(templateName));
  await app.connect();
  token = await setUp.token();
});
test.after.always(async () => {
  await app?.end();
  await setUp?.stop();
});

/** A held lock is replayed once its record is flushed, which a switch of the WAL file does. */
const held = (change: string): Kind => ({
  begin: async () => {
    await app.query(`begin; ${change}; select pg_switch_wal()`);
  },
  end: () => app.query('rollback'),
});

interface Kind {
  readonly begin: () => Promise<unknown>;
  readonly end: () => Promise<unknown>;
}

const kinds: Readonly<Record<string, Kind>> = {
  'LOCK TABLE': held('lock table app.werkbonnen in access exclusive mode'),
  'ALTER TABLE with a rewrite': held('alter table app.werkbonnen add column later uuid default gen_random_uuid()'),
  'CLUSTER, as VACUUM FULL does': held('cluster app.werkbonnen using werkbonnen_pkey'),
  TRUNCATE: held('truncate app.werkbonnen cascade'),
  'DROP INDEX': held('drop index app.werkbonnen_lijst'),
};

/** The kinds of answers that clients get, each of which reads one path again and again until `isOver`. */
async function answersWhile(fault: FaultGateway, paths: readonly string[], isOver: () => boolean): Promise<string[]> {
  const answers = new Set<string>();
  const client = async (path: string): Promise<void> => {
    for (; !isOver(); await sleep(20)) {
      const { status, body, headers } = await readPage(fault.url(path), { token });
      const isRefusal = status === 503 && headers['retry-after'] === '2';
      answers.add(isRefusal ? JSON.parse(body).code : String(status));
    }
  };
  await Promise.all(paths.map(client));
  return [...answers].sort();
}

async function idOf(fault: FaultGateway, resource: string): Promise<string> {
  return JSON.parse((await readPage(fault.url(`/${resource}?perPage=1`), { token })).body).data[0].id;
}

const statusOf = async ({ gateway }: FaultGateway) =>
  (await (await fetch(`${gateway.opsUrl}/status.json`)).json()) as StatusReport;

/** Counts backends of the gateway that wait for a lock on a replica. Those of closed connections end within a second. */
async function waiting(node: PgNode): Promise<number> {
  const text = `select count(*) from pg_stat_activity where wait_event_type = 'Lock' and usename = 'gateway_reader'`;
  const [row] = await node.query<{ count: string }>(text);
  return Number(row?.count);
}

async function besideLock(t: ExecutionContext, fault: FaultGateway, { begin, end }: Kind): Promise<void> {
  const { replicas } = fault.gateway;
  const nodes = setUp.cluster.replicas.slice(0, replicas.length);
  const [werkbon, klant] = [await idOf(fault, 'werkbonnen'), await idOf(fault, 'klanten')];
  t.teardown(end);
  await begin();
  let isOver = false;
  const clients = (...paths: string[]) => answersWhile(fault, paths, () => isOver);
  const details = Array.from({ length: 10 }, () => `/werkbonnen/${werkbon}`);
  const ofLocked = clients('/werkbonnen?perPage=100', '/werkbonnen?perPage=2000', ...details);
  const ofOthers = clients('/klanten?perPage=100', '/klanten?perPage=2000', `/klanten/${klant}`, `/klanten/${klant}`);
  try {
    const sentences = async (): Promise<number> => {
      const { faults } = await statusOf(fault);
      return faults.filter(({ link, sentence }) => /#locked$/.test(link) && /has held werkbonnen/.test(sentence))
        .length;
    };
    t.true(await until(async () => (await sentences()) === replicas.length, 20_000, 50), 'a sentence for each replica');
    t.is(await fault.metric('gateway_resource_locked', { resource: 'werkbonnen' }), replicas.length);
    let samples = 0; // in a row
    const oneEach = async (): Promise<boolean> => {
      samples = Math.max(...(await Promise.all(nodes.map(waiting)))) <= 1 ? samples + 1 : 0;
      return samples === 20;
    };
    t.true(await until(oneEach, 20_000, 100), 'one statement waits for the end of the lock, however many clients ask');
  } finally {
    isOver = true;
    await end();
  }
  t.deepEqual(await ofOthers, ['200']);
  const refused = (await ofLocked).filter((answer) => answer !== '200');
  t.deepEqual(refused, ['replica_unavailable']);
  t.true(await until(() => replicas.every(({ locked }) => locked.length === 0), 20_000), 'it ends');
  t.is((await readPage(fault.url('/werkbonnen?perPage=100'), { token })).status, 200);
  t.is(await fault.metric('gateway_resource_locked'), 0);
  await fault.backToNormal(t);
  await fault.stop();
}

for (const [name, kind] of Object.entries(kinds)) {
  test(`${name}: the resource alone is refused, at once after the first time-out, on two replicas`, async (t) => {
    await besideLock(t, await setUp.gateway(patient), kind);
  });
}

test('the same with one replica, whose primary answers nothing instead', async (t) => {
  const [replicaUrls] = setUp.settings().replicaUrls.split(' ') as [string];
  await besideLock(t, await setUp.gateway({ ...patient, replicaUrls }), kinds['LOCK TABLE'] as Kind);
});

const slow: Readonly<Record<string, readonly [msPerRow: number, isSeen: (fault: FaultGateway) => Promise<boolean>]>> = {
  'a slow plan of one resource takes no connection of another, and what is beyond its connections is refused': [
    3000,
    async ({ metric }) => (await metric('gateway_problems_total', { code: 'replica_unavailable' })) > 40,
  ],
  'a resource whose statements conflict with recovery again and again costs another nothing': [
    10,
    async ({ metric }) => {
      await setUp.sql(`insert into app.installaties (id, workspace_id, klant_id, naam) select gen_random_uuid(), workspace_id, id, 'gone'
        from (select * from app.klanten limit 1) one, generate_series(1, 300)`);
      await setUp.sql(`delete from app.installaties where naam = 'gone'`);
      await setUp.sql('vacuum app.installaties');
      return (await metric('gateway_replica_failures_total', { code: '40001' })) > 60;
    },
  ],
};

for (const [name, [msPerRow, isSeen]] of Object.entries(slow))
  test(name, async (t) => {
    for (const node of setUp.cluster.replicas) await node.configure({ max_standby_streaming_delay: '50ms' });
    const fault = await setUp.gateway(patient);
    const [installatie, klant] = [await idOf(fault, 'installaties'), await idOf(fault, 'klanten')];
    await setUp.pace(msPerRow);
    let isOver = false;
    const clients = (...paths: string[]) => answersWhile(fault, paths, () => isOver);
    const ofSlow = clients(
      ...Array(12).fill(`/installaties/${installatie}`),
      ...Array(8).fill('/installaties?perPage=300'),
    );
    const ofOthers = clients('/klanten?perPage=100', '/klanten?perPage=2000', `/klanten/${klant}`);
    t.true(await until(() => isSeen(fault), 30_000, 50));
    isOver = true;
    await setUp.pace(0);
    t.deepEqual(await ofOthers, ['200']);
    const { faults } = await statusOf(fault);
    t.deepEqual(
      faults.filter(({ level, sentence }) => level === 'failing' && !/installaties/.test(sentence)),
      [],
    );
    t.is(await fault.metric('gateway_replica_ejections_total'), 0);
    t.is(await fault.metric('gateway_resource_locked'), 0);
    await ofSlow;
    t.is((await readPage(fault.url(`/installaties/${installatie}`), { token })).status, 200);
    await fault.backToNormal(t);
    await fault.stop();
  });
