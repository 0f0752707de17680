-- For GET /logboeken?entityId=…, with or without entity: the log entries of one row, which are few and are then sorted.
create index concurrently if not exists gateway_activity_subject
  on fieldops.activity (tenant_id, subject_id, subject);
