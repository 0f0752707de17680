-- The workspaces of `npm run bench -- --scale`, and everything that their work orders and log entries refer to. Runs on an empty
-- reference app. $SIZES is a list of (first number, last number, work orders, log entries) of workspaces; each has an installation per 500
-- work orders and an entity of the log per 500 entries, so that a page by installation or by entity has the same rows at every size.
create schema bench;

create table bench.tenants as
select n, ('00000000-0000-4000-8000-' || lpad(to_hex(n), 12, '0'))::uuid as id, work_orders, log_entries,
  greatest(1, work_orders / 500) as installations, greatest(1, log_entries / 500) as entities
from (values $SIZES) sizes (first, last, work_orders, log_entries), generate_series(first, last) n;

-- Eight years up to yesterday; the last changes are a day and two days later.
create table bench.history as
select (current_date - interval '8 years')::date as first_day, current_date - (current_date - interval '8 years')::date as days;

-- The installation of a number in the workspace of a number: work orders refer to it without a join.
create function bench.installation_id(workspace int, number int) returns uuid immutable language sql as $$
  select (lpad(to_hex(workspace), 8, '0') || '-0000-4000-8000-' || lpad(to_hex(number), 12, '0'))::uuid
$$;

insert into app.workspaces (id, naam) select id, 'Workspace ' || n from bench.tenants;
insert into app.users (id, workspace_id, naam, email, rol) select id, id, 'Bench', 'bench@example.com', 'owner' from bench.tenants;
insert into app.klanten (id, workspace_id) select id, id from bench.tenants;
insert into app.installaties (id, workspace_id, klant_id, naam, serienummer)
select bench.installation_id(n, k), id, id, 'Koelcel', 'S-' || k from bench.tenants, generate_series(0, installations - 1) k;
analyze bench.tenants;

-- Ten yearly partitions, as the demo has them, and one for entries of earlier years.
do $$
begin
  for year in extract(year from current_date)::int - 8 .. extract(year from current_date)::int + 1 loop
    execute format('create table app.logboeken_%s partition of app.logboeken for values from (%L) to (%L)',
      year, year || '-01-01 00:00:00+00', (year + 1) || '-01-01 00:00:00+00');
  end loop;
  create table app.logboeken_default partition of app.logboeken default;
end $$;
