-- The staff of work orders for sync: hours show the name of the member of staff, so a work order counts as changed when row_xid of
-- one of theirs does.
-- Relies on the proposed index fieldops.time_entries (tenant_id, work_order_id, id) and on the primary key of fieldops.staff.
create view records.werkbonnen_medewerkers as
  select t.tenant_id as workspace_id, t.work_order_id as id, t.id as part_id, s.xmin as row_xid
  from fieldops.time_entries t join fieldops.staff s on s.id = t.staff_id and s.tenant_id = t.tenant_id;
