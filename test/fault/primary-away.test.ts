import { existsSync, renameSync, symlinkSync } from 'node:fs';
import { join } from 'node:path';
import { setTimeout as sleep } from 'node:timers/promises';
import suite, { type ExecutionContext } from 'ava';
import type { PgNode } from '../../demo/cluster/node.js';
import { freePort } from '../../demo/cluster/ports.js';
import { readProject } from '../../src/base/paths.js';
import { runAsAdmin } from '../../src/postgres/admin.js';
import type { OpenApiDocument } from '../../src/serve/openapi/document.js';
import type { StatusReport } from '../../src/serve/ops/status.js';
import { type ApiClient, type ApiReply, apiClient } from '../support/client.js';
import { contractValidator } from '../support/contract.js';
import { type FaultCluster, type FaultGateway, faultCluster } from '../support/fault-cluster.js';
import { codeOf } from '../support/lists.js';
import { limitMs, until } from '../support/patience.js';
import { type TcpProxy, tcpProxy } from '../support/tcp-proxy.js';
import { templateName } from '../support/template.js';
import { created, newKey, patch, post } from '../support/writes.js';

const test = suite.serial;

// The primary is unreachable or refuses: writes get 503 in time and succeed later with the same key, exactly once; reads go on.

let setUp: FaultCluster;
let fault: FaultGateway;
let proxy: TcpProxy;
let client: ApiClient;
let customerId: string;
const limits = { writeTimeoutMs: 1500, writeWaitMs: 1000, queueWaitMs: 10_000 };
const boundMs = 3500;
const promise = 'writes get 503 and succeed later with the same key, reads go on';

test.before(async () => {
  setUp = await faultCluster({ replicas: 1 });
  const { primary } = setUp.cluster;
  proxy = await tcpProxy(primary.port);
  const primaryUrls = setUp.settings().primaryUrls.replace(`:${primary.port}/`, `:${proxy.port}/`);
  const token = await setUp.token({ scopes: ['read:klanten', 'read:installaties', 'write:installaties'] });
  fault = await setUp.gateway({ ...limits, primaryUrls });
  const { gateway } = fault;
  const document = (await (await fetch(`${gateway.url}/api/v1/openapi.json`)).json()) as OpenApiDocument;
  client = apiClient(`${gateway.url}/api/v1`, { token, validate: contractValidator(document) });
  customerId = setUp.customerId;
  await created(client, { naam: 'warm', customerId }); // the validator has compiled its schemas
  for (const path of ['/klanten?perPage=10', '/installaties?perPage=10']) await client.get(path);
});
test.after.always(async () => {
  client?.close();
  await setUp?.stop();
  await proxy?.close();
});

async function whileReading<T>(t: ExecutionContext, work: () => Promise<T>): Promise<T> {
  let working = true;
  let [reads, slowestMs] = [0, 0];
  const statuses = new Set<number>();
  const reading = (async () => {
    while (working) {
      for (const path of ['/klanten?perPage=10', '/installaties?perPage=10']) {
        const startedMs = performance.now();
        statuses.add((await client.get(path)).status);
        slowestMs = Math.max(slowestMs, performance.now() - startedMs);
        reads++;
      }
      await new Promise((resolve) => setTimeout(resolve, 10));
    }
  })();
  const value = await work().finally(() => {
    working = false;
  });
  await reading;
  t.deepEqual([...statuses], [200], `${reads} reads`);
  t.true(slowestMs < limitMs(1000), `the slowest read took ${slowestMs} ms`);
  return value;
}

/** Backends that do a write, or that hold one without an answer. */
const writing = `from pg_stat_activity where usename = 'gateway_writer' and state <> 'idle' and query !~ 'pg_control_system|pg_blocking_pids'`;

/** Fails the test if more transactions than the bound were on a server at a time; an unreachable server is not counted. */
async function withinBound<T>(t: ExecutionContext, work: () => Promise<T>): Promise<T> {
  const { primary, replicas } = setUp.cluster;
  let isOver = false;
  const counts = [0];
  const counting = (async () => {
    for (; !isOver; await sleep(20))
      for (const node of [primary, ...replicas])
        for (const { n } of await node.query<{ n: number }>(`select count(*)::int n ${writing}`).catch(() => []))
          counts.push(n);
  })();
  const value = await work().finally(() => {
    isOver = true;
  });
  await counting;
  t.true(Math.max(...counts) <= setUp.settings().primaryConnections, `${Math.max(...counts)} backends`);
  return value;
}

