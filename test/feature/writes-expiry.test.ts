import { customerOf } from '../support/primary-side.js';
import { eventually, gatewayTest, type TestDatabase } from '../support/workspace.js';
import { created, post } from '../support/writes.js';

const test = gatewayTest();

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

/** Records the moment and the number of rows of each deletion. */
async function recordDeletions({ primary }: TestDatabase): Promise<void> {
  await primary.query(`
    create table deletions (n int, at timestamptz);
    grant insert on deletions to gateway_owner;
    create function record_deletion() returns trigger language plpgsql as
      $$ begin insert into public.deletions select count(*), clock_timestamp() from gone having count(*) > 0; return null; end $$;
    create trigger record after delete on gateway.idempotency referencing old table as gone
      for each statement execute function record_deletion()`);
}

test.serial('while no client writes, expired keys are deleted, at most 500 at a time; younger ones stay', async (t) => {
  const { database } = t.context;
  await addKeys(database, 'old', 1200, '26 hours');
  await addKeys(database, 'young', 50, '24 hours 30 minutes');
  await recordDeletions(database);
  await database.gateway({ expiryIntervalMs: 5000 });
  await eventually(t, 'the deletion of all', async () => (await left(database, 'old')) === 0);
  t.is(await left(database, 'young'), 50);
  const { rows } = await database.primary.query<{ n: number; ms: number }>(
    'select n, (extract(epoch from at - min(at) over ()) * 1000)::int as ms from deletions order by at',
  );
  t.deepEqual(
    rows.map(({ n }) => n),
    [500, 500, 200],
  );
  t.true((rows[2]?.ms as number) < 2000, 'a backlog is not left until the next interval');
});

test.serial('keys that expire later are deleted after the next interval', async (t) => {
  const { database } = t.context;
  await database.gateway({ expiryIntervalMs: 200 });
  for (const prefix of ['first', 'second']) {
    await addKeys(database, prefix, 10, '26 hours');
    await eventually(t, `the deletion of the ${prefix}`, async () => (await left(database, prefix)) === 0);
    t.is(await left(database, 'young'), 50);
  }
});

test.serial('a key that has expired and is gone can be used for another request', async (t) => {
  const { client, database } = t.context;
  const customerId = await customerOf(database);
  const first = await post(client, { naam: 'x', customerId }, { key: 'again' });
  await database.primary.query("delete from gateway.idempotency where key = 'again'");
  const second = await post(client, { naam: 'y', customerId }, { key: 'again' });
  t.is(second.status, 201);
  t.not(second.text, first.text);
});

test.serial('a deletion that fails fails no write, is logged once a minute, and is tried again', async (t) => {
  const { database } = t.context;
  const { primary } = database;
  const expiry = 'execute on function gateway.expire_idempotency_keys(integer)';
  const { client, log } = await database.gateway({ expiryIntervalMs: 100 });
  await primary.query(`revoke ${expiry} from gateway_writer`);
  const customerId = await customerOf(database);
  await addKeys(database, 'held', 10, '26 hours');
  await new Promise((resolve) => setTimeout(resolve, 300));
  await created(client, { naam: 'x', customerId });
  t.is(await left(database, 'held'), 10);
  await eventually(t, 'the event', () => log().includes('upkeep_failed'));
  const lines = log()
    .split('\n')
    .filter((line) => line.includes('upkeep_failed'));
  t.is(lines.length, 1);
  t.like(JSON.parse(lines[0] as string), { level: 'error', statement: 'idempotency.expire', code: '42501' });
  await primary.query(`grant ${expiry} to gateway_writer`);
  await eventually(t, 'the deletion once it is allowed', async () => (await left(database, 'held')) === 0);
});
