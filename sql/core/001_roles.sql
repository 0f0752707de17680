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

-- Privileges that PUBLIC has and no login of the gateway needs. A role that can make a temporary function can give it a cost so low that it
-- sees rows before the tenant wall does (002); large objects and messages in the WAL are room to store in, and to deceive the readers of
-- logical decoding. Roles that exist now get each by name, so that the app keeps it; not the logins that are members of the gateway's
-- roles. An admin who made these is a member, too, but does not inherit from them. Only the owner can revoke: of the database, and a
-- superuser of the functions. Otherwise `check` reports it.
do $$
declare
  taken record;
  other text;
begin
  for taken in
    select format('temporary on database %I', datname) as privilege, coalesce(datacl, acldefault('d', datdba)) as acl from pg_database
    where datname = current_database() and has_database_privilege('public', oid, 'temporary') and pg_has_role(datdba, 'usage')
    union all
    select format('execute on function %s', oid::regprocedure), coalesce(proacl, acldefault('f', proowner)) from pg_proc
    where pronamespace = 'pg_catalog'::regnamespace and proname ~ '^(lo_|lo(read|write)$|pg_logical_emit_message$)'
      and has_function_privilege('public', oid, 'execute') and pg_has_role(proowner, 'usage')
  loop
    for other in
      select rolname from pg_roles where not rolsuper and rolname !~ '^(pg_|gateway_(owner|reader|writer)$)'
        and not pg_has_role(oid, 'gateway_reader', 'usage') and not pg_has_role(oid, 'gateway_writer', 'usage')
        and not exists (
          select from aclexplode(taken.acl) a
          where a.grantee = pg_roles.oid and a.privilege_type = upper(split_part(taken.privilege, ' ', 1)))
    loop
      execute format('grant %s to %I', taken.privilege, other);
      insert into gateway.undo (statement) values (format('revoke %s from %I', taken.privilege, other));
    end loop;
    execute format('revoke %s from public', taken.privilege);
    insert into gateway.undo (statement) values (format('grant %s to public', taken.privilege));
  end loop;
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
      -- One plan per statement shape, the same for every workspace and at every hour: no planning per request, no plan flips,
      -- and no value in a printed plan.
      ('plan_cache_mode', 'force_generic_plan', 'force_generic_plan'),
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