/** Resolves when the status says so of the writes. */
async function statusSays(t: ExecutionContext, expected: RegExp): Promise<void> {
  let faults: StatusReport['faults'] = [];
  const isSaid = async (): Promise<boolean> => {
    ({ faults } = (await (await fetch(`${fault.gateway.opsUrl}/status.json`)).json()) as StatusReport);
    return faults.some(({ sentence, link }) => expected.test(sentence) && link.endsWith('#writes-wait'));
  };
  t.true(await until(isSaid, 20_000, 50), `${expected}: ${JSON.stringify(faults)}`);
}

async function refusedInTime(t: ExecutionContext, send: () => Promise<ApiReply>): Promise<void> {
  const startedMs = performance.now();
  const reply = await send();
  const tookMs = performance.now() - startedMs;
  t.is(reply.status, 503);
  t.is(codeOf(reply), 'primary_unavailable');
  t.regex(reply.headers['retry-after'] as string, /^[1-9][0-9]*$/);
  t.true(tookMs < limitMs(boundMs), `${tookMs} ms`);
}

async function awayAndBack(t: ExecutionContext, harm: () => unknown, heal: () => unknown): Promise<void> {
  const [naam, keys] = [newKey(), Array.from({ length: 8 }, newKey)];
  await setUp.caughtUp();
  await withinBound(t, () =>
    whileReading(t, async () => {
      await harm();
      await Promise.all(keys.map((key) => refusedInTime(t, () => post(client, { naam, customerId }, { key }))));
      await heal();
    }),
  );
  for (const key of keys) {
    const again = () => post(client, { naam, customerId }, { key });
    t.true(await until(async () => (await again()).status === 201, 10_000, 200));
  }
  const [found] = await setUp.sql<{ records: number; entries: number }>(
    `select (select count(*)::int from app.installaties where naam = $1) records,
      (select count(*)::int from app.logboeken where wijzigingen @> jsonb_build_array(jsonb_build_object('nieuw', $1::text))) entries`,
    [naam],
  );
  t.deepEqual(found, { records: keys.length, entries: keys.length });
}

test(`a primary that is stopped: ${promise}`, (t) =>
  awayAndBack(
    t,
    () => setUp.cluster.primary.stop(),
    () => setUp.cluster.primary.start(),
  ));

test(`a primary that is frozen: ${promise}`, (t) =>
  awayAndBack(
    t,
    () => setUp.cluster.primary.freeze(),
    () => setUp.cluster.primary.thaw(),
  ));

test(`a primary that is behind a network that swallows everything: ${promise}`, (t) =>
  awayAndBack(
    t,
    () => proxy.blackHole(),
    () => proxy.restore(),
  ));

test(`a primary that is read-only: ${promise}`, (t) => {
  const { primary } = setUp.cluster;
  return awayAndBack(
    t,
    () => primary.configure({ default_transaction_read_only: 'on' }),
    () => primary.configure({ default_transaction_read_only: null }),
  );
});

/** A trigger of the app runs this with each write, so that PostgreSQL itself raises what is wrong with it. */
const noting = (body: string): string => `
  create table fault.notes (note text);
  create function fault.note() returns trigger language plpgsql security definer as $$ begin ${body}; return new; end $$;
  create trigger note before insert or update on app.installaties for each row execute function fault.note()`;
const dropNoting = 'drop function fault.note() cascade; drop table fault.notes';

for (const [what, inPlace] of [
  ['a full disk, 53100', '/dev/full'],
  ['a lost file, 58P01', null],
] as const)
  (existsSync('/dev/full') ? test : test.skip)(`a primary with ${what}: ${promise}`, async (t) => {
    await setUp.sql(noting(`insert into fault.notes values ('x')`));
    const [{ path } = { path: '' }] = await setUp.sql<{ path: string }>(
      "select pg_relation_filepath('fault.notes') path",
    );
    const file = join(setUp.cluster.primary.dir, path);
    await awayAndBack(
      t,
      () => {
        renameSync(file, `${file}.away`);
        if (inPlace !== null) symlinkSync(inPlace, file);
      },
      async () => {
        renameSync(`${file}.away`, file);
        await setUp.sql('truncate fault.notes'); // into a new file, which no backend has open
      },
    );
    await setUp.sql(dropNoting);
  });

test(`a primary without memory for locks, 53200: ${promise}`, (t) =>
  awayAndBack(
    t,
    () => setUp.sql(noting('perform pg_advisory_xact_lock_shared(i) from generate_series(1, 1000000) i')),
    async () => {
      // The last write can still hold all locks.
      const drop = () => setUp.sql(dropNoting);
      await until(
        () =>
          drop().then(
            () => true,
            () => false,
          ),
        20_000,
        100,
      );
    },
  ));

