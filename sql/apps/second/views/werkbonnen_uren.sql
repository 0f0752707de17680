-- The hours of work orders for sync: a work order counts as changed when row_xid of one of them does. A pass reads them here in
-- one scan, in key order.
-- Relies on the proposed index fieldops.time_entries (tenant_id, work_order_id, id).
create view records.werkbonnen_uren as
  select tenant_id as workspace_id, work_order_id as id, id as part_id, xmin as row_xid
  from fieldops.time_entries;
