-- For GET /werkbonnen?updatedSince=…, with or without from and to: see klanten_gewijzigd.
create index concurrently if not exists gateway_werkbonnen_gewijzigd
  on app.werkbonnen (workspace_id, datum, id, updated_at);
