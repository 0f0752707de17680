import type { ApiReply } from '../support/client.js';
import { codeOf, listNames, type Page } from '../support/lists.js';
import { gatewayTest } from '../support/workspace.js';

const test = gatewayTest();
const detailed = ['klanten', 'installaties', 'werkbonnen'] as const;

for (const list of listNames) {
  test(`${list} can be listed`, async (t) => {
    const reply = await t.context.client.get(`/${list}?perPage=3`);
    t.is(reply.status, 200);
    t.is(reply.headers['content-type'], 'application/json');
    t.is(reply.json<Page>().data.length, 3);
  });
}

for (const list of detailed) {
  test(`a record of ${list} can be read by its id, and is the record of the list`, async (t) => {
    const { client } = t.context;
    const [record] = (await client.get(`/${list}?perPage=1`)).json<Page>().data;
    const reply = await client.get(`/${list}/${record?.id}`);
    t.is(reply.status, 200);
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
    for (const name of ['content-type', 'content-length', 'etag']) {
      t.is(head.headers[name], got.headers[name], `${path} ${name}`);
    }
    t.is(linkOf(head), linkOf(got), path);
  }
});

/** The Link header but for its cursor, which carries how current the page was. */
function linkOf({ headers }: ApiReply): string {
  return String(headers.link).replace(/cursor=[\w-]+/, 'cursor=…');
}

test('HEAD of an unknown record is a 404 without a body', async (t) => {
  const reply = await t.context.client.request('HEAD', '/klanten/onbekend');
  t.is(reply.status, 404);
  t.is(reply.text, '');
});

test('OPTIONS names the methods of a path and asks for no token', async (t) => {
  for (const path of ['/klanten', '/klanten/x', '/installaties', '/werkbonnen/x', '/logboeken', '/openapi.json', '']) {
    const reply = await t.context.client.request('OPTIONS', path, { token: null });
    t.is(reply.status, 204, path);
    const allow = (reply.headers.allow as string).split(', ');
    for (const method of ['GET', 'HEAD', 'OPTIONS']) t.true(allow.includes(method), `${path} ${method}`);
    t.false(allow.includes('DELETE'));
  }
});

test('OPTIONS of a path that is not there is a 404', async (t) => {
  const reply = await t.context.client.request('OPTIONS', '/facturen', { token: null });
  t.is(reply.status, 404);
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

for (const path of [
  '/facturen',
  '/',
  '/klanten/',
  '/klanten/x/',
  '/klanten/x/adres',
  '//klanten',
  '/./klanten',
  '/Klanten',
  '/KLANTEN',
  '/%6blanten',
  '/logboeken/1',
  '/openapi.yaml',
  '/openapi.json/',
  '/../v1/klanten',
]) {
  test(`there is nothing at "${path}", with or without a token`, async (t) => {
    for (const token of [t.context.token, null]) {
      const reply = await t.context.client.get(path, { token });
      t.is(reply.status, 404);
      t.is(codeOf(reply), 'not_found');
      t.is(reply.headers.ratelimit, undefined);
    }
  });
}

test('there is nothing outside the prefix, nor under another version or case', async (t) => {
  const { gateway } = t.context;
  for (const path of ['/', '/klanten', '/api/v2/klanten', '/API/v1/klanten', '/livez', '/metrics', '/docs']) {
    t.is((await fetch(gateway.url + path)).status, 404, path);
  }
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
