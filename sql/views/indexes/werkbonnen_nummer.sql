-- For GET /werkbonnen?nummer=…: without it PostgreSQL walks the whole workspace and discards all others.
create index concurrently if not exists gateway_werkbonnen_nummer
  on app.werkbonnen (workspace_id, nummer, datum, id);
