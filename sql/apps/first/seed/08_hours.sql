-- Working hours: one block in the morning and, four times in ten, one in the afternoon.
insert into app.werkbon_uren (id, workspace_id, werkbon_id, medewerker, datum, van, tot, uren)
select pg_temp.seed_id('uren', o.workspace, o.n * 2 + at), o.workspace_id, o.id, u.naam, o.datum,
  d.starts, d.starts + d.quarters * interval '15 minutes', round(d.quarters / 4.0, 2)
from seed_work_orders o
cross join lateral generate_series(0, case when o.n = 3 then -1 when pg_temp.draw(o.workspace, o.n, 51, 10) < 4 then 1 else 0 end) at
cross join lateral (select
  case at when 0 then time '07:00' else time '13:00' end
    + pg_temp.draw(o.workspace, o.n * 2 + at, 52, 9) * interval '15 minutes' as starts,
  1 + pg_temp.draw(o.workspace, o.n * 2 + at, 53, 15) as quarters) d
join seed_workspaces w on w.workspace = o.workspace
join app.users u on u.id = pg_temp.seed_id('gebruiker', o.workspace, 2 + pg_temp.draw(o.workspace, o.n * 2 + at / 3, 54, w.users - 1));
