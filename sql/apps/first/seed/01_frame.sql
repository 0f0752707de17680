-- Tables and functions that live for the seed's transaction only, beside the tables of sql/apps/seed.sql. Everything is generated inside
-- PostgreSQL, set by set; Node makes encrypted customers and loads them into seed_customers.

create temp table seed_workspaces (
  workspace int primary key,       -- 0 is the first
  id uuid not null,
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
  land text,
  naam text,
  straat text,
  huisnummer text,
  toevoeging text,
  postcode text,
  plaats text,
  kvk_nummer text,
  email text,
  telefoon text,
  primary key (workspace, n)
) on commit drop;

-- The id of thing number n; demo/seed/random.ts has the same function.
create or replace function pg_temp.seed_id(kind text, workspace int, n int) returns uuid immutable language sql as $$
  select overlay(overlay(md5(kind || '/' || workspace || '/' || n) placing '4' from 13)
                 placing substr('89ab', 1 + n % 4, 1) from 17)::uuid
$$;
