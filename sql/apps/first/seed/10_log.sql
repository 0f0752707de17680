-- The audit log over eight years: half of it about work orders, a quarter about installations, a fifth about customers.
-- Ids rise with time; three rows in every thousand share the moment of the row before them.
with drawn as materialized (
  select l.*, w.id as workspace_id, w.users,
    pg_temp.moment(w.first_day, w.today - w.first_day - 1, (l.at - 1)::float8 / w.log_entries, pg_temp.draw(l.workspace, l.at, 62, 900001)) as tijdstip,
    case when l.kind < 50 then 'werkbon' when l.kind < 75 then 'installatie' when l.kind < 95 then 'klant' else 'gebruiker' end as entiteit,
    case
      when l.kind < 50 then least(w.work_orders, 1 + floor((l.at - 1) * w.work_orders::float8 / w.log_entries))
      when l.kind < 75 then 1 + pg_temp.draw(l.workspace, l.n, 63, floor(w.installations * l.known)::int)
      when l.kind < 95 then 1 + pg_temp.draw(l.workspace, l.n, 63, floor(w.customers * l.known)::int)
      else 1 + pg_temp.draw(l.workspace, l.n, 63, w.users)
    end::int as entity,
    case
      -- A signature came with three changes of a work order in forty.
      when l.kind < 50 then pg_temp.draw(l.workspace, l.n, 64, 16) * 8
        + (array[0, 1, 2, 3, 7, 0, 1, 2, 7, 0, 1, 2, 0, 1, 2, 7, 0, 1, 2, 4, 0, 1, 2, 7, 0, 1, 2, 5, 0, 1, 2, 7, 0, 1, 2, 6, 0, 1, 2, 7])[1 + pg_temp.draw(l.workspace, l.n, 65, 40)]
      when l.kind < 75 then pg_temp.draw(l.workspace, l.n, 64, 16) * 8 + pg_temp.draw(l.workspace, l.n, 65, case when l.n % 20 = 0 then 8 else 7 end)
      when l.kind < 95 then pg_temp.draw(l.workspace, l.n, 65, case when l.known < 0.6 then 5 else 3 end)
      else pg_temp.draw(l.workspace, l.n, 64, 2)
    end as variant,
    pg_temp.draw(l.workspace, l.n, 66, 20) as actor
  from (
    select w.workspace, n, n - case when n % 1000 < 4 then n % 1000 else 0 end + case when n < 1000 then 1 else 0 end as at,
      pg_temp.draw(w.workspace, n, 61, 100) as kind,
      -- The share of customers and installations that were there by then.
      0.28 + 0.7 * n / w.log_entries as known
    from seed_workspaces w cross join lateral pg_temp.numbers(w.log_entries) n
  ) l
  join seed_workspaces w using (workspace)
)
insert into app.logboeken (id, workspace_id, tijdstip, entiteit, entiteit_id, actie, actor_type, actor_id, wijzigingen)
select (select coalesce(sum(before.log_entries), 0) from seed_workspaces before where before.workspace < d.workspace) + d.n,
  d.workspace_id, d.tijdstip, d.entiteit, pg_temp.seed_id(d.entiteit, d.workspace, d.entity)::text,
  coalesce(k.actie, c.actie),
  case when d.actor < 16 then 'gebruiker' when d.actor < 19 then 'token' else 'systeem' end,
  case when d.actor < 16 then pg_temp.seed_id('gebruiker', d.workspace, 1 + d.actor % d.users)::text
    when d.actor < 19 then pg_temp.seed_id('token', d.workspace, d.actor)::text end,
  coalesce(k.wijzigingen, c.wijzigingen)
from drawn d
left join seed_customer_changes k on d.entiteit = 'klant' and k.workspace = d.workspace and k.n = d.entity and k.variant = d.variant
left join seed_changes c on c.workspace = d.workspace and c.entiteit = d.entiteit and c.variant = d.variant;
