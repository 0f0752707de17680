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
    `insert into gateway.idempotency (workspace_id, token_id, key, fingerprint, status, record_id, version, body, created_at)
      select $1, gen_random_uuid(), $2 || n, 'x', 201, gen_random_uuid(), 1, '{}', now() - $3::interval from generate_series(1, $4::int) n`,
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

test.serial('writes clean up expired keys, at most 500 each, until there are none; younger ones stay', async (t) => {
  const { client, database } = t.context;
  const customerId = await customerOf(database);
  await addKeys(database, 'old', 1200, '26 hours');
  await addKeys(database, 'young', 50, '24 hours 30 minutes');
  for (const rest of [700, 200, 0]) {
    await created(client, { naam: 'x', customerId });
    await eventually(t, `${rest} left`, async () => (await left(database, 'old')) === rest);
  }
  t.is(await left(database, 'young'), 50);
});

test.serial('when there is no more to do, the next clean-up is a minute away', async (t) => {
  const { client, database } = t.context;
  const customerId = await customerOf(database);
  await addKeys(database, 'later', 10, '26 hours');
  await created(client, { naam: 'x', customerId });
  await new Promise((resolve) => setTimeout(resolve, 300));
  t.is(await left(database, 'later'), 10);
  const other = await database.gateway();
  await created(other.client, { naam: 'x', customerId });
  await eventually(t, 'a new gateway cleans up', async () => (await left(database, 'later')) === 0);
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

test.serial('a clean-up that fails, or is held up, fails no write', async (t) => {
  const { database } = t.context;
  const { client } = await database.gateway();
  const customerId = await customerOf(database);
  await addKeys(database, 'held', 10, '26 hours');
  await database.primary.query("begin; select from gateway.idempotency where key like 'held%' for update");
  await created(client, { naam: 'x', customerId });
  await database.primary.query('rollback');
  await database.primary.query(
    'revoke execute on function gateway.expire_idempotency_keys(integer) from gateway_writer',
  );
  const another = await database.gateway();
  await created(another.client, { naam: 'x', customerId });
  await new Promise((resolve) => setTimeout(resolve, 100));
  await created(another.client, { naam: 'x', customerId });
  t.is(await left(database, 'held'), 10);
});
