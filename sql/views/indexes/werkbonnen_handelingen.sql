-- For sync: a pass reads the actions of a workspace in the order of their work orders.
create index concurrently if not exists werkbon_handelingen_sync
  on app.werkbon_handelingen (workspace_id, werkbon_id, id);
