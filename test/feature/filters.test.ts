import { app } from '../support/app.js';
import { faultsOf, idsOf, listNames, page, records } from '../support/lists.js';
import { words } from '../support/words.js';
import type { TestDatabase } from '../support/workspace.js';
import { gatewayTest } from '../support/workspace.js';

const test = gatewayTest();

type Record = { readonly id: string; readonly tijdstip: string };

test('installations of one customer', async (t) => {
  const { client, database } = t.context;
  const customers = await column<string>(
    database,
    'select klant_id from probe.installaties where workspace_id = $1 group by 1 order by count(*) desc, 1 limit 5',
  );
  for (const customer of customers) {
    const found = await records<Record>(client, `/installaties?customerId=${customer}&perPage=2`);
    t.deepEqual(idsOf(found), await ids(database, 'installaties klant_id = $2', customer));
    t.true(found.length > 2);
  }
});

test('work orders of one installation, and between dates, both inclusive', async (t) => {
  const { client, database } = t.context;
  const [installation] = await column<string>(
    database,
    'select installatie_id from probe.werkbonnen where workspace_id = $1 group by 1 order by count(*) desc, 1 limit 1',
  );
  const [first, last] = await column<string>(
    database,
    `select unnest(array[min(datum), max(datum)])::text from probe.werkbonnen where workspace_id = $1 and installatie_id = $2`,
    installation,
  );
  const of = `installationId=${installation}`;
  const cases: [string, string, unknown[]][] = [
    [of, 'installatie_id = $2', [installation]],
    [`from=${first}&to=${first}`, 'datum = $2::date', [first]],
    [`from=${first}&to=${last}&${of}`, 'datum between $2 and $3 and installatie_id = $4', [first, last, installation]],
    [`to=${first}`, 'datum <= $2', [first]],
    [`from=${last}`, 'datum >= $2', [last]],
    [`${of}&to=${first}`, 'datum <= $2 and installatie_id = $3', [first, installation]],
    [`${of}&from=${last}`, 'datum >= $2 and installatie_id = $3', [last, installation]],
  ];
  for (const [query, condition, values] of cases) {
    const found = await records<Record>(client, `/werkbonnen?${query}&perPage=40`);
    t.true(found.length > 0, query);
    t.deepEqual(idsOf(found), await ids(database, `werkbonnen ${condition}`, ...values), query);
  }
});

test('log entries by kind, by entity, and by days, combined with AND', async (t) => {
  const { client, database } = t.context;
  const [entity] = await column<string>(
    database,
    `select entiteit_id from probe.logboeken where workspace_id = $1 and entiteit = $2 group by 1 order by count(*) desc, 1 limit 1`,
    app.log.customer,
  );
  const day = (operator: string, parameter: string) =>
    `(tijdstip at time zone 'Europe/Amsterdam')::date ${operator} ${parameter}::date`;
  const cases: [string, string, unknown[]][] = [
    [`entity=${app.log.customer}`, 'entiteit = $2', [app.log.customer]],
    [`entityId=${entity}`, 'entiteit_id = $2', [entity]],
    [`entity=${app.log.customer}&entityId=${entity}`, 'entiteit = $2 and entiteit_id = $3', [app.log.customer, entity]],
    ['from=2024-05-01', day('>=', '$2'), ['2024-05-01']],
    ['to=2020-05-01', day('<=', '$2'), ['2020-05-01']],
    [
      `entity=${app.log.customer}&from=2022-01-01&to=2022-12-31`,
      `entiteit = $2 and ${day('between $3::date and', '$4')}`,
      [app.log.customer, '2022-01-01', '2022-12-31'],
    ],
  ];
  for (const [query, condition, values] of cases) {
    const found = await records<Record>(client, `/logboeken?${query}&perPage=1000`);
    t.true(found.length > 0, query);
    t.deepEqual(idsOf(found), await ids(database, `logboeken ${condition}`, ...values), query);
  }
  t.deepEqual(
    await records(client, `/logboeken?entity=${app.log.user}&entityId=${entity}`),
    [],
    'an entity of another kind',
  );
});

