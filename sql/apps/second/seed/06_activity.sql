-- The audit log over eight years, in the app's own shape: {"field": [old, new]}. Customers appear sealed and, in the first years, in
-- clear; work orders with their signature; here and there a diff of another shape, as hand-written entries have. Then entries where
-- days and years meet: around local midnight before and after both clock changes, around New Year, at one and the same moment.
create temp table seed_changes on commit drop as
select c.subject, row_number() over (partition by c.subject) - 1 as variant, c.verb, c.diff from (values
  ('WorkOrder', 'create', '{"status": [null, "planned"], "notes": [null, "Storing \"hoge druk\""]}'::jsonb),
  ('WorkOrder', 'update', '{"status": ["planned", "done"], "planned_on": ["2019-03-10", "2019-03-11"]}'),
  ('WorkOrder', 'update', (select jsonb_build_object('signature', jsonb_build_array(null, image), 'signed_at', jsonb_build_array(null, '2021-05-10T14:03:12.120Z')) from seed_signatures where kind = 'plain' and n = 0)),
  ('WorkOrder', 'update', (select jsonb_build_object('actions', jsonb_build_array('[]'::jsonb, jsonb_build_array(jsonb_build_object('paraaf', image))), 'notes', jsonb_build_array('a', 'data:image/png;base64,' || image)) from seed_signatures where kind = 'initials' and n = 0)),
  ('WorkOrder', 'update', '{"status": "done"}'),
  ('Asset', 'create', '{"name": [null, "Koelcel"], "brand": [null, "Bitzer"], "charge_kg": [null, 12.500]}'),
  ('Asset', 'update', '{"location": ["Kelder", "Dak \"noord\""], "charge_kg": [12.50, 12345678901234567890]}'),
  ('Asset', 'update', '{"needs_risk_analysis": [false, true], "contact_person": ["Jan Jansen", "Piet Pietersen"]}'),
  ('Asset', 'update', '[]'),
  ('Staff', 'update', '{"is_admin": [true, false], "email": ["a@tenant.example", "b@tenant.example"]}'),
  ('Staff', 'update', '{}')
) c (subject, verb, diff);
analyze seed_changes;

create or replace function pg_temp.as_text(moment timestamptz) returns text stable language sql as $$
  select to_char(moment at time zone 'UTC', 'YYYY-MM-DD"T"HH24:MI:SS.US"Z"')
$$;

with drawn as materialized (
  select w.workspace, w.id as tenant_id, n, w.users, pg_temp.draw(w.workspace, n, 66, 20) as actor,
    pg_temp.moment(w.first_day, w.today - w.first_day - 1, (at - 1)::float8 / w.log_entries, pg_temp.draw(w.workspace, at, 62, 900001)) as moment,
    k.subject, 1 + case k.subject when 'WorkOrder' then least(w.work_orders - 1, floor((at - 1) * w.work_orders::float8 / w.log_entries))::int
      when 'Asset' then pg_temp.draw(w.workspace, n, 63, w.installations) when 'Customer' then pg_temp.draw(w.workspace, n, 63, w.customers)
      else pg_temp.draw(w.workspace, n, 63, w.users) end as row_n,
    case k.subject when 'Staff' then w.id * 100 else pg_temp.seed_id(w.workspace, 0) end as base, pg_temp.draw(w.workspace, n, 65, 40) as variant
  from seed_workspaces w cross join lateral pg_temp.numbers(w.log_entries) n
  cross join lateral (select n - case when n % 1000 < 4 then n % 1000 else 0 end + case when n < 1000 then 1 else 0 end as at) ties
  cross join lateral (select (array['WorkOrder', 'Asset', 'Customer', 'Staff'])[1 + least(3, pg_temp.draw(w.workspace, n, 61, 100) / 29)] as subject) k
)
insert into fieldops.activity (id, tenant_id, logged_at, subject, subject_id, verb, actor_kind, actor_ref, diff)
select pg_temp.seed_id(d.workspace, d.n), d.tenant_id, pg_temp.as_text(d.moment), d.subject, d.base + d.row_n,
  coalesce(c.verb, case when d.variant % 4 = 0 then 'create' else 'update' end),
  case when d.actor < 16 then 'staff' when d.actor < 19 then 'api_token' else 'system' end,
  case when d.actor < 16 then (d.tenant_id * 100 + 1 + d.actor % d.users)::text when d.actor < 19 then gen_random_uuid()::text end,
  coalesce(c.diff, case d.variant % 4
    when 0 then jsonb_build_object('sealed', jsonb_build_array(null, p.sealed), 'vault_key', jsonb_build_array(null, p.vault_key))
    when 1 then jsonb_build_object('name', jsonb_build_array(p.plain_name || ' (oud)', p.plain_name), 'phone', jsonb_build_array('06-12345678', '06-87654321'))
    when 2 then jsonb_build_object('address', jsonb_build_array(jsonb_build_object('street', 'Kerkstraat'), jsonb_build_object('street', p.plain_name)))
    else jsonb_build_object('deleted_at', jsonb_build_array(null, '2024-02-03T04:05:06Z'), 'sealed', jsonb_build_array(p.sealed, null)) end)
from drawn d
left join seed_customers p on d.subject = 'Customer' and p.workspace = d.workspace and p.n = d.row_n
left join lateral (select c.* from seed_changes c where c.subject = d.subject
  and c.variant = d.variant % (select nullif(count(*), 0) from seed_changes s where s.subject = d.subject)) c on true;

insert into fieldops.activity (id, tenant_id, logged_at, subject, subject_id, verb, actor_kind, diff)
select pg_temp.seed_id(workspace, 5000000) + row_number() over (order by workspace, md5(moment::text), step), id, pg_temp.as_text(moment),
  'Asset', pg_temp.seed_id(workspace, 1), 'update', 'system', jsonb_build_object('location', '[null, "Kelder"]'::jsonb)
from seed_workspaces w
cross join lateral (
  select edge + step as moment, step
  from (
    select (day + midnight) at time zone 'Europe/Amsterdam' as edge
    from generate_series(extract(year from w.first_day)::int, extract(year from w.today)::int) year
    cross join lateral (values (make_date(year, 3, 31)), (make_date(year, 10, 31))) last (of_month)
    cross join lateral (select of_month - extract(dow from of_month)::int as day) sunday
    cross join (values (time '00:00'), (time '24:00')) midnights (midnight)
    union all
    select make_date(year, 1, 1)::timestamp at time zone zone
    from generate_series(extract(year from w.first_day)::int, extract(year from w.today)::int) year
    cross join (values ('Europe/Amsterdam'), ('UTC')) zones (zone)
  ) edges
  cross join unnest(array['-1 microsecond', '0', '1 microsecond', '2 minutes 30.123456 seconds']::interval[]) step
  union all
  select (w.today - 400 + time '12:34:56.789012') at time zone 'Europe/Amsterdam', n * interval '0' from generate_series(1, 12) n
  union all
  select make_timestamptz(extract(year from w.first_day)::int - 2, 6, n, 12, 0, 0.5, 'UTC'), interval '0' from generate_series(1, 3) n
) moments
where moment < w.today at time zone 'Europe/Amsterdam';

-- New rows continue behind the seeded ones.
select setval(pg_get_serial_sequence(format('fieldops.%s', name), 'id'), 900000000)
from unnest(array['customers', 'assets', 'work_orders', 'activity']) name;
