import { app } from '../support/app.js';
import { codeOf } from '../support/lists.js';
import { customerOf, logStatements, statementsOn } from '../support/primary-side.js';
import { gatewayTest } from '../support/workspace.js';
import { created, etagOf, newKey, patch, post } from '../support/writes.js';

// Each request has several things wrong with it; the answer tells which one is looked at first.
const test = gatewayTest();
const unknown = app.unknownId;
const wrong = { accept: 'text/html', 'content-type': 'text/plain', 'idempotency-key': '' };
const huge = ' '.repeat(70_000);

test('the token comes first, then the limits, the scope, Accept, the media type and the size', async (t) => {
  const { client, database } = t.context;
  const path = '/installaties?x=1';
  const send = async (headers: object, token?: string): Promise<string> =>
    codeOf(await client.request('POST', path, { body: huge, headers: { ...headers }, ...(token && { token }) }));
  t.is(await send(wrong, 'x'), 'token_invalid');
  const limited = await database.gateway({ rateLimitPerMinute: 1 });
  const poor = await database.token({ scopes: ['read:installaties'] });
  const atLimit = { body: huge, headers: wrong, token: poor };
  t.is(codeOf(await limited.client.request('POST', path, atLimit)), 'insufficient_scope');
  t.is(codeOf(await limited.client.request('POST', path, atLimit)), 'rate_limited');
  const { client: fewWrites } = await database.gateway({ writesPerMinute: 1 });
  t.is(codeOf(await fewWrites.request('POST', path, { ...atLimit, token: 'x' })), 'token_invalid');
  t.is(codeOf(await fewWrites.request('POST', path, atLimit)), 'insufficient_scope');
  t.is(codeOf(await fewWrites.request('POST', path, atLimit)), 'rate_limited');
  t.is(await send(wrong, poor), 'insufficient_scope');
  t.is(await send(wrong), 'not_acceptable');
  t.is(await send({ ...wrong, accept: '*/*' }), 'unsupported_media_type');
  t.is(await send({ 'idempotency-key': '' }), 'payload_too_large');
});

test('then come parameters and headers, a missing If-Match, and the body', async (t) => {
  const { client } = t.context;
  const send = async (path: string, headers: object): Promise<string> =>
    codeOf(await client.request('PATCH', path, { body: '{', headers: { ...headers } }));
  t.is(await send('/installaties/x?x=1', {}), 'invalid_request');
  t.is(await send('/installaties/x', {}), 'idempotency_key_missing');
  t.is(await send('/installaties/x', { 'idempotency-key': 'a b' }), 'idempotency_key_invalid');
  t.is(await send('/installaties/x', { 'idempotency-key': 'a' }), 'precondition_required');
  t.is(await send('/installaties/x', { 'idempotency-key': 'a', 'if-match': '*' }), 'if_match_invalid');
  t.is(await send('/installaties/x', { 'idempotency-key': 'a', 'if-match': '"v1"' }), 'malformed_json');
});

test('then the key, whether the record is there, and its version', async (t) => {
  const { client, database } = t.context;
  const record = await created(client, { naam: 'x', customerId: await customerOf(database) });
  const key = newKey();
  t.is((await patch(client, record.id, etagOf(record), { naam: 'y' }, { key })).status, 200);
  t.is(codeOf(await patch(client, unknown, '"v9"', { naam: 'z' }, { key })), 'idempotency_key_reused');
  t.is(codeOf(await patch(client, unknown, '"v9"', { naam: 'z' })), 'not_found');
  t.is(codeOf(await patch(client, record.id, '"v9"', { naam: 'z' })), 'precondition_failed');
  t.is(codeOf(await patch(client, record.id, '"v9"', { customerId: unknown })), 'invalid_request');
});

test.serial('nothing reaches the primary before the request has been checked', async (t) => {
  const { database } = t.context;
  await logStatements(database);
  const { client } = await database.gateway();
  const customerId = await customerOf(database);
  const poor = await database.token({ scopes: ['read:installaties'] });
  const refused = [
    await post(client, { naam: 'x', customerId }, { token: poor }),
    await post(client, { naam: 'x', customerId }, { key: 'a b' }),
    await post(client, { naam: 'x', customerId }, { headers: { accept: 'text/html' } }),
    await post(client, { naam: 'x', customerId }, { headers: { 'content-type': 'text/plain' } }),
    await post(client, huge),
    await post(client, '{'),
    await post(client, { naam: 'x', customerId, koudemiddel: 'R32' }),
    await post(client, { naam: 'x' }),
    await patch(client, unknown, '*', {}),
    await patch(client, unknown, '"v1"', { bouwjaar: 1 }),
  ];
  t.true(refused.every(({ status }) => status >= 400 && status < 500));
  t.deepEqual(await statementsOn(database), []);
  await created(client, { naam: 'x', customerId });
  t.is((await statementsOn(database, /begin/)).length, 1);
});
