import type { ExecutionContext } from 'ava';
import pg from 'pg';
import { urlAs } from '../../demo/cluster/passwords.js';
import { runAsAdmin } from '../../src/postgres/admin.js';
import type { ApiClient, ApiReply } from '../support/client.js';
import { codeOf } from '../support/lists.js';
import { limitMs } from '../support/patience.js';
import { customerOf } from '../support/primary-side.js';
import { eventually, gatewayTest, shared, type TestDatabase } from '../support/workspace.js';
import { created, patch, post } from '../support/writes.js';

const test = gatewayTest().serial;

async function claimElsewhere(database: TestDatabase, token: string, key: string): Promise<() => Promise<void>> {
  const client = new pg.Client(urlAs(shared.primary, 'postgres', database.name));
  client.on('error', () => {});
  await client.connect();
  await client.query('begin');
  await client.query(
    `insert into gateway.idempotency (workspace_id, token_id, key, fingerprint)
      select workspace_id, id, $2, 'x' from app.api_tokens where token_hash = sha256($1::bytea)`,
    [Buffer.from(token), key],
  );
  return async () => {
    await client.query('rollback');
    await client.end();
  };
}

/** Resolves when so many statements wait for locks. */
const untilLocked = (t: ExecutionContext, { primary, name }: TestDatabase, count: number): Promise<void> =>
  eventually(t, `${count} waiting`, async () => {
    const waiting = "select from pg_stat_activity where datname = $1 and wait_event_type = 'Lock'";
    return (await primary.query(waiting, [name])).rows.length === count;
  });

test('a key that another gateway is using: the write waits briefly, then 409 with Retry-After, then works', async (t) => {
  const { client, database, token, log } = t.context;
  const body = { naam: 'x', customerId: await customerOf(database) };
  const release = await claimElsewhere(database, token, 'held');
  const startedMs = performance.now();
  const refused = await post(client, body, { key: 'held' });
  const tookMs = performance.now() - startedMs;
  t.is(codeOf(refused), 'idempotency_in_progress');
  t.is(refused.headers['retry-after'], '1');
  t.true(tookMs > 500, `${tookMs} ms`);
  await release();
  t.is((await post(client, body, { key: 'held' })).status, 201);
  t.false(log().includes('primary_failed'), 'no connection is used that lacks the statements after the refused one');
});

test('a fresh write that waits for a lock on a table of the app is 503, not a request that is running', async (t) => {
  const { client, database } = t.context;
  const body = { naam: 'vergrendeld', customerId: await customerOf(database) };
  await runAsAdmin(urlAs(shared.primary, 'postgres', database.name), async (appClient) => {
    for (const table of ['gateway.idempotency', 'app.klanten']) {
      await appClient.query(`begin; lock table ${table} in access exclusive mode`);
      const refused = await post(client, body, { key: `behind ${table}`.replace(' ', '-') });
      t.is(codeOf(refused), 'primary_unavailable', table);
      t.is(refused.headers['retry-after'], '2');
      await appClient.query('rollback');
    }
  });
});

test('a key that becomes free while the write waits is used', async (t) => {
  const { client, database, token } = t.context;
  const body = { naam: 'x', customerId: await customerOf(database) };
  const release = await claimElsewhere(database, token, 'soon free');
  t.is((await post(client, body, { key: 'soon-free' })).status, 201);
  const held = await claimElsewhere(database, token, 'soon-free-2');
  const waiting = post(client, body, { key: 'soon-free-2' });
  await untilLocked(t, database, 1);
  await held();
  t.is((await waiting).status, 201);
  await release();
});

for (const gateways of [1, 2])
  test(`100 requests with one key through ${gateways} gateways have one effect; the others replay it or get 409`, async (t) => {
    const { client, database, token } = t.context;
    const clients = gateways === 1 ? [client] : [client, (await database.gateway()).client];
    const body = { naam: `honderd ${gateways}`, customerId: await customerOf(database) };
    const send = (_: unknown, i: number) =>
      post(clients[i % gateways] as ApiClient, body, { key: `hundred-${gateways}`, token });
    const replies = await Promise.all(Array.from({ length: 100 }, send));
    const [fresh, ...more] = replies.filter(({ status, headers }) => status === 201 && !headers['idempotent-replayed']);
    const replayed = replies.filter(({ headers }) => headers['idempotent-replayed'] === 'true');
    const waiting = replies.filter(({ status, headers }) => status === 409 && headers['retry-after'] === '1');
    t.deepEqual([more.length, replayed.length + waiting.length], [0, 99]);
    t.true(replayed.length > 0);
    for (const reply of replayed) t.is(reply.text, fresh?.text as string);
    const { rows } = await database.primary.query('select id from app.installaties where naam = $1', [body.naam]);
    t.is(rows.length, 1);
  });

test('a different request with the key of a running request is refused, whichever is first', async (t) => {
  const { client, database } = t.context;
  const customerId = await customerOf(database);
  const bodies = Array.from({ length: 10 }, (_, i) => ({ naam: `mixed ${i % 2}`, customerId }));
  const settled = async (body: object): Promise<ApiReply> => {
    const reply = await post(client, body, { key: 'mixed' });
    return reply.status === 409 ? settled(body) : reply; // a busy machine waits longer for the lock than the write does
  };
  const replies = await Promise.all(bodies.map(settled));
  t.is(new Set(replies.filter(({ status }) => status === 201).map(({ text }) => text)).size, 1);
  t.deepEqual(replies.map(({ status }) => status).sort(), [201, 201, 201, 201, 201, 422, 422, 422, 422, 422]);
});

