-- Work orders in order of their date, from eight years ago to three weeks ahead. Actions are one jsonb of the app's own members,
-- here and there not an array at all; their data hides signatures in the places where apps put them.
create temp table seed_data on commit drop as
select row_number() over () - 1 as n, data from (values
  (null::jsonb), ('{}'), ('{"bijgevuld_kg": 0.125, "cilinder": "C-0042", "restant": 12.50}'),
  (E'{"opmerking": "Klant zei: \\"mooi\\"\\n\\\\o/", "checklist": [true, null, false]}'),
  ('[{"plaats": "inlaat", "waarden": [12.50, -1.0]}, {"plaats": "uitlaat", "waarden": []}]'),
  ('{"teller": 12345678901234567890, "som": 100.00}'), ('{"druk": {"hoog": 14.25, "laag": 2.1, "eenheid": "bar"}}')
) plain (data)
union all
select 7 + s.n * 3 + form, case form
    when 0 then jsonb_build_object('klant', jsonb_build_object('handtekening', s.image))
    when 1 then jsonb_build_object('notitie', 'Getekend: data:image/png;base64,' || s.image || ' (zie archief)', 'kg', 0.500)
    else jsonb_build_array(jsonb_build_object('paraaf', s.image), jsonb_build_object('meting', 21.50), s.image) end
from seed_signatures s cross join generate_series(0, 2) form where s.kind = 'initials' and s.n < 8;
analyze seed_data;

create temp table seed_work_orders on commit drop as
select w.workspace, w.id as tenant_id, n, w.today, w.installations, w.users,
  w.first_day + ((n - 1)::bigint * (w.today + 21 - w.first_day) / w.work_orders)::int as planned_on
from seed_workspaces w cross join lateral pg_temp.numbers(w.work_orders) n;
analyze seed_work_orders;

insert into fieldops.work_orders (id, tenant_id, asset_id, number, planned_on, status, notes, actions, signature, signed_at, created_at, updated_at, deleted_at)
select pg_temp.seed_id(o.workspace, o.n + case when gone then 5000000 else 0 end), o.tenant_id,
  pg_temp.seed_id(o.workspace, 1 + pg_temp.draw(o.workspace, o.n, 31, greatest(1, o.installations * 99 / 100))),
  'F' || extract(year from o.planned_on) || '/' || o.n, o.planned_on,
  case when o.planned_on > o.today then 'planned' when o.planned_on = o.today then 'busy'
    when pg_temp.draw(o.workspace, o.n, 30, 20) < 6 or o.planned_on > o.today - 60 then 'done' else 'billed' end,
  (array['Periodiek onderhoud', 'Storing hoge druk', E'Klant meldt: "het lekt".\nGraag vóór 12:00 uur.', null, E'Let op:\u2028sleutel bij receptie',
    E'Pad \\\\server\\foto''s\\2024\tzie ook "offerte"', E'Scanner gaf stuurteken \u0001\u001f mee', '', 'Filters vervangen <spoed> 🚨'])[1 + pg_temp.draw(o.workspace, o.n, 34, 9)],
  case when o.n % 211 = 3 then '{"broken": true}' when o.n = 9 then 'null' else a.actions end,
  s.image, case when s.image is not null then times.signed_at end, times.entered_at, case when s.image is not null then times.signed_at else times.entered_at end,
  case when gone then o.today - 1 + time '12:00' end
from seed_work_orders o
left join seed_signatures s on o.planned_on < o.today and pg_temp.draw(o.workspace, o.n, 32, 20) > 0 and s.kind = 'plain' and s.n = pg_temp.draw(o.workspace, o.n, 36, 40)
cross join lateral (select
  (o.planned_on + time '11:00' + pg_temp.draw(o.workspace, o.n, 37, 25200) * interval '1.000007 second') at time zone 'Europe/Amsterdam' as signed_at,
  (least(o.planned_on, o.today) - 2 + time '08:00' + pg_temp.draw(o.workspace, o.n, 39, 32400) * interval '1.000011 second') at time zone 'Europe/Amsterdam' as entered_at) times
cross join lateral (
  select coalesce(jsonb_agg(jsonb_build_object('id', o.n || '-' || at, 'code', 'A' || k, 'title', (array['Lekdetectie', 'Bijvullen', 'Inspectie', null])[1 + k % 4],
    'result', (array['goed', 'afgekeurd', null])[1 + k % 3], 'data', d.data) order by at), '[]') as actions
  from generate_series(1, (array[1, 1, 1, 2, 2, 3, 0])[1 + o.n % 7]) at
  cross join lateral (select pg_temp.draw(o.workspace, o.n * 4 + at, 42, 999) as k, pg_temp.draw(o.workspace, o.n * 4 + at, 43, 31 * 4) as h) draws
  left join seed_data d on d.n = case when draws.h < 31 then draws.h else draws.k % 7 end
) a
cross join lateral (select false union all select true where o.n % 20 = 1) copies (gone)
order by o.workspace, o.n;

-- Hours: one block in the morning and, every third time, one in the afternoon.
insert into fieldops.time_entries (tenant_id, work_order_id, staff_id, starts_at, minutes)
select o.tenant_id, pg_temp.seed_id(o.workspace, o.n), o.tenant_id * 100 + 1 + (o.n + part) % o.users,
  o.planned_on + time '07:30' + part * interval '5 hours' + o.n % 4 * interval '15 minutes', 15 * (1 + pg_temp.draw(o.workspace, o.n, 53 + part, 15))
from seed_work_orders o
cross join lateral generate_series(0, case when o.n % 3 = 0 then 1 when o.n % 50 = 7 then -1 else 0 end) part;