test(`a primary that takes no login: ${promise}`, (t) => {
  const others = `select pg_terminate_backend(pid) from pg_stat_activity where usename = 'gateway_writer'`;
  return awayAndBack(
    t,
    () => setUp.sql(`alter role gateway_writer nologin; ${others}`),
    () => setUp.sql('alter role gateway_writer login'),
  );
});

test(`a table that the app holds locked: ${promise}`, async (t) => {
  await runAsAdmin(setUp.cluster.primary.url(templateName), async (app) => {
    await awayAndBack(
      t,
      () => app.query('begin; lock table app.installaties in exclusive mode'),
      () => app.query('rollback'),
    );
  });
});

test('a row that the app holds locked: other rows can be written, this one later with the same key', async (t) => {
  const [held, free] = [
    await created(client, { naam: 'x', customerId }),
    await created(client, { naam: 'x', customerId }),
  ];
  const key = newKey();
  await runAsAdmin(setUp.cluster.primary.url(templateName), async (app) => {
    await app.query('begin');
    await app.query("update app.installaties set interne_notities = 'x' where id = $1", [held.id]);
    const refused = refusedInTime(t, () => patch(client, held.id, '"v1"', { naam: 'y' }, { key }));
    t.is((await patch(client, free.id, '"v1"', { naam: 'y' })).status, 200);
    await refused;
    await app.query('rollback');
  });
  t.is((await patch(client, held.id, '"v1"', { naam: 'y' }, { key })).headers.etag, '"v2"');
});

/** Begins a write while the app is in a transaction; when the write waits for a lock of it, the app goes on and ends. */
async function writeBetween(begin: string, write: () => Promise<ApiReply>, end: string): Promise<ApiReply> {
  const waits = "select from pg_stat_activity where usename = 'gateway_writer' and wait_event_type = 'Lock'";
  return runAsAdmin(setUp.cluster.primary.url(templateName), async (app) => {
    await app.query(`begin; ${begin}`);
    const reply = write();
    await until(async () => (await setUp.sql(waits)).length > 0, 10_000, 5);
    await app.query(end);
    return reply;
  });
}

