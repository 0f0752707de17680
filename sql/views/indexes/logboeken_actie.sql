-- For GET /logboeken?actie=…, with or without from and to: the log entries of one action in their order. Without it
-- PostgreSQL walks every year of the workspace and discards the other actions, most of all for a rare one.
create index concurrently if not exists gateway_logboeken_actie
  on app.logboeken (workspace_id, actie, tijdstip, id);
