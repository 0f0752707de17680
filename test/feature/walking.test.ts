import { mock } from 'node:test';
import type pg from 'pg';
import type { ApiReply } from '../support/client.js';
import { faultsOf, idsOf, type ListName, listNames, page, pages, records } from '../support/lists.js';
import { eventually, gatewayTest, type TestDatabase } from '../support/workspace.js';

// Small chunks, so that a large page is made of many statements and rows come in between them.
const test = gatewayTest({ chunkRowsMax: 40, chunkBytes: 16_384 }).serial;

const order: Readonly<Record<ListName, string>> = {
  klanten: 'l.created_at, l.id',
  installaties: 'l.created_at, l.id',
  werkbonnen: 'l.datum, l.id',
  logboeken: 'l.tijdstip, l.id',
};

async function idsInOrder({ primary, workspaces }: TestDatabase, list: ListName): Promise<string[]> {
  const { rows } = await primary.query<{ id: string }>(
    `select l.id::text from probe.${list} l where workspace_id = $1 order by ${order[list]}`,
    [workspaces[0]?.id],
  );
  return rows.map(({ id }) => id);
}

for (const list of listNames) {
  for (const by of ['cursor', 'page'] as const) {
    for (const perPage of [33, 400]) {
      test(`${list}, ${perPage} at a time by ${by}: every row once while rows are inserted`, async (t) => {
        const { client, database } = t.context;
        const before = await idsInOrder(database, list);
        await database.caughtUp();
        const walk = async () => {
          const ids: string[] = [];
          for await (const { data } of pages(client, `/${list}?perPage=${perPage}`, by))
            ids.push(...data.map(({ id }) => id));
          return ids;
        };
        const { result: walked, inserted } = await whileInserting(
          database.primary,
          list,
          database.workspaces[0]?.id,
          walk,
        );
        t.true(inserted > 0);
        if (walked.length === before.length) t.log('none of the new rows came along');
        t.is(new Set(walked).size, walked.length, 'no row came twice');
        const there = new Set(before);
        const old = walked.filter((id) => there.has(id));
        t.deepEqual(old, before, 'every row that was there throughout came, in order');
        const place = new Map((await idsInOrder(database, list)).map((id, at) => [id, at]));
        const places = walked.map((id) => place.get(id) as number);
        t.true(
          places.every((at, i) => i === 0 || at > (places[i - 1] as number)),
          'the whole walk is in order',
        );
      });
    }
  }

  test(`${list}: rows that share their moment or day are not lost between pages of one row`, async (t) => {
    const { client, database } = t.context;
    const { rows } = await database.primary.query<{ id: string }>(
      `select l.id::text from probe.${list} l
       where workspace_id = $1 and ${order[list].split(',')[0]} = (
         select mode() within group (order by ${order[list].split(',')[0]}) from probe.${list} l where workspace_id = $1)
       order by ${order[list]} limit 8`,
      [database.workspaces[0]?.id],
    );
    t.true(rows.length >= 5);
    await database.caughtUp();
    const all: string[] = [];
    let cursorBefore: string | undefined;
    for await (const { data, pagination } of pages(client, `/${list}?perPage=10`)) {
      all.push(...data.map(({ id }) => id));
      if (all.includes(rows[0]?.id as string)) break;
      cursorBefore = pagination.endCursor;
    }
    let cursor = cursorBefore;
    const single: string[] = [];
    while (!single.includes(rows.at(-1)?.id as string) && single.length < 60) {
      const from = cursor === undefined ? '' : `&cursor=${cursor}`;
      const reply = await client.get(`/${list}?perPage=1${from}`);
      const { data, pagination } = reply.json<{ data: { id: string }[]; pagination: { endCursor: string } }>();
      single.push(data[0]?.id as string);
      cursor = pagination.endCursor;
    }
    const tied = new Set(rows.map(({ id }) => id));
    const inOrder = single.filter((id) => tied.has(id));
    t.deepEqual(inOrder, idsOf(rows));
  });
}

test('a page of 10,000 rows that is sent in pieces has every row once and says that it is whole', async (t) => {
  const { client, database } = t.context;
  const before = await idsInOrder(database, 'logboeken');
  await database.caughtUp();
  const reply = await client.get('/logboeken?perPage=10000&total=true');
  const { data, pagination } = reply.json<{ data: { id: string }[]; pagination: { count: number; total: number } }>();
  const ids = data.map(({ id }) => id);
  t.deepEqual(ids, before.slice(0, 10_000));
  t.is(pagination.count, data.length);
  t.is(pagination.total, before.length);
  t.is(reply.headers['content-length'], undefined, 'it came in pieces');
  t.true(reply.text.endsWith('"complete":true}}'));
});

test('a walk by page number goes on when the clock is set back an hour', async (t) => {
  const { client } = t.context;
  const rightMs = Date.now();
  const isAhead = ({ headers }: ApiReply): boolean => Date.parse(headers['data-as-of'] as string) > rightMs + 3_000_000;
  mock.timers.enable({ apis: ['Date'], now: rightMs + 3_600_000 });
  try {
    await eventually(t, 'a first page by the clock that is ahead', async () =>
      isAhead(await client.get('/logboeken?perPage=5')),
    );
  } finally {
    mock.timers.reset();
  }
  await eventually(t, 'the right clock', async () => !isAhead(await client.get('/klanten?perPage=1')));
  const second = await client.get('/logboeken?perPage=5&page=2');
  t.is(second.status, 200, second.text);
});

