import { records } from '../support/lists.js';
import { gatewayTest, type TestDatabase } from '../support/workspace.js';

const test = gatewayTest();

type Record = { readonly id: string; readonly tijdstip: string };

async function column<T>({ primary, workspaces }: TestDatabase, sql: string, ...values: unknown[]): Promise<T[]> {
  const query = { text: sql, values: [workspaces[0]?.id, ...values], rowMode: 'array' as const };
  return (await primary.query(query)).rows.map(([value]) => value as T);
}

async function ids(database: TestDatabase, where: string, ...values: unknown[]): Promise<string[]> {
  const [table = ''] = where.split(' ');
  const order = { installaties: 'created_at', werkbonnen: 'datum', logboeken: 'tijdstip' }[table];
  const condition = where.slice(table.length + 1);
  return column(
    database,
    `select l.id::text from app.${table} l where workspace_id = $1 and ${condition} order by l.${order}, l.id`,
    ...values,
  );
}

test('installations of one customer', async (t) => {
  const { client, database } = t.context;
  const customers = await column<string>(
    database,
    'select klant_id from app.installaties where workspace_id = $1 group by 1 order by count(*) desc, 1 limit 5',
  );
  for (const customer of customers) {
    const found = await records<Record>(client, `/installaties?customerId=${customer}&perPage=2`);
    t.deepEqual(
      found.map(({ id }) => id),
      await ids(database, 'installaties klant_id = $2', customer),
    );
    t.true(found.length > 2);
  }
});

test('work orders of one installation, and between dates, both inclusive', async (t) => {
  const { client, database } = t.context;
  const [installation] = await column<string>(
    database,
    'select installatie_id from app.werkbonnen where workspace_id = $1 group by 1 order by count(*) desc, 1 limit 1',
  );
  const [first, last] = await column<string>(
    database,
    `select unnest(array[min(datum), max(datum)])::text from app.werkbonnen where workspace_id = $1 and installatie_id = $2`,
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
    t.deepEqual(
      found.map(({ id }) => id),
      await ids(database, `werkbonnen ${condition}`, ...values),
      query,
    );
  }
});

test('log entries by kind, by entity, and by days, combined with AND', async (t) => {
  const { client, database } = t.context;
  const [entity] = await column<string>(
    database,
    `select entiteit_id from app.logboeken where workspace_id = $1 and entiteit = 'klant' group by 1 order by count(*) desc, 1 limit 1`,
  );
  const day = (operator: string, parameter: string) =>
    `(tijdstip at time zone 'Europe/Amsterdam')::date ${operator} ${parameter}::date`;
  const cases: [string, string, unknown[]][] = [
    ['entity=klant', 'entiteit = $2', ['klant']],
    [`entityId=${entity}`, 'entiteit_id = $2', [entity]],
    [`entity=klant&entityId=${entity}`, 'entiteit = $2 and entiteit_id = $3', ['klant', entity]],
    ['from=2024-05-01', day('>=', '$2'), ['2024-05-01']],
    ['to=2020-05-01', day('<=', '$2'), ['2020-05-01']],
    [
      'entity=klant&from=2022-01-01&to=2022-12-31',
      `entiteit = $2 and ${day('between $3::date and', '$4')}`,
      ['klant', '2022-01-01', '2022-12-31'],
    ],
  ];
  for (const [query, condition, values] of cases) {
    const found = await records<Record>(client, `/logboeken?${query}&perPage=1000`);
    t.true(found.length > 0, query);
    t.deepEqual(
      found.map(({ id }) => id),
      await ids(database, `logboeken ${condition}`, ...values),
      query,
    );
  }
  t.deepEqual(await records(client, `/logboeken?entity=werkbon&entityId=${entity}`), [], 'an entity of another kind');
});

test('days are days of the configured time zone, also those of 23 and 25 hours and those around New Year', async (t) => {
  const { client, database } = t.context;
  const days = await column<string>(
    database,
    `select distinct ((tijdstip at time zone 'Europe/Amsterdam')::date + step)::text from app.logboeken, generate_series(-1, 1) step
     where workspace_id = $1 and (tijdstip at time zone 'Europe/Amsterdam')::date in (
       '2021-03-28', '2021-10-31', '2024-03-31', '2024-10-27', '2025-12-31', '2026-03-29', '2026-10-25') order by 1`,
  );
  t.true(days.length >= 15);
  for (const day of days) {
    const found = await records<Record>(client, `/logboeken?from=${day}&to=${day}`);
    t.deepEqual(
      found.map(({ id }) => id),
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

test('another time zone has other days', async (t) => {
  const { database } = t.context;
  const { client } = await database.gateway({ timeZone: 'America/New_York' });
  const found = await records<Record>(client, '/logboeken?from=2026-03-29&to=2026-03-29');
  const there = await ids(
    database,
    `logboeken (tijdstip at time zone 'America/New_York')::date = $2::date`,
    '2026-03-29',
  );
  const here = await ids(
    database,
    `logboeken (tijdstip at time zone 'Europe/Amsterdam')::date = $2::date`,
    '2026-03-29',
  );
  t.deepEqual(
    found.map(({ id }) => id),
    there,
  );
  t.notDeepEqual(there, here);
});

test('entries of more than seven years ago are there as well', async (t) => {
  const found = await records<Record>(t.context.client, '/logboeken?to=2018-12-31');
  t.true(found.some(({ tijdstip }) => tijdstip.startsWith('2016')));
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
  const [customer] = await column<string>(other, 'select klant_id from app.installaties where workspace_id = $1');
  const [installation] = await column<string>(
    other,
    'select installatie_id from app.werkbonnen where workspace_id = $1',
  );
  const [entity] = await column<string>(other, 'select entiteit_id from app.logboeken where workspace_id = $1');
  t.deepEqual(await records(client, `/installaties?customerId=${customer}`), []);
  t.deepEqual(await records(client, `/werkbonnen?installationId=${installation}`), []);
  t.deepEqual(await records(client, `/logboeken?entityId=${entity}`), []);
});
