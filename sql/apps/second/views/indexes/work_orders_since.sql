-- For GET /werkbonnen?updatedSince=… where few of many work orders changed: "ownIndex" of the filter. Up to 1,000 are found by this index
-- and sorted; more are read in the order of the list by work_orders_changed, which reads an index entry of each that did not change.
create index concurrently if not exists gateway_work_orders_since
  on fieldops.work_orders (tenant_id, updated_at, planned_on, id);
