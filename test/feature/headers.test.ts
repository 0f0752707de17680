import type { RequestOptions } from '../support/client.js';
import { type Page, page } from '../support/lists.js';
import { gatewayTest } from '../support/workspace.js';

const test = gatewayTest();

test('every response, whatever its status, carries the common headers', async (t) => {
  const { client, database } = t.context;
  const limited = await t.context.database.gateway({ rateLimitPerMinute: 1 });
  await limited.client.get('/klanten?perPage=1');
  const [record] = (await client.get('/installaties?perPage=1')).json<Page>().data;
  const detail = `/installaties/${record?.id}`;
  const poor = await database.token({ scopes: [] });
  const requests: [number, string, string, RequestOptions?][] = [
    [200, 'GET', '/klanten'],
    [200, 'GET', detail],
    [200, 'HEAD', '/werkbonnen'],
    [200, 'GET', '/openapi.json'],
    [204, 'OPTIONS', '/klanten'],
    [304, 'GET', detail, { headers: { 'if-none-match': '*' } }],
    [400, 'GET', '/klanten?perPage=0'],
    [401, 'GET', '/klanten', { token: null }],
    [403, 'GET', '/klanten', { token: poor }],
    [404, 'GET', '/facturen'],
    [404, 'GET', '/klanten/x'],
    [405, 'DELETE', '/klanten'],
    [406, 'GET', '/klanten', { headers: { accept: 'text/html' } }],
    [412, 'GET', detail, { headers: { 'if-match': '"v0"' } }],
  ];
  const replies = [await limited.client.get('/klanten')];
  for (const [status, method, path, options] of requests) {
    const reply = await client.request(method, path, options);
    t.is(reply.status, status, `${method} ${path}`);
    replies.push(reply);
  }
  t.is(replies[0]?.status, 429);
  const ids = new Set<string>();
  for (const { headers, status } of replies) {
    t.regex(headers['api-version'] as string, /^1\.\d+\.\d+$/, String(status));
    t.is(headers['cache-control'], 'no-store');
    t.is(headers['x-content-type-options'], 'nosniff');
    t.is(headers['content-security-policy'], "default-src 'none'; frame-ancestors 'none'");
    t.is(headers['referrer-policy'], 'no-referrer');
    t.is(headers['x-powered-by'], undefined);
    t.is(headers.server, undefined);
    ids.add(headers['x-request-id'] as string);
  }
  t.is(ids.size, replies.length);
});

test('a problem is a problem+json that names itself and the request', async (t) => {
  const reply = await t.context.client.get('/klanten/x');
  t.is(reply.headers['content-type'], 'application/problem+json');
  const { detail, ...problem } = reply.json<Record<string, unknown>>();
  t.is(typeof detail, 'string');
  t.deepEqual(problem, {
    type: 'urn:workspace-data-api:problem:not_found',
    title: 'Not found',
    status: 404,
    code: 'not_found',
    requestId: reply.headers['x-request-id'],
  });
});

test('a valid request id that came in is kept, also on errors', async (t) => {
  const { client } = t.context;
  for (const id of [
    'abc',
    'A-1_2.3:4/5+6=',
    'x'.repeat(128),
    '00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01',
  ]) {
    for (const path of ['/klanten?perPage=1', '/klanten?perPage=0', '/facturen']) {
      t.is((await client.get(path, { headers: { 'x-request-id': id } })).headers['x-request-id'], id);
    }
  }
});

test('a request id that is not valid is replaced by a new one', async (t) => {
  const { client, log } = t.context;
  for (const id of ['', 'a b', 'a"b', '<script>', 'é', 'x'.repeat(129), ['a', 'b'], '{"x":1}']) {
    const { headers } = await client.get('/klanten?perPage=1', { headers: { 'x-request-id': id } });
    t.regex(headers['x-request-id'] as string, /^[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}$/);
  }
  t.false(log().includes('<script>'));
});

test('reads show their timing and the moment up to which the replica is known to be current', async (t) => {
  const { client, database } = t.context;
  const [record] = (await client.get('/installaties?perPage=1')).json<Page>().data;
  await database.caughtUp();
  for (const path of ['/klanten', '/installaties', '/werkbonnen', '/logboeken', `/installaties/${record?.id}`]) {
    const { headers } = await client.get(path);
    t.regex(headers['server-timing'] as string, /^auth;dur=[\d.]+, db;dur=[\d.]+$/);
    const asOf = headers['data-as-of'] as string;
    t.regex(asOf, /^\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d{3}Z$/);
    const age = Date.now() - Date.parse(asOf);
    t.true(age >= 0 && age < 10_000, `${path}: ${age} ms`);
  }
});

test('all that was committed before Data-As-Of is in the answer', async (t) => {
  const { client, database } = t.context;
  let { pagination } = await page(client, '/klanten?perPage=10000');
  for (let round = 0; round < 3; round++) {
    const { rows } = await database.primary.query<{ id: string }>(
      'insert into app.klanten (id, workspace_id) values (gen_random_uuid(), $1) returning id',
      [database.workspaces[0]?.id],
    );
    const committedMs = Date.now();
    let behind: Page & { reply: { headers: Readonly<Record<string, string>> } };
    do behind = await page(client, `/klanten?cursor=${pagination.endCursor}`);
    while (Date.parse(behind.reply.headers['data-as-of'] as string) < committedMs);
    t.deepEqual(
      behind.data.map(({ id }) => id),
      rows.map(({ id }) => id),
    );
    pagination = behind.pagination;
  }
});

test('Deprecation and Sunset are sent on every response once they are configured', async (t) => {
  const [deprecation, sunset] = ['@1767225600', 'Fri, 01 Jan 2027 00:00:00 GMT'];
  const { client } = await t.context.database.gateway({ deprecation, sunset });
  for (const path of ['/klanten?perPage=1', '/klanten?perPage=0', '/facturen', '/openapi.json']) {
    const { headers } = await client.get(path);
    t.is(headers.deprecation, deprecation);
    t.is(headers.sunset, sunset);
  }
  const { headers } = await t.context.client.get('/klanten?perPage=1');
  t.is(headers.deprecation, undefined);
  t.is(headers.sunset, undefined);
});
