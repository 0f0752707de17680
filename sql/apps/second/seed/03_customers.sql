-- Customers as Node sealed them, and behind them some that were deleted: copies, under ids of their own.
insert into fieldops.customers (id, tenant_id, sealed, vault_key, created_at, updated_at, deleted_at)
select pg_temp.seed_id(c.workspace, c.n + case when gone then 5000000 else 0 end), w.id, c.sealed, c.vault_key, made.created_at,
  case when pg_temp.draw(c.workspace, c.n, 2, 4) = 0
    then made.created_at + (w.today - 1 + time '12:00' - made.created_at::timestamp) * (pg_temp.draw(c.workspace, c.n, 3, 997) / 1000.0)
    else made.created_at end,
  case when gone then w.today - 1 + time '12:00' end
from seed_customers c
join seed_workspaces w using (workspace)
cross join lateral (select pg_temp.created_at(w.first_day, w.today, c.n, w.customers) as created_at) made
cross join lateral (select false union all select true where c.n % 20 = 1) copies (gone)
order by c.workspace, c.n;
