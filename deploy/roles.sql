-- The gateway's roles, made by a DBA for an admin who runs `migrate` without CREATEROLE: once per cluster and again after an
-- upgrade. The admin must own the database, so that it can take TEMPORARY from PUBLIC.
--   PGOPTIONS='-c gateway.admin=workspace_admin' psql "$SUPERUSER_URL" -f deploy/roles.sql
--   psql "$SUPERUSER_URL" -c '\password gateway_reader' -c '\password gateway_writer'
do $$
declare
  wanted record;
begin
  if to_regrole('gateway_owner') is null then create role gateway_owner nologin; end if;
  if to_regrole('gateway_reader') is null then create role gateway_reader login; end if;
  if to_regrole('gateway_writer') is null then create role gateway_writer login; end if;
  -- To hand the views over to their owner the admin must be a member.
  execute format('grant gateway_owner to %I', current_setting('gateway.admin'));
  -- The list of sql/core/001_roles.sql, which has the reasons; a test compares the two.
  for wanted in
    select * from (values
      ('gateway_reader', 'TimeZone', 'UTC'),
      ('gateway_reader', 'DateStyle', 'ISO, YMD'),
      ('gateway_writer', 'TimeZone', 'UTC'),
      ('gateway_writer', 'DateStyle', 'ISO, YMD'),
      ('gateway_reader', 'plan_cache_mode', 'force_generic_plan'),
      ('gateway_reader', 'random_page_cost', '1.1'),
      ('gateway_reader', 'jit', 'off'),
      ('gateway_reader', 'max_parallel_workers_per_gather', '0'),
      ('gateway_reader', 'default_transaction_read_only', 'on'),
      ('gateway_reader', 'statement_timeout', '60s'),
      ('gateway_reader', 'lock_timeout', '1s'),
      ('gateway_reader', 'idle_in_transaction_session_timeout', '10s'),
      ('gateway_reader', 'client_connection_check_interval', '1s'),
      ('gateway_writer', 'statement_timeout', '10s'),
      ('gateway_writer', 'lock_timeout', '2s'),
      ('gateway_writer', 'idle_in_transaction_session_timeout', '5s'),
      ('gateway_writer', 'synchronous_commit', 'on'),
      ('gateway_writer', 'client_connection_check_interval', '1s')
    ) as settings (role, name, value)
  loop
    execute format('alter role %I set %I = %L', wanted.role, wanted.name, wanted.value);
  end loop;
end $$;
