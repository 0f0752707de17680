-- The backends of this login, also of other gateways, for which writes wait; the last of those that hold a lock up is the cause of the
-- others. As far as the writer's login may see: docs/operate/troubleshooting.md has the query for an operator.
select pg_backend_pid(), pid, case when state = 'active' then extract(epoch from clock_timestamp() - query_start) end,
    case when wait_event = 'SyncRep' then 'sync' when wait_event_type = 'Lock' then 'lock' else 'work' end,
    relation::regclass, holder
  from pg_stat_activity waiting left join lateral (
    select relation from pg_locks where pg_locks.pid = waiting.pid and not granted limit 1) wanted on true
  left join lateral (
    with recursive held (pid, depth) as (
      select unnest(pg_blocking_pids(waiting.pid)), 1 where waiting.wait_event_type = 'Lock'
      union select unnest(pg_blocking_pids(pid)), depth + 1 from held where depth < 5)
    select concat_ws(', ', 'process ' || pid, 'role ' || usename, nullif(application_name, '')) as holder
    from held join pg_stat_activity using (pid) order by depth desc limit 1) cause on true
  where usename = current_user and application_name = '{application}' and pid <> pg_backend_pid()
