-- The actions of work orders for sync: a work order counts as changed when row_xid of one of them does. A pass reads them here in
-- one scan, in key order; the subqueries of records.werkbonnen would run for every work order.
-- Relies on the proposed index app.werkbon_handelingen (workspace_id, werkbon_id, id): without it each statement sorts the parts of the
-- workspace.
create view records.werkbonnen_handelingen as
  select workspace_id, werkbon_id as id, id as part_id, xmin as row_xid
  from app.werkbon_handelingen;
