-- Customers: one sealed cell and the id of its key; the members of a record are picked out of it by the definition.
-- row_xid is xmin as it is stored: by it a sync pass finds the rows that changed (docs/understand/sync.md).
-- Relies on fieldops.customers (tenant_id, created_at, id) where deleted_at is null, and the primary key for details.
create view records.klanten as
  select tenant_id as workspace_id, id, sealed, vault_key, created_at, updated_at, xmin as row_xid
  from fieldops.customers
  where deleted_at is null;