test('a filter that nothing can match gives an empty page, not an error', async (t) => {
  const { client } = t.context;
  const odd = [
    'onbekend',
    '0',
    '-1',
    '%00',
    "'",
    '%F0%9F%98%80',
    '../x',
    'a'.repeat(1000),
    '00000000-0000-4000-8000-000000000000',
  ];
  for (const id of odd) {
    for (const query of [
      `installaties?customerId=${id}`,
      `werkbonnen?installationId=${id}`,
      `logboeken?entityId=${id}`,
      `logboeken?entity=${id}`,
    ]) {
      for (const more of ['', '&total=true', '&page=2', '&from=2020-01-01'].slice(
        0,
        query.startsWith('inst') ? 3 : 4,
      )) {
        const reply = await client.get(`/${query}${more}`);
        t.is(reply.status, 200, query + more);
        t.deepEqual(reply.json<{ data: unknown[] }>().data, [], query + more);
      }
    }
  }
});

test('an id of another workspace matches nothing', async (t) => {
  const { client, database } = t.context;
  const other = { ...database, workspaces: database.workspaces.slice(1) };
  const [customer] = await column<string>(other, 'select klant_id from probe.installaties where workspace_id = $1');
  const [installation] = await column<string>(
    other,
    'select installatie_id from probe.werkbonnen where workspace_id = $1',
  );
  const [entity] = await column<string>(other, 'select entiteit_id from probe.logboeken where workspace_id = $1');
  t.deepEqual(await records(client, `/installaties?customerId=${customer}`), []);
  t.deepEqual(await records(client, `/werkbonnen?installationId=${installation}`), []);
  t.deepEqual(await records(client, `/logboeken?entityId=${entity}`), []);
});

test('days are days of the configured time zone, also those of 23 and 25 hours and those around New Year', async (t) => {
  const { client, database } = t.context;
  const days = await column<string>(
    database,
    `select distinct ((tijdstip at time zone 'Europe/Amsterdam')::date + step)::text from probe.logboeken, generate_series(-1, 1) step
     where workspace_id = $1 and (tijdstip at time zone 'Europe/Amsterdam')::date in (
       '2021-03-28', '2021-10-31', '2024-03-31', '2024-10-27', '2025-12-31', '2026-03-29', '2026-10-25') order by 1`,
  );
  t.true(days.length >= 15);
  for (const day of days) {
    const found = await records<Record>(client, `/logboeken?from=${day}&to=${day}`);
    t.deepEqual(
      idsOf(found),
      await ids(database, `logboeken (tijdstip at time zone 'Europe/Amsterdam')::date = $2::date`, day),
      day,
    );
  }
  const short = await records<Record>(client, '/logboeken?from=2026-03-29&to=2026-03-29');
  t.true(short.every(({ tijdstip }) => tijdstip >= '2026-03-28T23:00' && tijdstip < '2026-03-29T22:00'));
  const long = await records<Record>(client, '/logboeken?from=2026-10-25&to=2026-10-25');
  t.true(long.every(({ tijdstip }) => tijdstip >= '2026-10-24T22:00' && tijdstip < '2026-10-25T23:00'));
  t.true(
    long.some(({ tijdstip }) => tijdstip >= '2026-10-25T22:00'),
    'the 25th hour',
  );
});

test('entries of more than seven years ago are there as well', async (t) => {
  const found = await records<Record>(t.context.client, '/logboeken?to=2018-12-31');
  t.true(found.some(({ tijdstip }) => tijdstip.startsWith('2016')));
});

