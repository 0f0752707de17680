import { request } from 'node:http';
import { mock } from 'node:test';
import { loadSettings } from '../../src/settings.js';
import { type ApiReply, apiClient } from '../support/client.js';
import { codeOf, faultsOf } from '../support/lists.js';
import { malformed, nested } from '../support/malformed-json.js';
import { customerOf } from '../support/primary-side.js';
import { serveProcess } from '../support/serve-process.js';
import { words } from '../support/words.js';
import { gatewayTest } from '../support/workspace.js';
import { created, newKey, patch, post } from '../support/writes.js';

const test = gatewayTest();
const readOnly = words(`
  id koudemiddel koudemiddelGwp vullingKg interneNotities lmraVerplicht version createdAt updatedAt`);

test('all faults of a body are named at once, each with its place', async (t) => {
  const { client } = t.context;
  const body = {
    naam: '',
    omschrijving: 'o'.repeat(4001),
    locatie: 1,
    merk: ['Daikin'],
    type: { a: 1 },
    serienummer: false,
    bouwjaar: 1899,
    inbedrijfstelling: '2023-02-29',
    koudemiddel: 'R32',
    vullingKg: null,
    kleur: 'wit',
    'a/b~c': 1,
  };
  const faults = [
    ...['/naam too_short', '/naam invalid_format', '/omschrijving too_long', '/locatie invalid_type'],
    ...['/merk invalid_type', '/type invalid_type', '/serienummer invalid_type', '/bouwjaar out_of_range'],
    ...['/inbedrijfstelling invalid_format', '/koudemiddel read_only', '/vullingKg read_only'],
    ...['/kleur unknown_field', '/a~1b~0c unknown_field'],
  ];
  const given = faults.filter((fault) => fault !== '/naam invalid_format');
  const reply = await post(client, body);
  t.is(codeOf(reply), 'invalid_request');
  t.deepEqual(faultsOf(reply).sort(), ['/customerId required', ...given].sort());
  t.deepEqual(faultsOf(await patch(client, 'x', '"v1"', body)).sort(), given.sort());
});

test('each field outside the write scope is read_only, in POST and PATCH, whatever its value', async (t) => {
  const { client, database } = t.context;
  const record = await created(client, { naam: 'x', customerId: await customerOf(database) });
  for (const field of readOnly) {
    for (const value of [record[field], null, 'x', {}]) {
      const bodies = [
        await post(client, { naam: 'x', customerId: record.customerId, [field]: value ?? null }),
        await patch(client, record.id, '"v1"', { [field]: value ?? null }),
      ];
      for (const reply of bodies) t.deepEqual(faultsOf(reply), [`/${field} read_only`]);
    }
  }
});

test('values that PostgreSQL would refuse are faults of the body', async (t) => {
  const { client, database } = t.context;
  const customerId = await customerOf(database);
  const bad: [object, string][] = [
    [{ inbedrijfstelling: '0000-01-01' }, '/inbedrijfstelling invalid_format'],
    [{ inbedrijfstelling: '2020-1-1' }, '/inbedrijfstelling invalid_format'],
    [{ inbedrijfstelling: 'infinity' }, '/inbedrijfstelling invalid_format'],
    [{ inbedrijfstelling: '2020-01-01T00:00:00Z' }, '/inbedrijfstelling invalid_format'],
    [{ bouwjaar: 2101 }, '/bouwjaar out_of_range'],
    [{ bouwjaar: 2019.5 }, '/bouwjaar invalid_type'],
    [{ bouwjaar: '2019' }, '/bouwjaar invalid_type'],
    [{ bouwjaar: 1e15 }, '/bouwjaar out_of_range'],
    [{ naam: ' \t' }, '/naam invalid_format'],
    [{ naam: null }, '/naam not_nullable'],
    [{ customerId: null }, '/customerId not_nullable'],
    [{ customerId: 7 }, '/customerId invalid_type'],
    [{ customerId: `urn:uuid:${customerId}` }, '/customerId invalid_format'],
    [{ customerId: `{${customerId}}` }, '/customerId invalid_format'],
    [{ customerId: `${customerId} ` }, '/customerId invalid_format'],
  ];
  for (const [members, fault] of bad)
    t.deepEqual(faultsOf(await post(client, { naam: 'x', customerId, ...members })), [fault], JSON.stringify(members));
  for (const inbedrijfstelling of ['0001-01-01', '9999-12-31', '2000-02-29'])
    t.is((await created(client, { naam: 'x', customerId, inbedrijfstelling })).inbedrijfstelling, inbedrijfstelling);
});

