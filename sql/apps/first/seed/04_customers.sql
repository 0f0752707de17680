-- Customers as Node encrypted them. An address that was written again since has the newest key: a later updated_at.
insert into app.klanten (id, workspace_id, naam, straat, huisnummer, toevoeging, postcode, plaats, land, kvk_nummer,
  email, telefoon, created_at, updated_at)
select pg_temp.seed_id('klant', c.workspace, c.n), w.id, c.naam, c.straat, c.huisnummer, c.toevoeging, c.postcode,
  c.plaats, c.land, c.kvk_nummer, c.email, c.telefoon, made.created_at,
  case when pg_temp.draw(c.workspace, c.n, 2, 4) = 0
    then made.created_at + (w.today - 1 + time '12:00' - made.created_at::timestamp) * (pg_temp.draw(c.workspace, c.n, 3, 997) / 1000.0)
    else made.created_at end
from seed_customers c
join seed_workspaces w using (workspace)
cross join lateral (select pg_temp.created_at(w.first_day, w.today, c.n, w.customers) as created_at) made
order by c.workspace, c.n;
