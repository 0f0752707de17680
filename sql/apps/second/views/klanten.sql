-- Customers: one sealed cell and the id of its key; the members of a record are picked out of it by the definition.
-- row_xid is xmin as it is stored: by it a sync pass finds the rows that changed (docs/sync.md).
-- Relies on fieldops.customers (tenant_id, created_at, id) where deleted_at is null, and the primary key for details.
grant select (tenant_id, id, sealed, vault_key, created_at, updated_at, deleted_at, xmin) on fieldops.customers to gateway_owner;
create view gateway.klanten as
  select tenant_id as workspace_id, id, sealed, vault_key, created_at, updated_at, xmin as row_xid
  from fieldops.customers
  where tenant_id = gateway.workspace()::integer
    and coalesce(tenant_id = any (array[(select gateway.workspace()::integer)]), false) -- the tenant wall, see sql/core/002_workspace.sql
    and deleted_at is null;
alter view gateway.klanten owner to gateway_owner;
grant select on gateway.klanten to gateway_reader;
-- A new owner of an asset must be a customer of the same tenant; for that the writer sees ids and nothing else.
grant select (workspace_id, id) on gateway.klanten to gateway_writer;