test('of 100 requests with one If-Match one succeeds and 99 get 412 with the version it made', async (t) => {
  const { client, database } = t.context;
  const { id } = await created(client, { naam: 'x', customerId: await customerOf(database) });
  const replies = await Promise.all(
    Array.from({ length: 100 }, (_, i) => patch(client, id, '"v1"', { naam: `n${i}` })),
  );
  t.is(replies.filter(({ status }) => status === 200).length, 1);
  const refused = replies.filter(({ status }) => status === 412);
  t.is(refused.length, 99);
  t.true(refused.every(({ headers }) => headers.etag === '"v2"'));
  const { rows } = await database.primary.query(
    `select version, (select count(*) from app.logboeken l where l.entiteit_id = i.id::text) entries
      from app.installaties i where id = $1`,
    [id],
  );
  t.deepEqual(rows, [{ version: '2', entries: '2' }]);
});

test('of two changes that wait for the app with one If-Match one succeeds', async (t) => {
  const { client, database } = t.context;
  const { id } = await created(client, { naam: 'x', customerId: await customerOf(database) });
  let replies: Promise<ApiReply[]> = Promise.resolve([]);
  await runAsAdmin(urlAs(shared.primary, 'postgres', database.name), async (appClient) => {
    await appClient.query('begin');
    await appClient.query('select from app.installaties where id = $1 for update', [id]);
    replies = Promise.all(['y', 'z'].map((naam) => patch(client, id, '"v1"', { naam })));
    await untilLocked(t, database, 2);
    await appClient.query('commit');
  });
  t.deepEqual((await replies).map(({ status }) => status).sort(), [200, 412]);
});

async function addKeys(
  { primary, workspaces }: TestDatabase,
  prefix: string,
  count: number,
  age: string,
): Promise<void> {
  await primary.query(
    `insert into gateway.idempotency (workspace_id, token_id, key, fingerprint, status, record_id, record, created_at)
      select $1, gen_random_uuid(), $2 || n, 'x', 201, gen_random_uuid(), '()', now() - $3::interval from generate_series(1, $4::int) n`,
    [workspaces[0]?.id, prefix, age, count],
  );
}

async function left({ primary }: TestDatabase, prefix: string): Promise<number> {
  const { rows } = await primary.query<{ n: number }>(
    'select count(*)::int n from gateway.idempotency where key like $1',
    [`${prefix}%`],
  );
  return rows[0]?.n as number;
}

async function recordDeletions({ primary }: TestDatabase): Promise<void> {
  await primary.query(`
    create table deletions (n int, at timestamptz);
    grant insert on deletions to gateway_owner;
    create function record_deletion() returns trigger language plpgsql as
      $$ begin insert into public.deletions select count(*), clock_timestamp() from gone having count(*) > 0; return null; end $$;
    create trigger record after delete on gateway.idempotency referencing old table as gone
      for each statement execute function record_deletion()`);
}

test('while no client writes, expired keys are deleted, at most 500 at a time; younger ones stay', async (t) => {
  const { database } = t.context;
  await addKeys(database, 'old', 1200, '26 hours');
  await addKeys(database, 'young', 50, '24 hours 30 minutes');
  await recordDeletions(database);
  await database.primary.query(`create table uses (at timestamptz default now());
    create function record_use() returns trigger language plpgsql security definer as
      'begin insert into public.uses default values; return null; end';
    create trigger record after update on gateway.wall_keys for each statement execute function record_use()`);
  await database.gateway({ upkeepIntervalMs: 5000 });
  await eventually(t, 'the deletion of all', async () => (await left(database, 'old')) === 0);
  t.is(await left(database, 'young'), 50);
  const { rows } = await database.primary.query<{ n: number; ms: number }>(
    'select n, (extract(epoch from at - min(at) over ()) * 1000)::int as ms from deletions order by at',
  );
  const counts = rows.map(({ n }) => n);
  t.deepEqual(counts, [500, 500, 200]);
  t.true((rows[2]?.ms as number) < limitMs(2000), 'a backlog is not left until the next interval');
  const uses = await database.primary.query('select from uses');
  t.true((uses.rowCount as number) < counts.length, 'its rounds do not store the use of the key again');
});

test('keys that expire later are deleted after the next interval', async (t) => {
  const { database } = t.context;
  await database.gateway({ upkeepIntervalMs: 200 });
  for (const prefix of ['first', 'second']) {
    await addKeys(database, prefix, 10, '26 hours');
    await eventually(t, `the deletion of the ${prefix}`, async () => (await left(database, prefix)) === 0);
    t.is(await left(database, 'young'), 50);
  }
});

test('a deletion that fails fails no write, is logged once a minute, and is tried again', async (t) => {
  const { database } = t.context;
  const { primary } = database;
  const expiry = 'execute on function gateway.expire_idempotency_keys(integer)';
  const { client, log } = await database.gateway({ upkeepIntervalMs: 100 });
  await primary.query(`revoke ${expiry} from gateway_writer`);
  const customerId = await customerOf(database);
  await addKeys(database, 'overdue', 10, '26 hours');
  await eventually(t, 'the event', () => log().includes('upkeep_failed'));
  await created(client, { naam: 'x', customerId });
  t.is(await left(database, 'overdue'), 10);
  const lines = log()
    .split('\n')
    .filter((line) => line.includes('upkeep_failed'));
  t.is(lines.length, 1);
  t.like(JSON.parse(lines[0] as string), { level: 'error', statement: 'expire', code: '42501' });
  await primary.query(`grant ${expiry} to gateway_writer`);
  await eventually(t, 'the deletion once it is allowed', async () => (await left(database, 'overdue')) === 0);
});