for (const list of listNames) {
  test(`${list}: ids gives the records of these ids, in the order of the list, each once`, async (t) => {
    const { client } = t.context;
    const all = idsOf(await records(client, `/${list}?perPage=1000`));
    const chosen = [3, 0, 11, 3, 7].map((i) => all[i] as string);
    const found = await page(client, `/${list}?ids=${chosen}`);
    const expected = [0, 3, 7, 11].map((i) => all[i] as string);
    t.deepEqual(idsOf(found.data), expected);
    const hundred = all.slice(0, 100);
    const walked = await records(client, `/${list}?perPage=7&total=true&ids=${hundred}`);
    t.deepEqual(idsOf(walked), hundred);
    const reply = await client.get(`/${list}?perPage=7&ids=${hundred}`);
    const { next } = reply.json<{ pagination: { next: string } }>().pagination;
    t.true(next.includes(`ids=${hundred}`), 'with each comma escaped it would be longer than what the client sent');
  });

  test(`${list}: ids that cannot exist, or are another workspace's, match nothing`, async (t) => {
    const { client, database } = t.context;
    const [first] = (await page(client, `/${list}?perPage=1`)).data;
    const other = await database.token({ workspace: 1 });
    t.deepEqual((await page(client, `/${list}?ids=${first?.id}`, { token: other })).data, []);
    const odd = ['onbekend', '0', '%00', "'", '%22', '%5C', '%7B%7D', 'NULL', '00000000-0000-4000-8000-000000000000'];
    for (const id of odd) {
      t.deepEqual((await page(client, `/${list}?ids=${id}`)).data, [], id);
      t.deepEqual(idsOf((await page(client, `/${list}?ids=${id},${first?.id}`)).data), [first?.id], id);
    }
  });

  test(`${list}: an empty element and more than 100 ids are refused`, async (t) => {
    const { client } = t.context;
    const many = (count: number): string => Array.from({ length: count }, (_, i) => i + 1).join(',');
    t.is((await client.get(`/${list}?ids=${many(100)}`)).status, 200);
    for (const [value, faults] of [
      [many(101), ['ids out_of_range']],
      [',', ['ids empty_value']],
      ['1,', ['ids empty_value']],
      ['1,,2', ['ids empty_value']],
      [`${many(101)},`, ['ids empty_value', 'ids out_of_range']],
    ] as const) {
      const reply = await client.get(`/${list}?ids=${value}`);
      t.is(reply.status, 400, value);
      t.deepEqual(faultsOf(reply), [...faults], value);
    }
  });
}

test('work orders by state and by number, installations by serial number, log entries by action', async (t) => {
  const { client, database } = t.context;
  const one = async (table: string, of: string): Promise<string> =>
    (
      await column<string>(
        database,
        `select ${of} from probe.${table} where workspace_id = $1 and ${of} is not null order by id limit 1`,
      )
    )[0] as string;
  const cases = [
    ['werkbonnen', 'status', 'status', await one('werkbonnen', 'status')],
    ['werkbonnen', 'nummer', 'nummer', await one('werkbonnen', 'nummer')],
    ['installaties', 'serienummer', 'serienummer', await one('installaties', 'serienummer')],
    ['logboeken', 'actie', 'actie', await one('logboeken', 'actie')],
  ] as const;
  for (const [list, parameter, of, value] of cases) {
    const found = await records(client, `/${list}?perPage=1000&${parameter}=${encodeURIComponent(value)}`);
    t.true(found.length > 0);
    t.deepEqual(idsOf(found), await ids(database, `${list} ${of} = $2`, value), `${list} ${parameter}=${value}`);
    t.deepEqual((await page(client, `/${list}?${parameter}=onbekend`)).data, []);
  }
});

const changing = ['klanten', 'installaties', 'werkbonnen'] as const;

