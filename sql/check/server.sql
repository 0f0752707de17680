-- The server and the session. One row.
select pg_is_in_recovery() as in_recovery,
  current_setting('transaction_read_only') = 'on' as read_only,
  current_setting('TimeZone') as time_zone,
  current_setting('DateStyle') as date_style,
  current_setting('server_encoding') as encoding,
  current_setting('bytea_output') as bytea_output,
  current_setting('extra_float_digits')::int as extra_float_digits,
  (select system_identifier::text from pg_control_system()) as system_identifier,
  extract(epoch from clock_timestamp()) * 1000 as clock_ms
