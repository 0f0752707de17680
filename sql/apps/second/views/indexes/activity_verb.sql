-- For GET /logboeken?actie=…: the log entries of one action in the order of the list.
create index concurrently if not exists gateway_activity_verb
  on fieldops.activity (tenant_id, verb, (make_timestamp(left(logged_at, 4)::int, substr(logged_at, 6, 2)::int, substr(logged_at, 9, 2)::int, substr(logged_at, 12, 2)::int, substr(logged_at, 15, 2)::int, substr(logged_at, 18, 9)::float8) at time zone 'UTC'), id);