for (const list of changing) {
  test(`${list}: updatedSince takes an instant, with any offset, and includes it`, async (t) => {
    const { client, database } = t.context;
    const [middle = ''] = await column<string>(
      database,
      `select to_char(percentile_disc(0.5) within group (order by updated_at) at time zone 'UTC', 'YYYY-MM-DD"T"HH24:MI:SS.US')
       from probe.${list} where workspace_id = $1`,
    );
    const expected = await ids(database, `${list} updated_at >= $2::timestamptz`, `${middle}Z`);
    t.true(expected.length > 1);
    const all = await records(client, `/${list}?perPage=1000`);
    t.true(expected.length < all.length);
    const shifted = new Date(Date.parse(`${middle.slice(0, 19)}Z`) + 3_600_000).toISOString().slice(0, 19);
    for (const instant of [`${middle}Z`, `${shifted}${middle.slice(19)}%2B01:00`])
      t.deepEqual(idsOf(await records(client, `/${list}?perPage=70&updatedSince=${instant}`)), expected, instant);
    const later = `${middle.slice(0, 20)}${String(Number(middle.slice(20)) + 1).padStart(6, '0')}Z`;
    t.deepEqual(
      idsOf(await records(client, `/${list}?perPage=1000&updatedSince=${later}`)),
      await ids(database, `${list} updated_at > $2::timestamptz`, `${middle}Z`),
    );
  });

  test(`${list}: an updatedSince that is neither is refused, and the error says that + is a space`, async (t) => {
    const { client } = t.context;
    for (const value of words(`
      gisteren 2026-02-30 2026-01-01T00:00:00 2026-01-01T00:00:00+01:00 1767225600 2026-01-01%2000:00:00Z`)) {
      const reply = await client.get(`/${list}?updatedSince=${value}`);
      t.is(reply.status, 400, value);
      t.deepEqual(faultsOf(reply), ['updatedSince invalid_instant'], value);
      t.regex(reply.text, /\+ is a space: write %2B/);
    }
    for (const value of ['0001-01-01', '9999-12-31', '0001-01-01T00:00:00%2B14:00', '9999-12-31T23:59:59.999999-14:00'])
      t.is((await client.get(`/${list}?updatedSince=${value}&perPage=1`)).status, 200, value);
  });
}

test('the new filters combine with the others, and a cursor belongs to them', async (t) => {
  const { client, database } = t.context;
  const query = `status=${app.done}&from=2021-01-01&updatedSince=2020-01-01&order=desc&perPage=30`;
  const found = await records(client, `/werkbonnen?${query}`);
  t.deepEqual(
    idsOf(found).reverse(),
    await ids(
      database,
      `werkbonnen status = '${app.done}' and datum >= '2021-01-01' and updated_at >= '2019-12-31T23:00Z'`,
    ),
  );
  const { endCursor } = (await page(client, `/werkbonnen?${query}`)).pagination;
  for (const other of [`status=${app.planned}`, 'updatedSince=2020-01-02', 'order=asc']) {
    const changed = new URLSearchParams(query);
    const [name = '', value = ''] = other.split('=');
    changed.set(name, value);
    t.deepEqual(
      faultsOf(await client.get(`/werkbonnen?${changed}&cursor=${endCursor}`)),
      ['cursor invalid_cursor'],
      other,
    );
  }
});

async function column<T>({ primary, workspaces }: TestDatabase, sql: string, ...values: unknown[]): Promise<T[]> {
  const query = { text: sql, values: [workspaces[0]?.id, ...values], rowMode: 'array' as const };
  return (await primary.query(query)).rows.map(([value]) => value as T);
}

async function ids(database: TestDatabase, where: string, ...values: unknown[]): Promise<string[]> {
  const [table = ''] = where.split(' ');
  const order = { klanten: 'created_at', installaties: 'created_at', werkbonnen: 'datum', logboeken: 'tijdstip' }[
    table
  ];
  const condition = where.slice(table.length + 1);
  return column(
    database,
    `select l.id::text from probe.${table} l where workspace_id = $1 and ${condition} order by l.${order}, l.id`,
    ...values,
  );
}
