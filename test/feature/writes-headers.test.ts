import { codeOf } from '../support/lists.js';
import { customerOf } from '../support/primary-side.js';
import { gatewayTest } from '../support/workspace.js';
import { created, newKey, patch, post } from '../support/writes.js';

const test = gatewayTest();

test('a write without an Idempotency-Key is refused, and with an empty one', async (t) => {
  const { client, database } = t.context;
  const body = { naam: 'x', customerId: await customerOf(database) };
  t.is(codeOf(await client.request('POST', '/installaties', { body })), 'idempotency_key_missing');
  t.is(codeOf(await post(client, body, { key: '' })), 'idempotency_key_missing');
  const headers = { 'if-match': '"v1"' };
  t.is(codeOf(await client.request('PATCH', '/installaties/x', { body, headers })), 'idempotency_key_missing');
});

test('a key that is not 1 to 255 visible ASCII characters is refused', async (t) => {
  const { client, database } = t.context;
  const body = { naam: 'x', customerId: await customerOf(database) };
  const keys = [
    'a b',
    'é',
    'a\tb',
    '""',
    '"a',
    '"a b"',
    '"a"b"',
    '"a\\x"',
    '"a";q=1',
    'k'.repeat(256),
    `"${'k'.repeat(256)}"`,
  ];
  for (const key of keys) {
    const reply = await post(client, body, { key });
    t.is(reply.status, 400, key);
    t.is(codeOf(reply), 'idempotency_key_invalid', key);
  }
  for (const key of ['k'.repeat(255), `"${'q'.repeat(255)}"`, '~', '!', 'a,b', 'a"']) {
    t.is((await post(client, body, { key })).status, 201, key);
  }
});

test('an Idempotency-Key that is sent twice is refused, also when both are the same', async (t) => {
  const { client, database } = t.context;
  const body = { naam: 'x', customerId: await customerOf(database) };
  for (const keys of [
    ['a', 'a'],
    ['a', 'b'],
    ['', ''],
    ['', 'a'],
  ]) {
    const reply = await client.request('POST', '/installaties', { body, headers: { 'idempotency-key': keys } });
    t.is(codeOf(reply), 'idempotency_key_invalid', keys.join());
  }
});

test('a PATCH without If-Match is refused with 428', async (t) => {
  const reply = await t.context.client.request('PATCH', '/installaties/x', {
    body: {},
    headers: { 'idempotency-key': newKey() },
  });
  t.is(reply.status, 428);
  t.is(codeOf(reply), 'precondition_required');
});

test('an If-Match of * or of anything but a list of entity tags is refused', async (t) => {
  const { client, database } = t.context;
  const { id } = await created(client, { naam: 'x', customerId: await customerOf(database) });
  const values = [
    '*',
    ' * ',
    '',
    'v1',
    '1',
    '"v1',
    'v1"',
    "'v1'",
    'w/"v1"',
    'W/v1',
    '"v1" "v2"',
    '*, "v1"',
    '"v1", *',
    ',',
    '"v 1"',
  ];
  for (const value of values) {
    const reply = await patch(client, id, value, { naam: 'y' });
    t.is(reply.status, 400, value);
    t.is(codeOf(reply), 'if_match_invalid', value);
  }
});

test('an If-Match holds if any of its tags is the version; weak tags never are', async (t) => {
  const { client, database } = t.context;
  const customerId = await customerOf(database);
  const holds = ['"v1"', ' "v1" ', '"v0","v1"', '"v0" , "v1" ,, "v2"', 'W/"v1", "v1"', '"","v1"', ',"v1",'];
  for (const value of holds) {
    const { id } = await created(client, { naam: 'x', customerId });
    t.is((await patch(client, id, value, { naam: 'y' })).status, 200, value);
  }
  const { id } = await created(client, { naam: 'x', customerId });
  for (const value of ['W/"v1"', 'W/"v1", W/"v1"', '"v0"', '"v2"', '"V1"', '"v01"', '"1"', '""', '"v1,v2"', '"*"']) {
    const reply = await patch(client, id, value, { naam: 'y' });
    t.is(reply.status, 412, value);
    t.is(codeOf(reply), 'precondition_failed', value);
    t.is(reply.headers.etag, '"v1"', value);
  }
});

test('several If-Match headers are one list', async (t) => {
  const { client, database } = t.context;
  const { id } = await created(client, { naam: 'x', customerId: await customerOf(database) });
  const headers = { 'idempotency-key': newKey(), 'IF-MATCH': ['"v0"', '"v1"'] };
  t.is((await client.request('PATCH', `/installaties/${id}`, { body: { naam: 'y' }, headers })).status, 200);
});

test('the version also moves when the app changes the row, and then the old tag no longer holds', async (t) => {
  const { client, database } = t.context;
  const { id } = await created(client, { naam: 'x', customerId: await customerOf(database) });
  await database.primary.query("update app.installaties set interne_notities = 'door de app' where id = $1", [id]);
  const refused = await patch(client, id, '"v1"', { naam: 'y' });
  t.is(refused.status, 412);
  t.is(refused.headers.etag, '"v2"');
  const read = await client.get(`/installaties/${id}`);
  t.is(read.headers.etag, '"v2"');
  t.is((await patch(client, id, '"v2"', { naam: 'y' })).headers.etag, '"v3"');
});

test('the ETag is the same in the write response, from the primary and from the replica', async (t) => {
  const { client, database } = t.context;
  const { id } = await created(client, { naam: 'x', customerId: await customerOf(database) });
  const { headers } = await patch(client, id, '"v1"', { naam: 'y' });
  await database.caughtUp();
  const other = await database.gateway();
  t.is((await other.client.get(`/installaties/${id}`)).headers.etag, headers.etag);
  t.is((await client.get(`/installaties/${id}`, { headers: { 'if-none-match': headers.etag } })).status, 304);
  t.is((await patch(client, id, headers.etag as string, {})).headers.etag, headers.etag);
});
