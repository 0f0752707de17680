-- The app's own audit log: entries are added, never changed and never read here. The default of the view's column gives an entry
-- its time, in the app's form, because the table has none.
create view records.logboeken_write as
  select tenant_id as workspace_id, subject, subject_id, verb, actor_kind, actor_ref, diff, logged_at
  from fieldops.activity;
alter view records.logboeken_write alter column logged_at
  set default to_char(clock_timestamp() at time zone 'UTC', 'YYYY-MM-DD"T"HH24:MI:SS.US"Z"');
