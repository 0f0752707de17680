-- The actions of work orders for sync: a work order counts as changed when row_xid of one of them does. A pass reads them here in
-- one scan, in key order; the subqueries of gateway.werkbonnen would run for every work order.
-- Relies on the proposed index app.werkbon_handelingen (workspace_id, werkbon_id, id): without it each statement sorts the parts of the workspace.
grant select (workspace_id, id, werkbon_id, xmin) on app.werkbon_handelingen to gateway_owner;
create view gateway.werkbonnen_handelingen as
  select workspace_id, werkbon_id as id, id as part_id, xmin as row_xid
  from app.werkbon_handelingen
  where workspace_id = gateway.workspace()::uuid
    and coalesce(workspace_id = any (array[(select gateway.workspace()::uuid)]), false); -- the tenant wall, see sql/core/002_workspace.sql
alter view gateway.werkbonnen_handelingen owner to gateway_owner;
grant select on gateway.werkbonnen_handelingen to gateway_reader;
