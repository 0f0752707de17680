-- For GET /werkbonnen?installationId=…: the work orders of one asset in their order.
create index concurrently if not exists gateway_work_orders_asset
  on fieldops.work_orders (tenant_id, asset_id, planned_on, id);
