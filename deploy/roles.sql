-- The gateway's roles, made by a DBA for an admin who runs `migrate` without CREATEROLE: once per cluster and again after an
-- upgrade. The admin must own the database, so that it can take TEMPORARY from PUBLIC.
--   PGOPTIONS='-c gateway.admin=workspace_admin' psql "$SUPERUSER_URL" -f deploy/roles.sql
--   psql "$SUPERUSER_URL" -c '\password gateway_reader' -c '\password gateway_writer'
do $$
declare
  wanted record;
begin
  if to_regrole('gateway_owner') is null then create role gateway_owner nologin; end if;
  if to_regrole('gateway_issuer') is null then create role gateway_issuer nologin; end if;
  if to_regrole('gateway_reader') is null then create role gateway_reader login; end if;
  if to_regrole('gateway_writer') is null then create role gateway_writer login; end if;
  -- To hand the views over to their owner the admin must be a member.
  execute format('grant gateway_owner to %I', current_setting('gateway.admin'));
  -- The list of sql/core/001_roles.sql, which has the reasons; a test compares the two.
  for wanted in
    select * from (values
      ('TimeZone', 'UTC', 'UTC'),
      ('DateStyle', 'ISO, YMD', 'ISO, YMD'),
      ('IntervalStyle', 'postgres', 'postgres'),
      ('bytea_output', 'hex', 'hex'),
      ('extra_float_digits', '1', '1'),
      ('standard_conforming_strings', 'on', 'on'),
      ('search_path', 'public', 'public'),
      ('row_security', 'on', 'on'),
      ('default_transaction_isolation', 'read committed', 'read committed'),
      ('default_transaction_deferrable', 'off', 'off'),
      ('default_transaction_read_only', 'on', null),
      ('plan_cache_mode', 'force_generic_plan', 'force_generic_plan'),
      ('random_page_cost', '1.1', null),
      ('enable_indexscan', 'on', 'on'),
      ('enable_indexonlyscan', 'on', 'on'),
      ('enable_bitmapscan', 'on', 'on'),
      ('enable_nestloop', 'on', 'on'),
      ('jit', 'off', null),
      ('max_parallel_workers_per_gather', '0', null),
      ('statement_timeout', '60000', '10000'),
      ('lock_timeout', '1000', '2000'),
      ('idle_in_transaction_session_timeout', '10000', '5000'),
      ('idle_session_timeout', '0', '0'),
      ('client_connection_check_interval', '1000', '1000'),
      ('synchronous_commit', null, 'on')
    ) as settings (name, reader, writer)
      cross join lateral (values ('gateway_reader', reader), ('gateway_writer', writer)) of_role (role, value)
    where value is not null
  loop
    execute format('alter role %I set %I = %L', wanted.role, wanted.name, wanted.value);
  end loop;
end $$;
