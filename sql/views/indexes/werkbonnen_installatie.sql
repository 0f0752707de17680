-- For GET /werkbonnen?installationId=…, with or without from and to: the work orders of one installation in their
-- order. Without it PostgreSQL walks the whole workspace in (workspace_id, datum, id) and discards all others.
create index concurrently if not exists gateway_werkbonnen_installatie
  on app.werkbonnen (workspace_id, installatie_id, datum, id);
