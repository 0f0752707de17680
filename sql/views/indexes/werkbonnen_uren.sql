-- For sync: a pass reads the hours of a workspace in the order of their work orders.
create index concurrently if not exists werkbon_uren_sync
  on app.werkbon_uren (workspace_id, werkbon_id, id);
