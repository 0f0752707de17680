import type { OpenApiDocument } from '../../src/openapi/document.js';
import { loadSettings } from '../../src/settings.js';
import { codeOf, listNames } from '../support/lists.js';
import { gatewayTest } from '../support/workspace.js';

const test = gatewayTest();

test('the API describes itself without a token, as OpenAPI 3.1', async (t) => {
  const reply = await t.context.client.get('/openapi.json', { token: null });
  t.is(reply.status, 200);
  t.is(reply.headers['content-type'], 'application/json');
  const document = reply.json<OpenApiDocument>();
  t.true(document.openapi.startsWith('3.1.'));
  t.is(reply.headers['api-version'], document.info.version);
});

test('GET /api/v1 is an index that needs no token, whose links lead to what they name', async (t) => {
  const { client, gateway, database } = t.context;
  const reply = await client.get('', { token: null });
  t.is(reply.status, 200);
  const { links, ...rest } = reply.json<{ links: Record<string, string> }>();
  t.deepEqual(rest as object, { name: 'Workspace data API', version: reply.headers['api-version'] });
  t.deepEqual(Object.keys(links).sort(), ['openapi', 'self', ...listNames].sort());
  for (const link of Object.values(links)) {
    const headers = { authorization: `Bearer ${t.context.token}` };
    t.is((await fetch(gateway.url + link, { headers })).status, 200, link);
  }
  const known = await client.get('', { headers: { 'if-none-match': reply.headers.etag as string } });
  t.is(known.status, 304);
  const elsewhere = await database.gateway({ publicUrl: 'https://data.example.com' });
  const { self } = (await elsewhere.client.get('')).json<{ links: Record<string, string> }>().links;
  t.is(self, 'https://data.example.com/api/v1');
});

test('the document describes every endpoint, its scope and its parameters', async (t) => {
  const { paths, components } = (await t.context.client.get('/openapi.json')).json<OpenApiDocument>();
  const reads = listNames.flatMap((list) => (list === 'logboeken' ? [`/${list}`] : [`/${list}`, `/${list}/{id}`]));
  const sync = listNames.flatMap((list) => ['', '/digest', '/ids'].map((end) => `/sync/${list}${end}`));
  t.deepEqual(Object.keys(paths).sort(), [...reads, ...sync, '/openapi.json', '/token', '/v1'].sort());
  for (const path of reads) {
    t.is(paths[path]?.get?.['x-required-scope'], `read:${path.split('/')[1]}`);
  }
  const named = (path: string) =>
    paths[path]?.get?.parameters.map(({ $ref }) => components.parameters[$ref.split('/').at(-1) as string]?.name);
  t.deepEqual(named('/logboeken'), [
    'perPage',
    'page',
    'cursor',
    'total',
    'order',
    'ids',
    'entity',
    'entityId',
    'from',
    'to',
    'actie',
    'X-Request-Id',
  ]);
  t.deepEqual(named('/werkbonnen'), [
    'perPage',
    'page',
    'cursor',
    'total',
    'order',
    'ids',
    'installationId',
    'from',
    'to',
    'updatedSince',
    'status',
    'nummer',
    'X-Request-Id',
  ]);
});

test('the document follows the settings of its gateway', async (t) => {
  const { client } = await t.context.database.gateway({ perPageDefault: 25, perPageMax: 50 });
  const { components } = (await client.get('/openapi.json')).json<OpenApiDocument>();
  t.like(components.parameters.perPage?.schema, { default: 25, maximum: 50 });
});

test('the document does not depend on a token, be it valid, wrong or absent', async (t) => {
  const { client } = t.context;
  const texts = new Set<string>();
  for (const token of [t.context.token, 'x', null]) texts.add((await client.get('/openapi.json', { token })).text);
  t.is(texts.size, 1);
});

const codings = ['br', 'gzip', 'identity'];

test('the document comes compressed if the client asks for it, with a strong ETag per content coding', async (t) => {
  const plain = await t.context.client.get('/openapi.json');
  const etags = new Set<string>();
  for (const coding of codings) {
    const reply = await t.context.client.get('/openapi.json', { headers: { 'accept-encoding': coding } });
    t.is(reply.status, 200);
    t.is(reply.headers['content-encoding'], coding === 'identity' ? undefined : coding);
    t.is(reply.headers.vary, 'Accept-Encoding');
    t.is(reply.text, plain.text);
    t.regex(reply.headers.etag as string, /^"[^"]+"$/);
    etags.add(reply.headers.etag as string);
    if (coding !== 'identity') t.true(reply.bytes.length < plain.bytes.length / 8);
  }
  t.is(etags.size, codings.length);
  t.true(etags.has(plain.headers.etag as string));
});

test('a client that has the document gets 304 without a body, and the document after the ETag of another coding', async (t) => {
  const { client } = t.context;
  const get = (coding: string, ifNoneMatch?: string, method = 'GET') =>
    client.request(method, '/openapi.json', {
      headers: { 'accept-encoding': coding, ...(ifNoneMatch && { 'if-none-match': ifNoneMatch }) },
    });
  for (const coding of codings) {
    const etag = (await get(coding)).headers.etag as string;
    for (const known of [etag, `W/${etag}`, `"other", ${etag}`, '*']) {
      for (const method of ['GET', 'HEAD']) {
        const reply = await get(coding, known, method);
        t.is(reply.status, 304, known);
        t.is(reply.bytes.length, 0);
        t.is(reply.headers.etag, etag);
        t.is(reply.headers.vary, 'Accept-Encoding');
      }
    }
    const others = codings.filter((each) => each !== coding);
    for (const other of others) t.is((await get(other, etag)).status, 200, `${coding} ${other}`);
    t.is((await get(coding, '"other"')).status, 200);
    t.is((await get(coding, 'no tag')).status, 200);
  }
});

test('requests for the document are limited per client address, an IPv6 /64 being a client', async (t) => {
  const { client } = await t.context.database.gateway({ publicRequestsPerMinute: 3, trustedProxyHops: 1 });
  const get = (address: string, path = '/openapi.json', method = 'GET') =>
    client.request(method, path, { headers: { 'x-forwarded-for': address } });
  const addresses = [
    ['192.0.2.1', '192.0.2.1', '192.0.2.1', '192.0.2.1'],
    ['2001:db8:0:1::1', '2001:db8:0:1::2', '2001:db8:0:1:ffff::3', '2001:db8:0:1:1:2:3:4'],
  ];
  for (const [first, second, third, fourth] of addresses as [string, string, string, string][]) {
    t.is((await get(first)).status, 200);
    t.is((await get(second, '/openapi.json', 'HEAD')).status, 200);
    t.is((await get(third, '?x=1')).status, 400);
    const limited = await get(fourth);
    t.is(limited.status, 429);
    t.is(codeOf(limited), 'rate_limited');
    t.regex(limited.headers['retry-after'] as string, /^([1-9]|[1-5]\d|60)$/);
    t.is(limited.headers.ratelimit, undefined);
    t.is((await get(first, '/klanten?perPage=1')).status, 200);
    t.is((await get(first, '/openapi.json', 'OPTIONS')).status, 204);
  }
  t.is((await get('2001:db8:0:2::1')).status, 200);
  t.is((await get('198.51.100.7')).status, 200);
});

test('by default an address may ask for the document 60 times a minute', async (t) => {
  t.is(loadSettings({}).publicRequestsPerMinute, 60);
});
