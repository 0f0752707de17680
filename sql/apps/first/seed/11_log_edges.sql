-- Log entries where days and years meet: around local midnight before and after both clock changes and around the
-- changes themselves, around New Year (local, and UTC, where the partitions end), at one and the same moment, and from
-- before the first partition. Their ids do not follow their times.
insert into app.logboeken (id, workspace_id, tijdstip, entiteit, entiteit_id, actie, actor_type, actor_id, wijzigingen)
select (select max(id) from app.logboeken) + row_number() over (order by w.workspace, md5(tijdstip::text), step),
  w.id, tijdstip, 'installatie', pg_temp.seed_id('installatie', w.workspace, 1)::text, 'gewijzigd', 'systeem', null,
  jsonb_build_array(jsonb_build_object('veld', 'locatie', 'oud', null, 'nieuw', 'Kelder'))
from seed_workspaces w
cross join lateral (
  select edge + step as tijdstip, step
  from (
    select (day + midnight) at time zone 'Europe/Amsterdam' as edge
    from generate_series(extract(year from w.first_day)::int, extract(year from w.today)::int) year
    cross join lateral (values (make_date(year, 3, 31)), (make_date(year, 10, 31))) last (of_month)
    cross join lateral (select of_month - extract(dow from of_month)::int as day) sunday
    cross join (values (time '00:00'), (time '24:00')) midnights (midnight)
    union all
    select (of_month - extract(dow from of_month)::int + time '01:00') at time zone 'UTC'
    from generate_series(extract(year from w.first_day)::int, extract(year from w.today)::int) year
    cross join lateral (values (make_date(year, 3, 31)), (make_date(year, 10, 31))) last (of_month)
    union all
    select make_date(year, 1, 1)::timestamp at time zone zone
    from generate_series(extract(year from w.first_day)::int, extract(year from w.today)::int) year
    cross join (values ('Europe/Amsterdam'), ('UTC')) zones (zone)
  ) edges
  cross join unnest(array['-3 minutes -0.000001 seconds', '-1 microsecond', '0', '1 microsecond', '2 minutes 30.123456 seconds']::interval[]) step
  union all
  select (w.today - 400 + time '12:34:56.789012') at time zone 'Europe/Amsterdam', n * interval '0' from generate_series(1, 12) n
  union all
  select make_timestamptz(extract(year from w.first_day)::int - 2, 6, n, 12, 0, 0.5, 'UTC'), interval '0' from generate_series(1, 3) n
) moments
where tijdstip < w.today at time zone 'Europe/Amsterdam';

select setval('app.logboeken_id_seq', (select max(id) from app.logboeken));