test('a body that is no object is refused with that fault', async (t) => {
  for (const body of ['[]', '"x"', '7', 'true', 'null']) {
    const reply = await post(t.context.client, body);
    t.is(codeOf(reply), 'invalid_request');
    t.deepEqual(faultsOf(reply), [body === 'null' ? ' not_nullable' : ' invalid_type']);
  }
});

test('only JSON in UTF-8 without a content coding is taken', async (t) => {
  const { client, database } = t.context;
  const body = { naam: 'x', customerId: await customerOf(database) };
  const types = [
    ...['text/plain', 'application/x-www-form-urlencoded', 'multipart/form-data; boundary=x', 'application/jsonp'],
    ...['text/json', '', 'application/json; charset=iso-8859-1', 'application/json; charset="utf-16"'],
    ...['application/merge-patch+json', 'application/json, text/plain', 'application/*'],
  ];
  for (const type of types) {
    const reply = await post(client, body, { headers: { 'content-type': type } });
    t.is(reply.status, 415, type);
    t.is(codeOf(reply), 'unsupported_media_type', type);
  }
  const right = ['APPLICATION/JSON', 'application/json;charset=utf-8', 'application/json; Charset="UTF-8"'];
  for (const type of [...right, 'application/json; profile="a;b"', 'application/json ;'])
    t.is((await post(client, body, { headers: { 'content-type': type } })).status, 201, type);
  for (const coding of ['gzip', 'br', 'deflate', 'gzip, identity'])
    t.is((await post(client, body, { headers: { 'content-encoding': coding } })).status, 415, coding);
  t.is((await post(client, body, { headers: { 'content-encoding': 'identity' } })).status, 201);
  const headers = { 'content-type': 'application/merge-patch+json; charset=UTF-8' };
  t.is((await patch(client, 'x', '"v1"', {}, { headers })).status, 404);
  const merge = await patch(client, 'x', '"v1"', {}, { headers: { 'content-type': 'text/plain' } });
  t.is(merge.headers['accept-patch'], 'application/json, application/merge-patch+json');
});

test('a body of 64 KiB is read, one byte more is refused', async (t) => {
  const { client } = t.context;
  const body = (bytes: number): string => `{"x":"${'é'.repeat((bytes - 8) / 2)}"}`;
  const fits = await post(client, body(65_536));
  t.is(fits.status, 400);
  t.true(faultsOf(fits).includes('/x unknown_field'));
  const reply = await post(client, `${body(65_536)} `);
  t.is(reply.status, 413);
  t.is(codeOf(reply), 'payload_too_large');
});

test('a chunked body that turns out to be too large is refused with 413, and the client gets to read that', async (t) => {
  const { gateway, token } = t.context;
  for (const chunks of [2, 20, 200]) {
    const status = await new Promise<number | undefined>((resolve, reject) => {
      const headers = {
        authorization: `Bearer ${token}`,
        'content-type': 'application/json',
        'idempotency-key': newKey(),
      };
      const sent = request(`${gateway.url}/api/v1/installaties`, { method: 'POST', headers, agent: false }, (reply) => {
        reply.resume();
        resolve(reply.statusCode);
      });
      sent.on('error', reject);
      for (let i = 0; i < chunks; i++) sent.write(' '.repeat(60_000));
      sent.end();
    });
    t.is(status, 413, `${chunks} chunks`);
  }
});

for (const [what, body, ...faults] of malformed) {
  test(`a body with ${what} is refused with the place of the fault`, async (t) => {
    const reply = await post(t.context.client, body);
    t.is(reply.status, 400);
    t.is(codeOf(reply), 'malformed_json');
    t.deepEqual(faultsOf(reply), faults);
  });
}

test('a body may nest 20 deep, and is then checked like any other body', async (t) => {
  const reply = await post(t.context.client, nested(20));
  t.is(codeOf(reply), 'invalid_request');
  t.true(faultsOf(reply).includes('/a unknown_field'));
});

