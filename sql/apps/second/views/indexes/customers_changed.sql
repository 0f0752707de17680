-- For GET /klanten?updatedSince=…: the order of the list, with the moment of the last change in the index.
create index concurrently if not exists gateway_customers_changed
  on fieldops.customers (tenant_id, created_at, id, updated_at);
