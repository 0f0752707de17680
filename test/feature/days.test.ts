import { composeCondition } from '../../src/resource/statements/conditions.js';
import { records } from '../support/lists.js';
import { gatewayTest } from '../support/workspace.js';

// A day begins with its first moment, also where midnight comes twice.
const test = gatewayTest();

const filters = {
  from: { column: 'tijdstip', kind: 'from', type: 'timestamp', description: '' },
  to: { column: 'tijdstip', kind: 'to', type: 'timestamp', description: '' },
  since: { column: 'tijdstip', kind: 'since', type: 'timestamp', description: '' },
} as const;

const condition = (name: keyof typeof filters, day: string): string => {
  const { sql, bindings } = composeCondition(name, { filters }).toSQL();
  const places = bindings.map((bound) => ((bound as { name: string }).name === name ? `(${day})` : 'zone'));
  return sql.replaceAll('?', () => places.shift() as string);
};

/**
 * The days of 2015 to 2035 on which, or beside which, a zone changes its offset: elsewhere midnight comes once. `first` is the first
 * quarter of an hour from which on the zone's clock has shown the day or a later one.
 */
const daysOfChanges = `
  with weeks as (
    select name as zone, at, at at time zone name - at at time zone 'UTC' as utc_offset
    from pg_timezone_names, generate_series(timestamptz '2014-12-27Z', '2036-01-10Z', '7 days') at
    where name !~ '^(posix|right)/'),
  changes as (
    select zone, at from (select *, lag(utc_offset) over (partition by zone order by at) as before from weeks) weeks
    where utc_offset <> before),
  days as (
    select distinct zone, at::date - back as day from changes, generate_series(-2, 9) back)
  select zone, day, (
    select min(at) from generate_series(day::timestamp at time zone 'UTC' - interval '15 hours', day + interval '17 hours', '15 minutes') at
    where at at time zone zone >= day) as first
  from days where (day - 1)::timestamp at time zone zone - (day - 2)::timestamp at time zone zone <> interval '24 hours'
    or day::timestamp at time zone zone - (day - 1)::timestamp at time zone zone <> interval '24 hours'
    or (day + 1)::timestamp at time zone zone - day::timestamp at time zone zone <> interval '24 hours'`;

test('in every time zone each moment of 2015 to 2035 is of one day, which begins with its first moment', async (t) => {
  const { primary } = t.context.database;
  await primary.query(`set time zone 'UTC'`);
  await primary.query(`create temporary table days as ${daysOfChanges}`);
  const { rows } = await primary.query(
    `select zone, day, "tijdstip", is_first from days, lateral (values (first, true), (first - interval '1 microsecond', false)) moment ("tijdstip", is_first)
     where (${condition('from', 'day::text')}) <> is_first or (${condition('since', 'day::text')}) <> is_first
       or (${condition('to', '(day - 1)::text')}) = is_first limit 20`,
  );
  t.deepEqual(rows, []);
  const { rows: tried } = await primary.query<{ days: number; zones: number; twice: number }>(
    `select count(*)::int as days, count(distinct zone)::int as zones,
       (count(*) filter (where first < day::timestamp at time zone zone))::int as twice from days`,
  );
  const [{ days, zones, twice }] = tried as [{ days: number; zones: number; twice: number }];
  t.log(`${days} days of changes in ${zones} zones; midnight comes twice on ${twice} of them`);
  t.true(days > 10_000 && zones > 200 && twice > 50);
});

const nights = [
  { zone: 'Atlantic/Azores', day: '2026-10-25', first: '2026-10-25T00:00:00Z' },
  { zone: 'America/Havana', day: '2025-11-02', first: '2025-11-02T04:00:00Z' },
  { zone: 'Antarctica/Casey', day: '2023-03-09', first: '2023-03-08T13:00:00Z' },
  // Midnight comes once: the clock goes back before it shows it, or skips the hour that begins with it.
  { zone: 'Asia/Beirut', day: '2025-10-26', first: '2025-10-25T22:00:00Z' },
  { zone: 'Africa/Cairo', day: '2026-04-24', first: '2026-04-23T22:00:00Z' },
];
const hourMs = 3_600_000;

for (const { zone, day, first } of nights) {
  test(`${zone}: from and to on ${day}, and the days beside it, give each entry once`, async (t) => {
    const { database } = t.context;
    const { client } = await database.gateway({ timeZone: zone });
    const workspace = database.workspaces[0]?.id;
    const at = (ms: number): string => new Date(Date.parse(first) + ms).toISOString();
    const moments = Array.from({ length: 97 }, (_, i) => at((i - 48) * (hourMs / 2)));
    moments.push(at(-1), at(1));
    const { rows } = await database.primary.query<{ id: string }>(
      `insert into app.logboeken (workspace_id, entiteit, entiteit_id, actie, actor_type, tijdstip, wijzigingen)
       select $1, 'nacht', $2, 'gewijzigd', 'systeem', at, '[]' from unnest($3::timestamptz[]) at returning id::text`,
      [workspace, zone, moments],
    );
    await database.primary.query(
      `insert into app.klanten (id, workspace_id, updated_at)
       select gen_random_uuid(), $1, $2::timestamptz + interval '1 ms' * n from generate_series(-1, 1) n`,
      [workspace, first],
    );
    await database.caughtUp();
    const days = [-2, -1, 0, 1, 2].map((n) => new Date(Date.parse(day) + n * 24 * hourMs).toISOString().slice(0, 10));
    const found: string[] = [];
    for (const each of days) {
      const of = await records<{ id: string; tijdstip: string }>(
        client,
        `/logboeken?entity=nacht&entityId=${encodeURIComponent(zone)}&from=${each}&to=${each}`,
      );
      const isDay = (tijdstip: string): boolean => (each < day ? tijdstip < at(0) : tijdstip >= at(0));
      t.true(
        of.every(({ tijdstip }) => isDay(tijdstip)),
        each,
      );
      found.push(...of.map(({ id }) => id));
    }
    t.deepEqual(found.toSorted(), rows.map(({ id }) => id).toSorted());
    const since = await records<{ updatedAt: string }>(client, `/klanten?perPage=1000&updatedSince=${day}`);
    const border = since.map(({ updatedAt }) => updatedAt).filter((each) => each <= at(5) && each >= at(-5));
    t.deepEqual(border.toSorted(), [at(0), at(1)]);
  });
}
