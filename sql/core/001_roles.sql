-- Three roles. They belong to the cluster, so a second database finds them already there.
-- Logins get no password here: set one (ALTER ROLE … PASSWORD) or use certificates.
--   gateway_owner   owns the views that clients read and write; no login, no superuser, owner of no table of the app
--   gateway_reader  the gateway's login on replicas: SELECT on the views, EXECUTE on four functions
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

-- Settings that belong to the role reach every connection without a round trip, also through PgBouncer.
-- The row serializers rely on these text forms:
alter role gateway_reader set timezone = 'UTC';
alter role gateway_reader set datestyle = 'ISO, YMD';
alter role gateway_writer set timezone = 'UTC';
alter role gateway_writer set datestyle = 'ISO, YMD';
-- One plan per statement shape, the same for every workspace and at every hour: no planning per request, no plan flips.
alter role gateway_reader set plan_cache_mode = 'force_generic_plan';
-- With the default of 4 the planner prefers a scan and a sort to the (workspace_id, …) index.
alter role gateway_reader set random_page_cost = 1.1;
-- A short statement gains nothing from compiling or from parallel workers.
alter role gateway_reader set jit = off;
alter role gateway_reader set max_parallel_workers_per_gather = 0;
-- Backstops behind the gateway's own deadlines: a statement whose client is gone stops within a second.
alter role gateway_reader set default_transaction_read_only = on;
alter role gateway_reader set statement_timeout = '60s';
-- Statements share connections: one that waits for a lock, for example during a migration of the app, delays those behind it.
alter role gateway_reader set lock_timeout = '1s';
alter role gateway_reader set idle_in_transaction_session_timeout = '10s';
alter role gateway_reader set client_connection_check_interval = '1s';
alter role gateway_writer set statement_timeout = '10s';
alter role gateway_writer set lock_timeout = '2s';
alter role gateway_writer set idle_in_transaction_session_timeout = '5s';
alter role gateway_writer set synchronous_commit = on;
alter role gateway_writer set client_connection_check_interval = '1s';

revoke all on schema gateway from public;
grant usage, create on schema gateway to gateway_owner;
grant usage on schema gateway to gateway_reader, gateway_writer;
