import { app } from '../support/app.js';
import { faultsOf, listNames, type Page, page, pages, records } from '../support/lists.js';
import { gatewayTest } from '../support/workspace.js';

const test = gatewayTest({ publicUrl: 'https://data.example.com' });
// One at a time: the client reads and checks large pages in the process that serves them.

for (const list of listNames) {
  test.serial(`${list}: a page says how many rows it has and where the next one starts`, async (t) => {
    const { data, pagination, reply } = await page(t.context.client, `/${list}?perPage=7`);
    t.is(data.length, 7);
    t.deepEqual(Object.keys(reply.json()), ['data', 'pagination']);
    const members = ['page', 'perPage', 'count', 'hasMore', 'nextCursor', 'endCursor', 'next', 'complete'];
    t.deepEqual(Object.keys(pagination), members);
    const { nextCursor, endCursor, next, ...rest } = pagination;
    t.deepEqual(rest, { page: 1, perPage: 7, count: 7, hasMore: true, complete: true } as object);
    t.regex(endCursor, /^[A-Za-z0-9_-]+$/);
    t.is(nextCursor, endCursor);
    t.is(next, `https://data.example.com/api/v1/${list}?perPage=7&cursor=${nextCursor}`);
    t.true(reply.text.endsWith('"complete":true}}'));
  });

  test.serial(`${list}: the Link header has the next page of the body, and the first one`, async (t) => {
    const { pagination, reply } = await page(t.context.client, `/${list}?perPage=7&total=true`);
    const first = `<https://data.example.com/api/v1/${list}?perPage=7&total=true>; rel="first"`;
    t.is(reply.headers.link, `<${pagination.next}>; rel="next", ${first}`);
  });

  test.serial(
    `${list}: the last page has neither next nor nextCursor, yet an endCursor behind which new rows will come`,
    async (t) => {
      const { client } = t.context;
      const all = await page(client, `/${list}?perPage=10000`);
      t.false(all.pagination.hasMore);
      t.is(all.pagination.next, null);
      t.is(all.pagination.nextCursor, null);
      t.false(all.reply.headers.link?.includes('rel="next"'));
      t.true(all.reply.headers.link?.endsWith('rel="first"'));
      const behind = await page(client, `/${list}?cursor=${all.pagination.endCursor}`);
      t.deepEqual(behind.data, []);
      t.is(behind.pagination.page, null);
      const place = (cursor: string): string =>
        Buffer.from(cursor, 'base64url').subarray(12).toString().replace(/^\d*/, '');
      t.is(behind.pagination.nextCursor, null);
      t.is(place(behind.pagination.endCursor), place(all.pagination.endCursor));
    },
  );

  test.serial(`${list}: a page that just ends with the list is the last one`, async (t) => {
    const { client } = t.context;
    const { length } = await records(client, `/${list}?perPage=10000`);
    for (const size of [length, length + 1]) {
      const exact = await page(client, `/${list}?perPage=${size}`);
      t.is(exact.pagination.count, length);
      t.false(exact.pagination.hasMore);
    }
    t.true((await page(client, `/${list}?perPage=${length - 1}`)).pagination.hasMore);
  });

  test.serial(`${list}: past the end there is an empty page`, async (t) => {
    for (const query of ['page=9999', 'page=2&perPage=10000', 'page=101&perPage=10000']) {
      const { data, pagination, reply } = await page(t.context.client, `/${list}?${query}`);
      t.deepEqual(data, []);
      t.is(pagination.count, 0);
      t.false(pagination.hasMore);
      t.is(pagination.next, null);
      t.is(pagination.nextCursor, null);
      t.regex(pagination.endCursor, /^[A-Za-z0-9_-]+$/);
      t.false(reply.headers.link?.includes('next'));
    }
  });

  test.serial(`${list}: a page reached by number is the page reached by walking`, async (t) => {
    const { database } = t.context;
    const walked = await records(t.context.client, `/${list}?perPage=100`);
    const token = await database.token(); // has walked nothing yet
    for (const number of [3, 2, 7, 1]) {
      const { data, pagination } = await page(t.context.client, `/${list}?page=${number}&perPage=100`, { token });
      t.is(pagination.page, number);
      t.deepEqual(data, walked.slice((number - 1) * 100, number * 100));
    }
  });

  test.serial(`${list}: total is exact, and only there when asked for`, async (t) => {
    const { client, database } = t.context;
    const { rows } = await database.primary.query<{ count: string }>(
      `select count(*) from probe.${list} where workspace_id = $1`,
      [database.workspaces[0]?.id],
    );
    const total = Number(rows[0]?.count);
    const first = await page(client, `/${list}?perPage=3&total=true`);
    t.is(first.pagination.total, total);
    t.deepEqual(Object.keys(first.pagination).slice(-2), ['total', 'complete']);
    const { next } = first.pagination;
    const second = await page(client, (next as string).split('/api/v1')[1] as string);
    t.is(second.pagination.total, total, 'the next page is asked for in the same way');
    t.is((await page(client, `/${list}?total=true&page=9999`)).pagination.total, total);
    t.false('total' in (await page(client, `/${list}?total=false`)).pagination);
    t.is((await records(client, `/${list}?perPage=1000`)).length, total);
  });
}

