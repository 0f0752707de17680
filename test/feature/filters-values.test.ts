import { app } from '../support/app.js';
import { faultsOf, page, records } from '../support/lists.js';
import { column, ids } from '../support/sql.js';
import { gatewayTest } from '../support/workspace.js';

const test = gatewayTest();
type Row = { readonly id: string };
const idsOf = (rows: readonly Row[]): string[] => rows.map(({ id }) => id);

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
    const found = await records<Row>(client, `/${list}?perPage=1000&${parameter}=${encodeURIComponent(value)}`);
    t.true(found.length > 0);
    t.deepEqual(idsOf(found), await ids(database, `${list} ${of} = $2`, value), `${list} ${parameter}=${value}`);
    t.deepEqual((await page(client, `/${list}?${parameter}=onbekend`)).data, []);
  }
});

const changing = ['klanten', 'installaties', 'werkbonnen'] as const;

for (const timeZone of ['Europe/Amsterdam', 'Pacific/Auckland']) {
  test(`updatedSince takes a date, which is the start of that day in the configured time zone: ${timeZone}`, async (t) => {
    const { database } = t.context;
    const { client } = await database.gateway({ timeZone });
    for (const list of changing) {
      const [day = ''] = await column<string>(
        database,
        `select (percentile_disc(0.5) within group (order by updated_at))::date::text from probe.${list} where workspace_id = $1`,
      );
      t.deepEqual(
        idsOf(await records<Row>(client, `/${list}?perPage=1000&updatedSince=${day}`)),
        await ids(database, `${list} updated_at >= $2::date::timestamp at time zone $3`, day, timeZone),
        list,
      );
    }
  });
}

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
    const all = await records<Row>(client, `/${list}?perPage=1000`);
    t.true(expected.length < all.length);
    const shifted = new Date(Date.parse(`${middle.slice(0, 19)}Z`) + 3_600_000).toISOString().slice(0, 19);
    for (const instant of [`${middle}Z`, `${shifted}${middle.slice(19)}%2B01:00`]) {
      t.deepEqual(idsOf(await records<Row>(client, `/${list}?perPage=7&updatedSince=${instant}`)), expected, instant);
    }
    const later = `${middle.slice(0, 20)}${String(Number(middle.slice(20)) + 1).padStart(6, '0')}Z`;
    t.deepEqual(
      idsOf(await records<Row>(client, `/${list}?perPage=1000&updatedSince=${later}`)),
      await ids(database, `${list} updated_at > $2::timestamptz`, `${middle}Z`),
    );
  });

  test(`${list}: an updatedSince that is neither is refused, and the error says that + is a space`, async (t) => {
    const { client } = t.context;
    for (const value of [
      'gisteren',
      '2026-02-30',
      '2026-01-01T00:00:00',
      '2026-01-01T00:00:00+01:00',
      '1767225600',
      '2026-01-01%2000:00:00Z',
    ]) {
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
  const query = `status=${app.done}&from=2021-01-01&updatedSince=2020-01-01&order=desc&perPage=3`;
  const found = await records<Row>(client, `/werkbonnen?${query}`);
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
