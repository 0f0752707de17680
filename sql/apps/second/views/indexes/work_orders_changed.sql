-- For GET /werkbonnen?updatedSince=…: see customers_changed.
create index concurrently if not exists gateway_work_orders_changed
  on fieldops.work_orders (tenant_id, planned_on, id, updated_at);
