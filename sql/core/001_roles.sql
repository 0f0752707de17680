-- Three roles. They belong to the cluster, so a second database finds them already there.
-- Logins get no password here: set one (ALTER ROLE … PASSWORD) or use certificates.
--   gateway_owner   owns the views that clients read and write, and may use the operator's in the schema records; no login, no
--                   superuser, owner of no table of the app
--   gateway_reader  the gateway's login on replicas: SELECT on the views, EXECUTE on a few functions
--   gateway_writer  the gateway's login on the primary: the write views and the idempotency table
-- The migrating admin keeps the schema: to own it a role needs CREATE on the database, which only its owner can grant.
-- Two databases migrated at the same moment collide here; `migrate` repeats the file then.
do $$
begin
  if to_regrole('gateway_owner') is null then create role gateway_owner nologin; end if;
  if to_regrole('gateway_reader') is null then create role gateway_reader login; end if;
  if to_regrole('gateway_writer') is null then create role gateway_writer login; end if;
  -- An admin who is no superuser must be a member to hand the views over to their owner.
  if not pg_has_role(current_user, 'gateway_owner', 'usage') then
    execute format('grant gateway_owner to %I', current_user);
  end if;
end $$;

-- A role that can make a temporary function can give it a cost so low that it sees rows before the tenant wall does (002).
-- TEMPORARY comes from PUBLIC: roles other than the gateway's that exist now get it by name, so that the app keeps it.
-- Only the owner of the database can do this; without it `check` reports the privilege.
do $$
declare
  other text;
begin
  if not has_database_privilege('gateway_reader', current_database(), 'temporary') then return; end if;
  for other in select rolname from pg_roles where not rolsuper and rolname !~ '^(pg_|gateway_(owner|reader|writer)$)' loop
    execute format('grant temporary on database %I to %I', current_database(), other);
  end loop;
  execute format('revoke temporary on database %I from public', current_database());
exception when insufficient_privilege then
  raise notice 'TEMPORARY on database % stays with PUBLIC, as only its owner can revoke it', current_database();
end $$;

-- Settings that belong to the role reach every connection without a round trip, also through PgBouncer. Those that deploy/roles.sql
-- has set are left alone, so that an admin without CREATEROLE can migrate.
do $$
declare
  wanted record;
begin
  for wanted in
    select * from (values
      -- The row serializers rely on these text forms, and the files of SQL on the form of their strings.
      ('TimeZone', 'UTC', 'UTC'),
      ('DateStyle', 'ISO, YMD', 'ISO, YMD'),
      ('IntervalStyle', 'postgres', 'postgres'),
      ('bytea_output', 'hex', 'hex'),
      ('extra_float_digits', '1', '1'),
      ('standard_conforming_strings', 'on', 'on'),
      -- Functions of the app are found as an app without settings finds them; the logins can create nothing in public.
      ('search_path', 'public', 'public'),
      ('row_security', 'on', 'on'),
      ('default_transaction_isolation', 'read committed', 'read committed'),
      ('default_transaction_deferrable', 'off', 'off'),
      ('default_transaction_read_only', 'on', null),
      -- One plan per statement shape, the same for every workspace and at every hour: no planning per request, no plan flips.
      ('plan_cache_mode', 'force_generic_plan', null),
      -- With the default of 4 the planner prefers a scan and a sort to the (workspace_id, …) index.
      ('random_page_cost', '1.1', null),
      ('enable_indexscan', 'on', 'on'),
      ('enable_indexonlyscan', 'on', 'on'),
      ('enable_bitmapscan', 'on', 'on'),
      ('enable_nestloop', 'on', 'on'),
      -- A short statement gains nothing from compiling or from parallel workers.
      ('jit', 'off', null),
      ('max_parallel_workers_per_gather', '0', null),
      -- Milliseconds. Backstops behind the gateway's own deadlines: a statement whose client is gone stops within a second.
      ('statement_timeout', '60000', '10000'),
      -- Statements share connections: one that waits for a lock, for example during a migration of the app, delays those behind it.
      ('lock_timeout', '1000', '2000'),
      ('idle_in_transaction_session_timeout', '10000', '5000'),
      ('idle_session_timeout', '0', '0'),
      ('client_connection_check_interval', '1000', '1000'),
      ('synchronous_commit', null, 'on')
    ) as settings (name, reader, writer)
      cross join lateral (values ('gateway_reader', reader), ('gateway_writer', writer)) of_role (role, value)
    where value is not null and not exists (
      select from pg_db_role_setting where setrole = to_regrole(role) and setdatabase = 0 and name || '=' || value = any (setconfig))
  loop
    execute format('alter role %I set %I = %L', wanted.role, wanted.name, wanted.value);
  end loop;
end $$;

revoke all on schema gateway from public;
grant usage, create on schema gateway to gateway_owner;
grant usage on schema gateway to gateway_reader, gateway_writer;
-- Whether the views are those that `migrate` made: hashes and names of views, no data.
grant select on gateway.applied_files to gateway_reader, gateway_writer;

-- The operator's views say what a record is and show the rows of all workspaces: the login roles cannot use them.
create schema records;
revoke all on schema records from public;
grant usage on schema records to gateway_owner;
