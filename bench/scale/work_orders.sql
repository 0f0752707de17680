-- The work orders of all workspaces in the order of their dates. Of the 500 of an installation every tenth state and every seventh change
-- repeats, and those of the next installation are a turn ahead, so that each combination of filters finds
-- the same share of an installation, of a period and of everything, whatever the size. The newest 20 of a
-- workspace changed last of all.
insert into app.werkbonnen (id, workspace_id, installatie_id, nummer, datum, status, omschrijving, created_at, updated_at)
select gen_random_uuid(), t.id, bench.installation_id(t.n, w.n % t.installations), 'WB-' || w.n, d.datum,
  case when d.turn % 10 < 7 then 'gefactureerd' when d.turn % 10 < 9 then 'afgerond' else 'gepland' end,
  'Periodiek onderhoud volgens contract', d.datum,
  d.today + case when w.n >= t.work_orders - 20 then 2 when d.turn % 7 = 3 then 0 else least(-1, d.datum - d.today + 5) end
from bench.history h, bench.tenants t
cross join lateral generate_series(0, t.work_orders - 1) w (n)
cross join lateral (
  select w.n / t.installations + w.n % t.installations as turn, h.first_day + h.days as today, h.first_day + (w.n::bigint * h.days / t.work_orders)::int as datum
) d;
