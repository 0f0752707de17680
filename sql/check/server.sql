-- The server and the session. One row.
select pg_is_in_recovery() as in_recovery,
  current_setting('transaction_read_only') = 'on' as read_only,
  case when pg_is_in_recovery() then pg_is_wal_replay_paused() else false end as paused,
  current_setting('hot_standby_feedback') = 'on' as feedback,
  (select setting::int from pg_settings where name = 'max_standby_streaming_delay') as conflict_delay_ms,
  current_setting('server_encoding') as encoding,
  current_setting('bytea_output') as bytea_output,
  current_setting('extra_float_digits')::int as extra_float_digits,
  (select system_identifier::text from pg_control_system()) as system_identifier,
  extract(epoch from clock_timestamp()) * 1000 as clock_ms
