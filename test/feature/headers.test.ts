import type { ApiReply, RequestOptions } from '../support/client.js';
import { listEncodings } from '../support/decompressed.js';
import { codeOf, idsOf, listNames, type Page, page } from '../support/lists.js';
import { withoutCursors } from '../support/page-reader.js';
import { words } from '../support/words.js';
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
    for (const path of ['/klanten?perPage=1', '/klanten?perPage=0', '/facturen'])
      t.is((await client.get(path, { headers: { 'x-request-id': id } })).headers['x-request-id'], id);
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
    t.deepEqual(idsOf(behind.data), idsOf(rows));
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

const detailed = ['klanten', 'installaties', 'werkbonnen'] as const;

for (const list of detailed) {
  test(`a record of ${list} can be read by its id, is the record of the list, and is never compressed`, async (t) => {
    const { client } = t.context;
    const [record] = (await client.get(`/${list}?perPage=1`)).json<Page>().data;
    const reply = await client.get(`/${list}/${record?.id}`, { headers: { 'accept-encoding': 'gzip, br' } });
    t.is(reply.status, 200);
    t.is(reply.headers['content-encoding'], undefined);
    t.deepEqual(reply.json(), record);
  });
}

test('HEAD answers as GET does, without the body', async (t) => {
  const { client } = t.context;
  const [record] = (await client.get('/installaties?perPage=1')).json<Page>().data;
  for (const path of [...listNames.map((list) => `/${list}`), `/installaties/${record?.id}`, '/openapi.json', '']) {
    const [got, head] = [await client.get(path), await client.request('HEAD', path)];
    t.is(head.status, 200, path);
    t.is(head.text, '');
    for (const name of ['content-type', 'content-length', 'etag'])
      t.is(head.headers[name], got.headers[name], `${path} ${name}`);
    t.is(linkOf(head), linkOf(got), path);
  }
  const unknown = await client.request('HEAD', '/klanten/onbekend');
  t.deepEqual([unknown.status, unknown.text], [404, '']);
});

function linkOf({ headers }: ApiReply): string {
  return String(headers.link).replace(/cursor=[\w-]+/, 'cursor=…');
}

test('OPTIONS names the methods of a path and asks for no token', async (t) => {
  for (const path of ['/klanten', '/klanten/x', '/installaties', '/werkbonnen/x', '/logboeken', '/openapi.json', '']) {
    const reply = await t.context.client.request('OPTIONS', path, { token: null });
    t.is(reply.status, 204, path);
    const allow = (reply.headers.allow as string).split(', ');
    for (const method of ['GET', 'HEAD', 'OPTIONS']) t.true(allow.includes(method), `${path} ${method}`);
    t.false(allow.includes('DELETE'));
  }
});

for (const method of ['POST', 'PUT', 'PATCH', 'DELETE', 'TRACE', 'PROPFIND', 'MKCOL', 'PURGE', 'SEARCH']) {
  test(`${method} on a list of customers is a 405 that names the methods, with any token and without one`, async (t) => {
    for (const token of [undefined, null]) {
      const options = token === undefined ? {} : { token };
      for (const path of ['/klanten', '/klanten/x', '/logboeken', '/openapi.json', '']) {
        const reply = await t.context.client.request(method, path, options);
        t.is(reply.status, 405, path);
        t.is(codeOf(reply), 'method_not_allowed');
        t.is(reply.headers.allow, 'GET, HEAD, OPTIONS');
      }
    }
  });
}

for (const path of words(`
  /facturen /klanten/ /klanten/x/ /klanten/x/adres //klanten /./klanten /Klanten /KLANTEN /klanten%2F /logboeken/1
  /openapi.yaml /openapi.json/ /../v1/klanten`)) {
  test(`there is nothing at "${path}", with or without a token`, async (t) => {
    for (const token of [t.context.token, null]) {
      const reply = await t.context.client.get(path, { token });
      t.is(reply.status, 404);
      t.is(codeOf(reply), 'not_found');
      t.is(reply.headers.ratelimit === undefined, token === null);
    }
  });
}

test('there is nothing outside the prefix, nor under another version or case', async (t) => {
  const { gateway } = t.context;
  for (const path of ['/klanten', '/api/v2/klanten', '/API/v1/klanten', '/livez', '/metrics', '/docs'])
    t.is((await fetch(gateway.url + path)).status, 404, path);
});

for (const id of ['onbekend', '%00', '%', '%E0%A4%A', '..', "'", '1', `${'a'.repeat(300)}`, '%2e%2e%2fklanten']) {
  test(`an impossible id, "${id.slice(0, 20)}", is answered like an unknown id`, async (t) => {
    const { client } = t.context;
    for (const list of detailed) {
      const [odd, unknown] = [
        await client.get(`/${list}/${id}`),
        await client.get(`/${list}/00000000-0000-4000-8000-000000000000`),
      ];
      t.is(unknown.status, 404);
      t.is(odd.status, 404, list);
      const body = (text: string) => text.replace(/"requestId":"[^"]*"/, '');
      t.is(body(odd.text), body(unknown.text));
    }
  });
}

test('an id in capitals is another id', async (t) => {
  const { client } = t.context;
  const [record] = (await client.get('/klanten?perPage=1')).json<Page>().data;
  t.is((await client.get(`/klanten/${record?.id.toUpperCase()}`)).status, 404);
});