const page = readProject('docs/operate/troubleshooting.md');
const [, queryOfPage = ''] = /```sql\n(select writes.pid, wait_event_type[^`]*)```/.exec(page) ?? [];

/** Writes until `isOver`, each with a key of its own. */
async function writesUntil(isOver: () => boolean): Promise<ApiReply[]> {
  const replies: ApiReply[] = [];
  const clientOf = async (): Promise<void> => {
    while (!isOver()) replies.push(await post(client, { naam: 'x', customerId }));
  };
  await Promise.all(Array.from({ length: 8 }, clientOf));
  return replies;
}

test('commits wait for a synchronous standby: they are within the bound, others are 503 at once, and the status says so', async (t) => {
  const { primary } = setUp.cluster;
  const held = async () => (await setUp.sql(`select ${writing} and wait_event = 'SyncRep'`)).length;
  await withinBound(t, async () => {
    t.teardown(() => primary.configure({ synchronous_standby_names: null }));
    await primary.configure({ synchronous_standby_names: 'elsewhere' });
    let isOver = false;
    const writing = writesUntil(() => isOver);
    await statusSays(
      t,
      /^Writes wait: commits wait for a synchronous standby: start it, or take it out of synchronous_standby_names \(/,
    );
    const isHeld = async () => (await held()) >= setUp.settings().primaryConnections / 2;
    t.true(await until(isHeld, 20_000, 50));
    const atOnce = async (): Promise<boolean> => {
      const startedMs = performance.now();
      const { status } = await post(client, { naam: 'x', customerId });
      return status === 503 && performance.now() - startedMs < limits.writeWaitMs / 2;
    };
    t.true(await until(atOnce, 20_000, 50), 'a write is refused before it has waited for a connection');
    proxy.cut(); // the server holds them all the same
    const named = /"obstacle":"commits wait for a synchronous standby.*"msg":"primary_failed"/;
    t.true(await until(() => named.test(fault.log()), 20_000, 50), fault.log());
    await statusSays(t, /synchronous standby/);
    isOver = true;
    const statuses = (await writing).map(({ status }) => status);
    t.deepEqual([...new Set(statuses.slice(8))], [503]); // a backend may commit before it has read the new setting
    const [row] = (await setUp.sql(queryOfPage)) as { wait_event: string }[];
    t.is(row?.wait_event, 'SyncRep', queryOfPage);
    await primary.configure({ synchronous_standby_names: null });
    t.true(await until(async () => (await post(client, { naam: 'x', customerId })).status === 201, 20_000, 50));
  });
});

const obstacles: Readonly<Record<string, readonly [begin: string, sentence: RegExp, waitEvent: RegExp]>> = {
  'ALTER TABLE behind a long SELECT': [
    'select from app.installaties limit 1',
    /^Writes wait: for a lock of app\.installaties that process \d+, role postgres, the app holds \(\d+ of the gateway's statements/,
    /^relation$/,
  ],
  'a row lock of the app': [
    'select from app.klanten for update',
    /^Writes wait: for a lock of (a row|app\.klanten) that process \d+, role postgres, the app holds \(/,
    /^(transactionid|tuple)$/,
  ],
  'a slow trigger': ['', /^Writes wait: a statement runs: look at the triggers of its table/, /^PgSleep$/],
};

for (const [what, [begin, sentence, waitEvent]] of Object.entries(obstacles))
  test(`${what}: the status says what writes wait for, and so does the query of the page`, async (t) => {
    const url = setUp.cluster.primary.url(templateName);
    await withinBound(t, () =>
      runAsAdmin(url, async (app) => {
        await app.query(`set application_name = 'the app'; begin; ${begin}`);
        if (begin === '') await setUp.sql(noting('perform pg_sleep(30)'));
        const altering = runAsAdmin(url, async (other) => {
          if (waitEvent.test('relation')) await other.query('alter table app.installaties add column later text');
        });
        if (waitEvent.test('relation'))
          await until(
            async () =>
              (await setUp.sql(`select from pg_locks where mode = 'AccessExclusiveLock' and not granted`)).length > 0,
            20_000,
          );
        let isOver = false;
        const writing = writesUntil(() => isOver);
        await statusSays(t, sentence);
        const isFound = async () =>
          ((await setUp.sql(queryOfPage)) as { wait_event: string }[]).some((row) => waitEvent.test(row.wait_event));
        t.true(await until(isFound, 20_000, 50));
        isOver = true;
        await writing;
        await app.query('rollback');
        await altering;
        await setUp.sql(`alter table app.installaties drop column if exists later`);
        await until(
          () =>
            setUp.sql(`drop function if exists fault.note() cascade; drop table if exists fault.notes`).then(
              () => true,
              () => false,
            ),
          30_000,
        );
      }),
    );
    t.true(await until(async () => (await post(client, { naam: 'x', customerId })).status === 201, 30_000, 50));
  });

test('a CONNECTION LIMIT of the role that leaves no connection is named with its remedy', async (t) => {
  await setUp.sql(
    `alter role gateway_writer connection limit 0; select pg_terminate_backend(pid) from pg_stat_activity where usename = 'gateway_writer'`,
  );
  const said = async () => fault.gateway.readiness().primary?.reason ?? '';
  const isNamed = async () =>
    /^it does not answer \(PostgreSQL error 53300: no connection is free: raise the CONNECTION LIMIT of the role/.test(
      await said(),
    );
  t.true(await until(isNamed, 20_000, 50), await said());
  await setUp.sql('alter role gateway_writer connection limit 2'); // for the probe and one more
  t.true(await until(() => fault.gateway.readiness().primary?.healthy === true, 20_000, 50));
  let isOver = false;
  const writing = writesUntil(() => isOver);
  await statusSays(t, /^Writes wait: no login: PostgreSQL error 53300: .*CONNECTION LIMIT/);
  isOver = true;
  await writing;
  await setUp.sql('alter role gateway_writer connection limit -1');
});

test('a deadlock with the app, 40P01, is tried again inside, and the client sees nothing of it', async (t) => {
  const { primary } = setUp.cluster;
  const { id } = await created(client, { naam: 'x', customerId });
  await primary.configure({ deadlock_timeout: '700ms' }); // the gateway's: it waits first, so it is the one that PostgreSQL ends
  const reply = await writeBetween(
    "set local deadlock_timeout = '1min'; lock table app.logboeken in exclusive mode",
    () => patch(client, id, '"v1"', { naam: 'y' }),
    `select from app.installaties where id = '${id}' for update; rollback`,
  );
  await primary.configure({ deadlock_timeout: null });
  t.is(reply.status, 200);
  t.true((await fault.metric('gateway_primary_failures_total', { code: '40P01' })) > 0);
});

test('a failed serialization, 40001, is tried again inside, and the client sees nothing of it', async (t) => {
  // PostgreSQL cannot follow a row that moves to another partition while a write waits for it.
  await setUp.sql(`${noting('update fault.counts set n = n + 1')};
    create table fault.counts (half integer, n integer) partition by list (half);
    create table fault.first partition of fault.counts for values in (1);
    create table fault.second partition of fault.counts for values in (2); insert into fault.counts values (1, 0)`);
  const write = () => post(client, { naam: 'x', customerId });
  const reply = await writeBetween('update fault.counts set half = 2', write, 'commit');
  await setUp.sql(`${dropNoting}; drop table fault.counts`);
  t.is(reply.status, 201);
  t.true((await fault.metric('gateway_primary_failures_total', { code: '40001' })) > 0);
});

test('connections that were ended while idle cost no write, however many there are', async (t) => {
  const primaryUrls = setUp.settings().primaryUrls.replace(`:${setUp.cluster.primary.port}/`, `:${proxy.port}/`);
  // Twenty logins at once may last longer than the other tests let a write take.
  const { url, stop } = await setUp.gateway({ primaryUrls, writeTimeoutMs: 30_000, queueWaitMs: 30_000 });
  const patient = apiClient(url(''), { token: await setUp.token({ scopes: ['write:installaties'] }) });
  const write = async () => t.is((await post(patient, { naam: 'x', customerId })).status, 201);
  const backends = "from pg_stat_activity where usename = 'gateway_writer' and state = 'idle'";
  const several = async () => (await setUp.sql<{ n: number }>(`select count(*)::int n ${backends}`))[0]?.n ?? 0;
  try {
    for (let i = 0; i < 5; i++) {
      do await Promise.all(Array.from({ length: 20 }, write));
      while ((await several()) < 5);
      if (i % 2 === 0) {
        proxy.endIdle();
        proxy.breakNext();
      } else await setUp.sql(`select pg_terminate_backend(pid) ${backends}`);
      await write();
    }
  } finally {
    patient.close();
    await stop();
  }
});

test('a primary that was away at the start is checked before its first write', async (t) => {
  const { primary } = setUp.cluster;
  const port = await freePort();
  const primaryUrls = setUp.settings().primaryUrls.replace(`:${primary.port}/`, `:${port}/`);
  const { gateway, stop } = await setUp.gateway({ ...limits, primaryUrls });
  const token = await setUp.token({ scopes: ['write:installaties'] });
  const late = apiClient(`${gateway.url}/api/v1`, { token });
  await setUp.sql('grant update (created_at) on gateway.installaties_write to gateway_writer');
  const reached = await tcpProxy(primary.port, port);
  try {
    const isRefused = () =>
      /check refuses it: write view .*may update created_at/.test(gateway.readiness().primary?.reason ?? '');
    t.true(await until(isRefused, 20_000, 50), JSON.stringify(gateway.readiness().primary));
    await refusedInTime(t, () => post(late, { naam: 'x', customerId }));
    await setUp.sql('revoke update (created_at) on gateway.installaties_write from gateway_writer');
    t.true(await until(async () => (await post(late, { naam: 'x', customerId })).status === 201, 20_000, 200));
  } finally {
    late.close();
    await stop();
    await reached.close();
  }
});

test('a failover between a transaction and its answer leaves both servers no more than the bound, and each write is there once', async (t) => {
  const { primary, replicas } = setUp.cluster;
  const standby = replicas[0] as PgNode;
  const primaryUrls = [primary, standby].map((node) => node.url(templateName, 'gateway_writer')).join(' ');
  const { gateway, stop } = await setUp.gateway({ ...limits, primaryUrls });
  const token = await setUp.token({ scopes: ['write:installaties'] });
  const writer = apiClient(`${gateway.url}/api/v1`, { token });
  await created(writer, { naam: 'warm', customerId });
  await setUp.caughtUp();
  const naam = newKey();
  const write = async (key: string): Promise<void> => {
    for (let status = 0; status !== 201; await sleep(20))
      ({ status } = await post(writer, { naam, customerId }, { key }));
  };
  const heldUp = `select from pg_stat_activity where usename = 'gateway_writer' and wait_event_type = 'Lock'`;
  await runAsAdmin(primary.url(templateName), async (app) => {
    await app.query('begin; lock table app.installaties in exclusive mode');
    await withinBound(t, async () => {
      const writes = Array.from({ length: 12 }, () => write(newKey()));
      t.true(await until(async () => (await primary.query(heldUp)).length > 1, 20_000, 20), 'some are sent');
      await standby.promote();
      await Promise.all(writes);
    });
    await app.query('rollback');
  });
  const count = `select count(*)::int n from app.installaties where naam = $1`;
  const [row] = await runAsAdmin(standby.url(templateName), async (app) => (await app.query(count, [naam])).rows);
  t.is(row.n, 12);
  writer.close();
  await stop();
});
