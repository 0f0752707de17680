-- For sync: a pass reads the hours of a tenant in the order of their work orders.
create index concurrently if not exists time_entries_sync
  on fieldops.time_entries (tenant_id, work_order_id, id);
