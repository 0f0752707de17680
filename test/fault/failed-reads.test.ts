import { randomUUID } from 'node:crypto';
import test from 'ava';
import { EventLoop } from '../../src/base/flow/event-loop.js';
import { Connection, StatementNames } from '../../src/postgres/connection.js';
import { getDatabaseErrorKind, ServerFault } from '../../src/postgres/database-errors.js';
import { prepareSql } from '../../src/postgres/statement.js';
import { type FaultCluster, faultCluster } from '../support/fault-cluster.js';
import { until } from '../support/patience.js';
import { templateName } from '../support/template.js';
import { wireProxy } from '../support/wire-proxy.js';

// A failed statement is answered with a status that is true, so that a client does not repeat for ever.

let setUp: FaultCluster;
let token: string;
let headers: { readonly authorization: string };

test.before(async () => {
  setUp = await faultCluster({ replicas: 2 });
  token = await setUp.token();
  headers = { authorization: `Bearer ${token}` };
});
test.after.always(() => setUp?.stop());

interface Refused {
  readonly code: string;
  readonly status: number;
}

test.serial(
  'a read that exceeds the time limit is 504 at once, without Retry-After, and other reads go on',
  async (t) => {
    await setUp.pace(200);
    const { url, metric, backToNormal, stop } = await setUp.gateway({ statementTimeoutMs: 1000 });
    for (const path of ['/installaties?perPage=100', '/installaties?perPage=5000', '/sync/installaties?perPage=100']) {
      const runs = (): Promise<number> => metric('gateway_replica_failures_total', { code: '57014' });
      const before = await runs();
      const [late, other] = await Promise.all([
        fetch(url(path), { headers }),
        fetch(url('/klanten?perPage=5'), { headers }),
      ]);
      const { code, status } = (await late.json()) as Refused;
      t.deepEqual([late.status, status, code], [504, 504, 'query_timeout'], path);
      t.is(late.headers.get('retry-after'), null);
      t.regex(late.headers.get('content-type') ?? '', /^application\/problem\+json/);
      t.is(other.status, 200);
      t.is((await runs()) - before, 1, `the statement of ${path} ran once`);
    }
    await setUp.pace(0);
    t.is((await fetch(url('/installaties?perPage=100'), { headers })).status, 200);
    await backToNormal(t);
    await stop();
  },
);

test.serial('a read whose statement is cancelled each time is 504 after three runs', async (t) => {
  const { url, metric, stop } = await setUp.gateway();
  await setUp.pace(50);
  const runs = (): Promise<number> => metric('gateway_replica_failures_total', { code: '57014' });
  let isOver = false;
  const cancel = async (): Promise<void> => {
    while (!isOver)
      for (const replica of setUp.cluster.replicas)
        await replica.query(`select pg_cancel_backend(pid) from pg_stat_activity
          where usename = 'gateway_reader' and state = 'active' and query ~ 'gateway.*installaties' and now() - query_start > '200 ms'`);
  };
  const cancelling = cancel();
  const ended = await fetch(url('/installaties?perPage=100'), { headers });
  isOver = true;
  await cancelling;
  t.is(ended.status, 504);
  t.is(((await ended.json()) as Refused).code, 'query_timeout');
  t.is(await runs(), 3);
  await setUp.pace(0);
  t.is((await fetch(url('/installaties?perPage=100'), { headers })).status, 200);
  await stop();
});

test.serial(
  'a detail whose replica sends the row and dies has the answer of the next replica, not the row',
  async (t) => {
    const [late, prompt] = setUp.cluster.replicas as [
      FaultCluster['cluster']['primary'],
      FaultCluster['cluster']['primary'],
    ];
    const id = randomUUID();
    await setUp.sql(
      `insert into app.installaties (id, workspace_id, klant_id, naam)
     select $1, workspace_id, id, 'gone' from app.klanten where workspace_id = $2 limit 1`,
      [id, setUp.workspaces[0]?.id],
    );
    await setUp.caughtUp();
    let died = 0;
    // Passes on the row that has the id, and ends the connection before the statement is complete.
    const proxy = await wireProxy(late.url(templateName, 'gateway_reader'), (near, far) => {
      near.on('data', (sent) => far.write(sent));
      far.on('data', (received) => {
        const row = received.indexOf(id);
        if (row < 0) return void near.write(received);
        died++;
        const complete = received.indexOf('SELECT 1\0', row); // CommandComplete: a type byte and a length before its tag
        near.end(complete < 0 ? received : received.subarray(0, complete - 5));
      });
    });
    t.teardown(() => proxy.close());
    const replicaUrls = [proxy.url, prompt.url(templateName, 'gateway_reader')].join(' ');
    const { url, stop } = await setUp.gateway({ replicaUrls, lagMaxMs: 60_000 });
    await late.query('select pg_wal_replay_pause()');
    await setUp.sql('delete from app.installaties where id = $1', [id]);
    await setUp.caughtUp([prompt]);
    await until(async () => {
      t.is((await fetch(url(`/installaties/${id}`), { headers })).status, 404);
      return died > 2;
    }, 20_000);
    t.true(died > 2);
    await late.query('select pg_wal_replay_resume()');
    await stop();
  },
);

test.serial(
  'what the gateway throws over a row is no fault of the server, and what ends a connection is one',
  async (t) => {
    const [replica] = setUp.cluster.replicas;
    const connect = () =>
      Connection.open(replica?.url(templateName, 'gateway_reader') as string, {
        connectTimeoutMs: 5000,
        loop: new EventLoop(),
        names: new StatementNames(true),
        session: [],
        computeMac: () => '',
      });
    const failure = async (text: string, onRow: () => void): Promise<unknown> => {
      const connection = await connect();
      const run = { statement: prepareSql('any', text), workspace: null, values: {} };
      return new Promise((resolve) => connection.start(run, onRow, resolve));
    };
    const ours = new Error('ours');
    const thrown = await failure('select 1', () => {
      throw ours;
    });
    t.is(thrown, ours);
    t.is(getDatabaseErrorKind(thrown), 'permanent');
    const lost = await failure('select pg_terminate_backend(pg_backend_pid())', () => undefined);
    t.is(getDatabaseErrorKind(lost), 'retry');
    const stopped = await connect();
    const end = new Promise((resolve) =>
      stopped.start(
        { statement: prepareSql('any', 'select pg_sleep(9)'), workspace: null, values: {} },
        () => {},
        resolve,
      ),
    );
    stopped.destroy();
    t.true((await end) instanceof ServerFault);
  },
);
