-- For GET /installaties?updatedSince=…: see klanten_gewijzigd.
create index concurrently if not exists gateway_installaties_gewijzigd
  on app.installaties (workspace_id, created_at, id, updated_at);