test.serial(
  'a page number may skip so many rows from the nearest page read; further away it is refused, and pages that follow each other are not',
  async (t) => {
    const { database } = t.context;
    const { client } = await database.gateway({ skipRowsMax: 30 });
    for (const list of listNames) {
      const token = await database.token();
      t.is((await client.get(`/${list}?perPage=10&page=4`, { token })).status, 200, 'as many as allowed');
      for (const jump of ['perPage=10&page=9', 'perPage=31&page=2', 'page=999999999&total=true']) {
        const refused = await client.get(`/${list}?${jump}`, { token });
        t.deepEqual([refused.status, faultsOf(refused)], [400, ['page out_of_range']]);
        t.regex(refused.json<{ detail: string }>().detail, /at most 30 .* cursor/);
      }
      for (let number = 4; number < 9; number++) {
        const walked = await page(client, `/${list}?perPage=10&page=${number}`, { token });
        t.is(walked.pagination.page, number);
      }
      const walked = await records(client, `/${list}?perPage=10`);
      for (const number of [12, 16, 15, 10, 6]) {
        const { data } = await page(client, `/${list}?perPage=10&page=${number}`, { token });
        t.deepEqual(data, walked.slice((number - 1) * 10, number * 10), `page ${number}`);
      }
      for (const [other, query] of [
        [await database.token(), 'perPage=10'],
        [await database.token({ workspace: 1 }), 'perPage=10'],
        [token, 'perPage=11'],
        [token, 'perPage=10&order=desc'],
      ] as const) {
        const { status } = await client.get(`/${list}?${query}&page=8`, { token: other });
        t.is(status, 400, 'remembered for its token, page size and order only');
      }
    }
  },
);

test.serial('links name the address the client used when none is configured', async (t) => {
  const { client, gateway } = await t.context.database.gateway({});
  const { pagination } = await page(client, '/klanten?perPage=1');
  t.true(pagination.next?.startsWith(`${gateway.url}/api/v1/klanten?perPage=1&cursor=`));
  const named = await client.get('/klanten?perPage=1', { headers: { host: 'api.example.nl:8443' } });
  t.true(named.json<Page>().pagination.next?.startsWith('http://api.example.nl:8443/api/v1/klanten?'));
});

test.serial('links behind a proxy follow X-Forwarded-Proto and -Host only when the proxy is trusted', async (t) => {
  const headers = {
    'x-forwarded-proto': 'https',
    'x-forwarded-host': 'api.example.nl',
    'x-forwarded-for': '192.0.2.1',
  };
  const [trusting, plain] = [
    await t.context.database.gateway({ trustedProxyHops: 1 }),
    await t.context.database.gateway(),
  ];
  const next = async ({ client }: typeof plain) =>
    (await page(client, '/klanten?perPage=1', { headers })).pagination.next;
  t.true((await next(trusting))?.startsWith('https://api.example.nl/api/v1/klanten?'));
  t.true((await next(plain))?.startsWith(`${plain.gateway.url}/api/v1/klanten?`));
});

test.serial('following next to the end gives the whole list, with its filters', async (t) => {
  const { client } = t.context;
  const filter = `entity=${app.log.order}&from=2021-01-01&to=2022-12-31`;
  const seen: string[] = [];
  for (let path: string | null = `/logboeken?${filter}&perPage=50`; path !== null; ) {
    const { data, pagination }: Page = await page(client, path);
    seen.push(...data.map(({ id }) => id));
    const { next }: { next: string | null } = pagination;
    path = next && (next.split('/api/v1')[1] as string);
    if (path) t.true(path.startsWith(`/logboeken?${filter}&perPage=50&cursor=`));
  }
  t.true(seen.length > 50);
  t.deepEqual(
    seen,
    (await records<{ id: string }>(client, `/logboeken?${filter}&perPage=10000`)).map(({ id }) => id),
  );
  for await (const _ of pages(client, `/logboeken?${filter}`, 'page')) t.pass();
});