test('numbers that can be held are read however they are written, and other names than __proto__ are only unknown', async (t) => {
  const { client, database } = t.context;
  const customerId = await customerOf(database);
  for (const number of ['2019', '2019.0', '2.019e3', '20190E-1', `2019.${'0'.repeat(1000)}`]) {
    const reply = await post(client, `{"naam":"x","customerId":"${customerId}","bouwjaar":${number}}`);
    t.is(reply.json<{ bouwjaar: number }>().bouwjaar, 2019, number.slice(0, 20));
  }
  const reply = await post(client, '{"constructor":1,"toString":2,"hasOwnProperty":3}');
  t.deepEqual(faultsOf(reply).slice(-3).sort(), [
    '/constructor unknown_field',
    '/hasOwnProperty unknown_field',
    '/toString unknown_field',
  ]);
});

test('a body made to be slow to parse, or to have a long error response, costs no more than another body', async (t) => {
  const { client } = t.context;
  const zeros = '0'.repeat(60_000);
  const name = 'n'.repeat(30_000);
  const hostile = [
    `{"bouwjaar":1${zeros}1}`,
    `{"bouwjaar":1.${zeros}1}`,
    `{"bouwjaar":1e${zeros}1}`,
    `{"naam":"${'\\u0000'.repeat(10_000)}`,
    `{"${name}":{"":0${',"":0'.repeat(6000)}}}`,
    `[${'"\\ud800",'.repeat(7000)}0]`,
    `{${'"a":1e999,'.repeat(6000)}"b":1}`,
    `{${Array.from({ length: 5000 }, (_, i) => `"x${i}":1`).join()}}`,
  ];
  for (const body of hostile) {
    const before = process.cpuUsage(); // the gateway runs in this process; the clock goes on while others have the processor
    const reply = await post(client, body, { unchecked: true });
    const { user, system } = process.cpuUsage(before);
    t.is(reply.status, 400);
    t.true((user + system) / 1000 < 1000, `${body.slice(0, 20)}: ${(user + system) / 1000} ms`);
    t.true(reply.text.length < 1_000_000, `${body.slice(0, 20)}: ${reply.text.length} characters`);
  }
});

