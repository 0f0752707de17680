-- For GET /logboeken?entity=…, with or without from and to: the log entries of one kind of entity in their order.
-- Without it PostgreSQL walks every year of the workspace in (workspace_id, tijdstip, id) and discards the other
-- kinds. With entityId the app's own (workspace_id, entiteit_id, tijdstip, id) serves.
create index concurrently if not exists gateway_logboeken_soort
  on app.logboeken (workspace_id, entiteit, tijdstip, id);
