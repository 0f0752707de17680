-- The process that holds the lock of the migrations.
select format('process %s (%s, user %s, since %s)', l.pid, coalesce(nullif(a.application_name, ''), 'no name'),
  a.usename, to_char(a.backend_start, 'YYYY-MM-DD HH24:MI:SS')) as holder
from pg_locks l join pg_stat_activity a using (pid)
where l.relation = 'gateway.migration_lock'::regclass and l.granted and l.mode = 'ShareUpdateExclusiveLock'
  and l.database = (select oid from pg_database where datname = current_database())