// Small chunks, so that a large page is made of many statements.

for (const list of listNames) {
  test(`${list}: order=desc reverses the list, whatever way it is walked`, async (t) => {
    const { client } = t.context;
    const ascending = idsOf(await records(client, `/${list}?perPage=1000`));
    t.deepEqual(idsOf(await records(client, `/${list}?perPage=1000&order=asc`)), ascending);
    const reversed = [...ascending].reverse();
    for (const by of ['cursor', 'page'] as const) {
      for (const perPage of [33, 400]) {
        const walked: string[] = [];
        for await (const { data } of pages(client, `/${list}?order=desc&perPage=${perPage}`, by))
          walked.push(...idsOf(data));
        t.deepEqual(walked, reversed, `${perPage} by ${by}`);
      }
    }
    const jumped = await page(client, `/${list}?order=desc&perPage=29&page=3`);
    t.deepEqual(idsOf(jumped.data), reversed.slice(58, 87));
    const past = await page(client, `/${list}?order=desc&perPage=1000&page=500`);
    t.deepEqual(past.data, []);
    t.deepEqual((await page(client, `/${list}?order=desc&cursor=${past.pagination.endCursor}`)).data, []);
  });

  test(`${list}: walking backward returns each row once while rows are inserted`, async (t) => {
    const { client, database } = t.context;
    await database.caughtUp();
    const before = idsOf(await records(client, `/${list}?perPage=1000&order=desc`));
    const walk = async () => {
      const walked: string[] = [];
      for await (const { data } of pages(client, `/${list}?order=desc&perPage=200`, 'page'))
        walked.push(...idsOf(data));
      return walked;
    };
    const { result: walked, inserted } = await whileInserting(database.primary, list, database.workspaces[0]?.id, walk);
    t.true(inserted > 0);
    t.is(new Set(walked).size, walked.length);
    const there = new Set(before);
    const old = walked.filter((id) => there.has(id));
    t.deepEqual(old, before);
  });

  test(`${list}: a cursor and the addresses of pages belong to their order`, async (t) => {
    const { client } = t.context;
    const refused = ['cursor invalid_cursor'];
    const [up, down] = [await page(client, `/${list}?perPage=3`), await page(client, `/${list}?perPage=3&order=desc`)];
    t.is((await client.get(`/${list}?order=asc&cursor=${up.pagination.endCursor}`)).status, 200);
    t.deepEqual(faultsOf(await client.get(`/${list}?order=desc&cursor=${up.pagination.endCursor}`)), refused);
    t.deepEqual(faultsOf(await client.get(`/${list}?cursor=${down.pagination.endCursor}`)), refused);
    t.regex(down.pagination.next as string, /[?&]order=desc&/);
    t.regex(down.reply.headers.link as string, /order=desc.*rel="next".*order=desc.*rel="first"/);
    t.notRegex(up.pagination.next as string, /order/);
  });

  test(`${list}: an order that is neither asc nor desc is refused`, async (t) => {
    for (const value of ['DESC', 'ascending', 'desc,asc', '-1', 'createdAt'])
      t.deepEqual(faultsOf(await t.context.client.get(`/${list}?order=${value}`)), ['order invalid'], value);
    t.deepEqual(faultsOf(await t.context.client.get(`/${list}?order=`)), ['order empty_value']);
  });
}

/** SQL that adds ten rows among those of workspace $1: at the moment of a row that is there, or just after it. */
const insertAmong: Readonly<Record<ListName, string>> = {
  klanten: `insert into probe.klanten (id, workspace_id, created_at)
    select probe.new_id(), $1, created_at + jitter from picked`,
  installaties: `insert into probe.installaties (id, workspace_id, klant_id, naam, created_at)
    select probe.new_id(), $1, klant_id, 'tussengevoegd', created_at + jitter from picked`,
  werkbonnen: `insert into probe.werkbonnen (id, workspace_id, installatie_id, nummer, datum, status)
    select probe.new_id(), $1, installatie_id, 'tussen', datum, status from picked`,
  logboeken: `insert into probe.logboeken (workspace_id, tijdstip, entiteit, entiteit_id, actie, actor_type)
    select $1, tijdstip + jitter, 'klant', entiteit_id, 'gewijzigd', 'systeem' from picked`,
};

const rowsMax = 500;

/** Adds rows to a list at random places, ties included, for as long as `work` runs. */
async function whileInserting<T>(
  client: pg.Client,
  list: ListName,
  workspace: string | undefined,
  work: () => Promise<T>,
): Promise<{ result: T; inserted: number }> {
  const sql = `with picked as (
      select *, (random() < 0.5)::int * interval '1 microsecond' as jitter
      from probe.${list} where workspace_id = $1 and random() < 0.05 order by random() limit 10
    ) ${insertAmong[list]}`;
  let working = true;
  let inserted = 0;
  const inserting = (async () => {
    while (working && inserted < rowsMax) {
      inserted += (await client.query(sql, [workspace])).rowCount ?? 0;
      await new Promise((resolve) => setTimeout(resolve, 10)); // a walk must be able to outrun the rows
    }
  })();
  try {
    return { result: await work(), inserted };
  } finally {
    working = false;
    await inserting;
  }
}
