import { createHash } from 'node:crypto';
import { encodeCursor, makeCursorContext } from '../../src/serve/read/cursor.js';
import { app } from '../support/app.js';
import { faultsOf, idsOf, listNames, type Page, page, pages, records } from '../support/lists.js';
import { gatewayTest } from '../support/workspace.js';

const test = gatewayTest({ publicUrl: 'https://data.example.com' }).serial;
// One at a time: the client reads and checks large pages in the process that serves them.

for (const list of listNames) {
  test(`${list}: a page says how many rows it has and where the next one starts`, async (t) => {
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

  test(`${list}: the Link header has the next page of the body, and the first one`, async (t) => {
    const { pagination, reply } = await page(t.context.client, `/${list}?perPage=7&total=true`);
    const first = `<https://data.example.com/api/v1/${list}?perPage=7&total=true>; rel="first"`;
    t.is(reply.headers.link, `<${pagination.next}>; rel="next", ${first}`);
  });

  test(`${list}: the last page has neither next nor nextCursor, yet an endCursor behind which new rows will come`, async (t) => {
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
  });

  test(`${list}: a page that just ends with the list is the last one`, async (t) => {
    const { client } = t.context;
    const { length } = await records(client, `/${list}?perPage=10000`);
    for (const size of [length, length + 1]) {
      const exact = await page(client, `/${list}?perPage=${size}`);
      t.is(exact.pagination.count, length);
      t.false(exact.pagination.hasMore);
    }
    t.true((await page(client, `/${list}?perPage=${length - 1}`)).pagination.hasMore);
  });

  test(`${list}: past the end there is an empty page`, async (t) => {
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

  test(`${list}: a page reached by number is the page reached by walking`, async (t) => {
    const { database } = t.context;
    const walked = await records(t.context.client, `/${list}?perPage=100`);
    const token = await database.token(); // has walked nothing yet
    for (const number of [3, 2, 7, 1]) {
      const { data, pagination } = await page(t.context.client, `/${list}?page=${number}&perPage=100`, { token });
      t.is(pagination.page, number);
      t.deepEqual(data, walked.slice((number - 1) * 100, number * 100));
    }
  });

  test(`${list}: total is exact, and only there when asked for`, async (t) => {
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

test('a page number may skip so many rows from the nearest page read; further away it is refused, and pages that follow each other are not', async (t) => {
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
    const walked = (await page(client, `/${list}?perPage=160`)).data;
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
});

test('links name the address the client used when none is configured', async (t) => {
  const { client, gateway } = await t.context.database.gateway({});
  const { pagination } = await page(client, '/klanten?perPage=1');
  t.true(pagination.next?.startsWith(`${gateway.url}/api/v1/klanten?perPage=1&cursor=`));
  const named = await client.get('/klanten?perPage=1', { headers: { host: 'api.example.nl:8443' } });
  t.true(named.json<Page>().pagination.next?.startsWith('http://api.example.nl:8443/api/v1/klanten?'));
});

test('links behind a proxy follow X-Forwarded-Proto and -Host only when the proxy is trusted', async (t) => {
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

test('following next to the end gives the whole list, with its filters', async (t) => {
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
  t.deepEqual(seen, idsOf(await records(client, `/logboeken?${filter}&perPage=10000`)));
  for await (const _ of pages(client, `/logboeken?${filter}`, 'page')) t.pass();
});

const cursors = gatewayTest();
const refused = ['cursor invalid_cursor'];

for (const list of listNames) {
  cursors(`${list}: a cursor continues where its page ended, with any page size`, async (t) => {
    const { client } = t.context;
    const all = await records(client, `/${list}?perPage=100`);
    const { pagination } = await page(client, `/${list}?perPage=17`);
    for (const perPage of [1, 5, 100]) {
      const { data } = await page(client, `/${list}?perPage=${perPage}&cursor=${pagination.endCursor}`);
      t.deepEqual(data, all.slice(17, 17 + perPage));
    }
  });

  cursors(`${list}: a damaged cursor is refused, wherever the damage is`, async (t) => {
    const { client } = t.context;
    const { endCursor } = (await page(client, `/${list}?perPage=3`)).pagination;
    const at = (i: number, by: string) => endCursor.slice(0, i) + by + endCursor.slice(i + 1);
    const flipped = [...endCursor].map((was, i) => at(i, was === 'A' ? 'B' : 'A'));
    const others = [
      endCursor.slice(1),
      endCursor.slice(0, -1),
      endCursor.slice(0, 16),
      `${endCursor}A`,
      `${endCursor}AAAA`,
      `${endCursor}%3D`,
      `${endCursor}%20`,
      'x',
      '%00',
      '%F0%9F%98%80',
      'null',
      '../../etc/passwd',
      encodeURIComponent("'; drop table probe.klanten; --"),
      'A'.repeat(3000),
    ];
    for (const cursor of [...flipped, ...others]) {
      const reply = await client.get(`/${list}?cursor=${cursor}`);
      t.is(reply.status, 400, cursor);
      t.deepEqual(faultsOf(reply), refused);
    }
  });

  cursors(`${list}: a cursor of another list or of another workspace is refused`, async (t) => {
    const { client, database } = t.context;
    const other = await database.token({ workspace: 1 });
    const { endCursor } = (await page(client, `/${list}?perPage=3`)).pagination;
    const foreign = await client.get(`/${list}?cursor=${endCursor}`, { token: other });
    t.is(foreign.status, 400);
    t.deepEqual(faultsOf(foreign), refused);
    for (const elsewhere of listNames.filter((name) => name !== list))
      t.deepEqual(faultsOf(await client.get(`/${elsewhere}?cursor=${endCursor}`)), refused);
  });

  cursors(`${list}: forged keys are refused, or seek; they never break anything`, async (t) => {
    const { client, database } = t.context;
    const context = makeCursorContext(database.workspaces[0]?.id as string, list, {});
    const impossible = ['', 'x', 'infinity', "'", '\0', '2026-02-30 00:00:00+00', '294277-01-01 00:00:00+00'];
    const real = ['2026-01-01', '2026-01-01 00:00:00+00', '-1', '00000000-0000-4000-8000-000000000000'];
    const extreme = [
      ...['-infinity', '5874897-12-31', '4713-01-01 BC', '294276-12-31 23:59:59.999999+00'],
      ...['0001-01-01 00:00:00+00', '9999-12-31 23:59:59.999999+00', '9223372036854775808', '9999-12-31'],
    ];
    const parts = [...impossible, ...real, ...extreme];
    const pairs = parts.flatMap((part) => [
      [part, part],
      ...real.flatMap((other) => [
        [part, other],
        [other, part],
      ]),
    ]);
    for (const key of pairs as [string, string][]) {
      const reply = await client.get(`/${list}?perPage=1&cursor=${encodeCursor(context, { key, asOfMs: null })}`);
      t.true(reply.status === 200 || reply.status === 400, `${key}: ${reply.status}`);
    }
    const forge = (payload: string | Buffer) => {
      const digest = createHash('sha256').update(context).update('\0').update(payload).digest().subarray(0, 12);
      return Buffer.concat([digest, Buffer.from(payload)]).toString('base64url');
    };
    for (const payload of [
      '\n',
      '\n\n',
      'a\nb\nc',
      '-1',
      '1e3',
      '1234567890123456',
      '1\n2\n3\n4',
      Buffer.from([0xff, 0x0a, 0xfe]),
      'x'.repeat(1000),
    ]) {
      t.is((await client.get(`/${list}?cursor=${forge(payload)}`)).status, 400);
    }
  });
}

cursors('a cursor with a moment in the future is served like a cursor of now', async (t) => {
  const { client, database } = t.context;
  const { pagination } = await page(client, '/klanten?perPage=3');
  const lines = Buffer.from(pagination.endCursor, 'base64url').subarray(12).toString().split('\0');
  const context = makeCursorContext(database.workspaces[0]?.id as string, 'klanten', {});
  const cursor = encodeCursor(context, { key: lines.slice(1) as [string, string], asOfMs: Date.now() + 86_400_000 });
  const forged = await page(client, `/klanten?perPage=3&cursor=${cursor}`);
  t.deepEqual(forged.data, (await page(client, `/klanten?perPage=3&cursor=${pagination.endCursor}`)).data);
});

cursors('a cursor belongs to the filters it came with', async (t) => {
  const { client } = t.context;
  const filters = `entity=${app.log.order}&from=2020-01-01`;
  const { endCursor } = (await page(client, `/logboeken?${filters}&perPage=3`)).pagination;
  t.is((await client.get(`/logboeken?from=2020-01-01&entity=${app.log.order}&cursor=${endCursor}`)).status, 200);
  for (const other of [
    '',
    `entity=${app.log.order}`,
    `entity=${app.log.customer}&from=2020-01-01`,
    `entity=${app.log.order}&from=2020-01-02`,
    `${filters}&to=2030-01-01`,
  ]) {
    t.deepEqual(faultsOf(await client.get(`/logboeken?${other}&cursor=${endCursor}`)), refused, other);
  }
});

cursors('the cursor of an empty page starts at the beginning once there is something', async (t) => {
  const { client, database } = t.context;
  const filter = 'entity=nieuwsoort';
  const { endCursor } = (await page(client, `/logboeken?${filter}`)).pagination;
  await database.primary.query(
    `insert into probe.logboeken (workspace_id, tijdstip, entiteit, entiteit_id, actie, actor_type)
     values ($1, '2024-01-01', 'nieuwsoort', '1', 'aangemaakt', 'systeem')`,
    [database.workspaces[0]?.id],
  );
  await database.caughtUp();
  t.is((await page(client, `/logboeken?${filter}&cursor=${endCursor}`)).data.length, 1);
});
