-- For GET /installaties?updatedSince=…: see customers_changed.
create index concurrently if not exists gateway_assets_changed
  on fieldops.assets (tenant_id, created_at, id, updated_at);
