-- The hours of work orders for sync: a work order counts as changed when row_xid of one of them does. A pass reads them here in
-- one scan, in key order.
-- Relies on the proposed index fieldops.time_entries (tenant_id, work_order_id, id).
grant select (tenant_id, id, work_order_id, xmin) on fieldops.time_entries to gateway_owner;
create view gateway.werkbonnen_uren as
  select tenant_id as workspace_id, work_order_id as id, id as part_id, xmin as row_xid
  from fieldops.time_entries
  where tenant_id = gateway.workspace()::integer
    and coalesce(tenant_id = any (array[(select gateway.workspace()::integer)]), false); -- the tenant wall, see sql/core/002_workspace.sql
alter view gateway.werkbonnen_uren owner to gateway_owner;
grant select on gateway.werkbonnen_uren to gateway_reader;
