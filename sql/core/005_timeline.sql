-- The timeline that a replica receives, for the marks of sync passes (docs/understand/sync.md): after a promotion the control file shows
-- the new timeline only minutes later. NULL on a server that receives nothing, and where the admin who migrates is neither a superuser nor
-- has pg_read_all_stats: then the control file decides. PostgreSQL shows a role without that privilege no column of pg_stat_wal_receiver;
-- SECURITY DEFINER, because this number alone tells nothing about data or servers. A replica that is ahead of the promoted server keeps its
-- old number: recovery refuses the timeline of which it has too much.
create function gateway.received_timeline() returns integer
  language sql stable security definer set search_path = ''
  as $$ select received_tli from pg_catalog.pg_stat_get_wal_receiver() $$;
revoke all on function gateway.received_timeline() from public;
grant execute on function gateway.received_timeline() to gateway_reader;