const inSmallChunks = gatewayTest({ chunkRowsMax: 100, chunkBytes: 16_384 });
// One at a time: the client reads and checks large pages in the process that serves them.

inSmallChunks.serial('a client that takes JSON, or anything, gets JSON', async (t) => {
  for (const accept of [
    ...['application/json', '*/*', 'application/*', 'text/html, application/json;q=0.1', 'text/html,*/*;q=0.5'],
    ...['Application/JSON', ''],
  ]) {
    for (const path of ['/klanten?perPage=1', '/openapi.json']) {
      const reply = await t.context.client.get(path, { headers: { accept } });
      t.is(reply.status, 200, accept);
      t.is(reply.headers['content-type'], 'application/json');
    }
  }
});

inSmallChunks.serial('a client that takes no JSON gets a 406, in problem+json all the same', async (t) => {
  for (const accept of [
    ...['text/html', 'application/xml', 'text/csv, text/plain', 'application/json;q=0', '*/*;q=0'],
    ...['application/json;q=0, text/*'],
  ]) {
    for (const path of ['/klanten', '/klanten/x', '/openapi.json']) {
      const reply = await t.context.client.get(path, { headers: { accept } });
      t.is(reply.status, 406, accept);
      t.is(codeOf(reply), 'not_acceptable');
      t.is(reply.headers['content-type'], 'application/problem+json');
    }
  }
});

inSmallChunks.serial(
  'an Accept of more than a thousand characters is disregarded, because reading it takes too long',
  async (t) => {
    for (const accept of [`"${','.repeat(15_000)}`, 'text/html,'.repeat(110)])
      t.is((await t.context.client.get('/klanten?perPage=1', { headers: { accept } })).status, 200);
    t.is((await t.context.client.get('/klanten', { headers: { accept: 'text/html,'.repeat(99) } })).status, 406);
  },
);

for (const list of listNames) {
  inSmallChunks.serial(
    `${list}: every encoding holds the same bytes as identity, whether sent at once or in pieces`,
    async (t) => {
      for (const query of ['perPage=50', 'perPage=700']) {
        const plain = await t.context.client.get(`/${list}?${query}`);
        t.is(plain.headers['content-encoding'], undefined);
        t.true(plain.headers.vary?.includes('Accept-Encoding'));
        for (const encoding of listEncodings) {
          const packed = await t.context.client.get(`/${list}?${query}`, { headers: { 'accept-encoding': encoding } });
          t.is(packed.headers['content-encoding'], encoding);
          t.true(packed.headers.vary?.includes('Accept-Encoding'));
          t.true(packed.bytes.length < plain.bytes.length / 2, `${packed.bytes.length} of ${plain.bytes.length}`);
          t.is(withoutCursors(packed.text), withoutCursors(plain.text));
        }
      }
    },
  );
}

inSmallChunks.serial('the encoding is the one the client prefers, and of equal ones br', async (t) => {
  const chosen: Record<string, string | undefined> = {
    'gzip, deflate, br, zstd': 'br',
    'gzip;q=0.5, br': 'br',
    'br;q=0, gzip': 'gzip',
    'gzip;q=0, br;q=0': undefined,
    'gzip;q=0.2, br;q=0.1': 'gzip',
    'gzip;q=0': undefined,
    identity: undefined,
    'identity;q=1, gzip;q=0.5': undefined,
    'identity;q=0.5, gzip;q=0.5': 'gzip',
    deflate: undefined,
    zstd: undefined,
    'zstd;q=0.9, gzip': 'gzip',
    '*;q=0': undefined,
    '*': 'br',
    '*;q=0.5, gzip;q=0.4': 'br',
    '': undefined,
    GZIP: 'gzip',
    'gzip ; Q=0.5': 'gzip',
    'gzip;q=x': undefined,
  };
  for (const [accepted, encoding] of Object.entries(chosen)) {
    const reply = await t.context.client.get('/werkbonnen?perPage=50', { headers: { 'accept-encoding': accepted } });
    t.is(reply.status, 200);
    t.is(reply.headers['content-encoding'], encoding, accepted);
    t.is(reply.json<Page>().data.length, 50);
  }
});

inSmallChunks.serial('problems are never compressed', async (t) => {
  const query = Array.from({ length: 60 }, (_, i) => `onbekend${i}=1`).join('&');
  const reply = await t.context.client.get(`/klanten?${query}`, { headers: { 'accept-encoding': 'gzip, br' } });
  t.is(reply.status, 400);
  t.is(reply.headers['content-encoding'], undefined);
});

inSmallChunks.serial('HEAD names the encoding that GET would have', async (t) => {
  for (const query of ['perPage=50', 'perPage=700']) {
    const options = { headers: { 'accept-encoding': 'gzip' } };
    const reply = await t.context.client.request('HEAD', `/werkbonnen?${query}`, options);
    t.is(reply.headers['content-encoding'], 'gzip');
    t.is(reply.text, '');
  }
});

inSmallChunks('a large page in br has a window of 256 KB, so that many slow clients cost little memory', async (t) => {
  const br = await t.context.client.get('/werkbonnen?perPage=700', { headers: { 'accept-encoding': 'br' } });
  t.true(br.text.endsWith('"complete":true}}'));
  t.is((br.bytes[0] as number) & 0b1111, 0b0011, 'WBITS of 18 (RFC 7932 §9.1)');
});
