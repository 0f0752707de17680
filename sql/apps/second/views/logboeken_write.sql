-- The app's own audit log: entries are added, never changed and never read here. The default of the view's column gives an entry
-- its time, in the app's form, because the table has none.
grant insert (tenant_id, logged_at, subject, subject_id, verb, actor_kind, actor_ref, diff) on fieldops.activity to gateway_owner;
create view gateway.logboeken_write as
  select tenant_id as workspace_id, subject, subject_id, verb, actor_kind, actor_ref, diff, logged_at
  from fieldops.activity
  where tenant_id = gateway.workspace()::integer
  with cascaded check option;
alter view gateway.logboeken_write alter column logged_at
  set default to_char(clock_timestamp() at time zone 'UTC', 'YYYY-MM-DD"T"HH24:MI:SS.US"Z"');
alter view gateway.logboeken_write owner to gateway_owner;
grant insert (workspace_id, subject, subject_id, verb, actor_kind, actor_ref, diff) on gateway.logboeken_write to gateway_writer;
