-- For GET /werkbonnen?status=…: the work orders of one state in their order.
create index concurrently if not exists gateway_work_orders_status
  on fieldops.work_orders (tenant_id, status, planned_on, id);
