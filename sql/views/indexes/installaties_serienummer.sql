-- For GET /installaties?serienummer=…: without it PostgreSQL walks the whole workspace and discards all others.
create index concurrently if not exists gateway_installaties_serienummer
  on app.installaties (workspace_id, serienummer, created_at, id);
