-- The settings of this session that the gateway's deadlines rely on (times in milliseconds), and the bounds on connections. One row.
-- max_connections has places that only superusers and, from PostgreSQL 16 on, members of pg_use_reserved_connections get.
select (select json_object_agg(name, setting) from pg_settings where name in ('statement_timeout', 'lock_timeout',
    'idle_in_transaction_session_timeout', 'client_connection_check_interval', 'plan_cache_mode', 'synchronous_commit')) as settings,
  json_build_object(
    'the role', nullif(rolconnlimit, -1),
    'the database', nullif(datconnlimit, -1),
    'the server', (select sum(case name when 'max_connections' then 1 else -1 end * setting::integer) from pg_settings
      where name in ('max_connections', 'superuser_reserved_connections', 'reserved_connections'))) as limits
from pg_roles, pg_database where rolname = current_user and datname = current_database()
