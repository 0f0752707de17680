-- Tables and functions that live for the seed's transaction only, beside the tables of sql/apps/seed.sql. Node makes sealed customers
-- and loads them into seed_customers.

create temp table seed_workspaces (
  workspace int primary key,       -- 0 is the first
  id int not null,
  naam text not null,
  users int not null,
  customers int not null,
  installations int not null,
  work_orders int not null,
  log_entries int not null,
  first_day date not null,         -- eight years before today, in Europe/Amsterdam as all days here
  today date not null
) on commit drop;

create temp table seed_customers (
  workspace int not null,
  n int not null,
  plain_name text not null,
  vault_key text not null,
  sealed text not null,
  primary key (workspace, n)
) on commit drop;

-- The id of row number n of a table; demo/seed/random.ts has the same function. A sequence would give other ids with
-- each size of the data set.
create or replace function pg_temp.seed_id(workspace int, n int) returns bigint immutable language sql as $$
  select (workspace + 1) * 10000000::bigint + n
$$;
