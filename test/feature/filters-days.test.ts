import { records } from '../support/lists.js';
import { column, ids } from '../support/sql.js';
import { gatewayTest } from '../support/workspace.js';

const test = gatewayTest();

type Record = { readonly id: string; readonly tijdstip: string };

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
