-- The audit log. Its times are texts; make_timestamp() of their parts is immutable, as the cast of the whole is not, so that an
-- index can hold it: indexes/activity_moment.sql has the same expression. The app's CHECK keeps a malformed text out.
-- row_xid is xmin as it is stored: by it a sync pass finds the rows that changed (docs/understand/sync.md).
create view records.logboeken as
  select tenant_id as workspace_id, id, subject, subject_id, verb, actor_kind, actor_ref,
    make_timestamp(left(logged_at, 4)::int, substr(logged_at, 6, 2)::int, substr(logged_at, 9, 2)::int, substr(logged_at, 12, 2)::int,
      substr(logged_at, 15, 2)::int, substr(logged_at, 18, 9)::float8) at time zone 'UTC' as logged_at, diff, xmin as row_xid
  from fieldops.activity;
