-- For GET /werkbonnen?status=…, with or without from and to: the work orders of one state in their order. Without it
-- PostgreSQL walks the whole workspace in (workspace_id, datum, id), and a rare state, such as gepland, is at its end.
create index concurrently if not exists gateway_werkbonnen_status
  on app.werkbonnen (workspace_id, status, datum, id);