test('a key that is not 1 to 255 visible ASCII characters is refused', async (t) => {
  const { client, database } = t.context;
  const body = { naam: 'x', customerId: await customerOf(database) };
  const long = 'k'.repeat(256);
  for (const key of ['a b', 'é', 'a\tb', '""', '"a', '"a b"', '"a"b"', '"a\\x"', '"a";q=1', long, `"${long}"`]) {
    const reply = await post(client, body, { key });
    t.is(reply.status, 400, key);
    t.is(codeOf(reply), 'idempotency_key_invalid', key);
  }
  t.is(codeOf(await post(client, body, { key: '' })), 'idempotency_key_missing');
  for (const key of ['k'.repeat(255), `"${'q'.repeat(255)}"`, '~', '!', 'a,b', 'a"'])
    t.is((await post(client, body, { key })).status, 201, key);
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

test('an If-Match of * or of anything but a list of entity tags is refused', async (t) => {
  const { client, database } = t.context;
  const { id } = await created(client, { naam: 'x', customerId: await customerOf(database) });
  const values = [
    ...['*', ' * ', '', 'v1', '1', '"v1', 'v1"', "'v1'", 'w/"v1"', 'W/v1', '"v1" "v2"', '*, "v1"', '"v1", *', ','],
    ...['"v 1"'],
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

const requests = 20;
const writes = 4;
const limited = gatewayTest({ rateLimitPerMinute: requests, writesPerMinute: writes });

const remainingOf = ({ headers }: ApiReply): number[] =>
  [...(headers.ratelimit as string).matchAll(/"(?:default|writes)";r=(\d+);t=\d+/g)].map(([, left]) => Number(left));

async function statusesOf(count: number, ask: () => Promise<ApiReply>): Promise<number[]> {
  const replies = await Promise.all(Array.from({ length: count }, ask));
  return replies.map(({ status }) => status).sort();
}

limited.serial(
  'a token has its own number of writes a minute; replays and refused bodies count, writes answered 429 count nowhere',
  async (t) => {
    const { client, database } = t.context;
    const [token, other] = [await database.token(), await database.token()];
    const body = { naam: 'begrensd', customerId: await customerOf(database) };
    const replies = [
      await post(client, body, { token, key: 'a' }),
      await post(client, body, { token, key: 'a' }),
      await post(client, {}, { token }),
      await post(client, body, { token }),
      await post(client, body, { token }),
      await post(client, body, { token }),
    ];
    const statuses = replies.map(({ status }) => status);
    t.deepEqual(statuses, [201, 201, 400, 201, 429, 429]);
    const left = replies.map((reply) => remainingOf(reply).join()).join(' ');
    t.is(left, '19,3 18,2 17,1 16,0 16,0 16,0', 'of requests, of writes');
    const refused = replies[5] as ApiReply;
    t.is(codeOf(refused), 'rate_limited');
    t.is(refused.headers['ratelimit-policy'], `"default";q=${requests};w=60, "writes";q=${writes};w=60`);
    t.regex(refused.headers['retry-after'] as string, /^[1-9]\d?$/);
    t.deepEqual(remainingOf(await client.get('/klanten?perPage=1', { token })), [15]);
    t.is((await post(client, body, { token: other })).status, 201);
    const { rows } = await database.primary.query("select from app.installaties where naam = 'begrensd'");
    t.is(rows.length, 3);
  },
);

limited.serial(
  'by default every request of the minute can be a write, and RateLimit names no other limit',
  async (t) => {
    const { database } = t.context;
    const { client, token } = await database.gateway({
      rateLimitPerMinute: 60,
      writesPerMinute: loadSettings({}).writesPerMinute,
    });
    for (let left = 59; left >= 0; left--) {
      const reply = await post(client, {}, { token });
      t.is(reply.status, 400);
      t.is(reply.headers['ratelimit-policy'], '"default";q=60;w=60');
      t.deepEqual(remainingOf(reply), [left]);
    }
    t.is((await post(client, {}, { token })).status, 429);
  },
);

limited.serial('a write that the limit of all requests refuses does not count as a write', async (t) => {
  const { client, database } = t.context;
  const token = await database.token();
  for (let i = 0; i < requests; i++) await client.get('/klanten?perPage=1', { token });
  for (let i = 0; i < writes; i++) t.is((await post(client, {}, { token })).status, 429);
  mock.timers.enable({ apis: ['Date'], now: Date.now() + 60_000 });
  try {
    for (let i = 0; i < writes; i++) t.is((await post(client, {}, { token })).status, 400);
  } finally {
    mock.timers.reset();
  }
});

limited.serial('writes that come together and are answered 429 are not counted as requests', async (t) => {
  const { database } = t.context;
  const { client, gateway } = await database.gateway({ rateLimitPerMinute: 60, writesPerMinute: 30 });
  const workers = await serveProcess({
    ...database.settings,
    logLevel: 'error',
    webConcurrency: 2,
    rateLimitPerMinute: 60,
    writesPerMinute: 30,
  });
  t.teardown(() => workers.stop());
  const times = (count: number, status: number): number[] => new Array<number>(count).fill(status);
  for (const { url } of [gateway, workers]) {
    const token = await database.token();
    const own = apiClient(`${url}/api/v1`, { token });
    t.teardown(() => own.close());
    const written = await statusesOf(60, () => post(own, {}));
    t.deepEqual(written, [...times(30, 400), ...times(30, 429)], url);
    const read = await statusesOf(31, () => own.get('/klanten?perPage=1'));
    t.deepEqual(read, [...times(30, 200), 429], url);
  }
  client.close();
});

// The gateway runs in this process, so its clock can be moved on instead of waited for.
limited.serial('a client that waits for Retry-After is served, also when both limits refuse', async (t) => {
  const { client, database } = t.context;
  const token = await database.token();
  mock.timers.enable({ apis: ['Date'], now: Date.now() });
  try {
    for (let i = 0; i < requests - writes; i++) await client.get('/klanten?perPage=1', { token });
    mock.timers.setTime(Date.now() + 20_000);
    for (let i = 0; i < writes; i++) t.is((await post(client, {}, { token })).status, 400);
    const refused = await post(client, {}, { token });
    t.is(refused.headers['retry-after'], '60');
    t.is((await client.get('/klanten?perPage=1', { token })).headers['retry-after'], '40');
    mock.timers.setTime(Date.now() + 60_000);
    t.is((await post(client, {}, { token })).status, 400);
  } finally {
    mock.timers.reset();
  }
});
