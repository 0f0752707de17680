-- Assets.
-- row_xid is xmin as it is stored: by it a sync pass finds the rows that changed (docs/sync.md).
-- Relies on fieldops.assets (tenant_id, created_at, id) for lists, (tenant_id, customer_id, created_at, id) for the list of one
-- customer, both where deleted_at is null, and the primary key for details.
grant select (tenant_id, id, customer_id, name, description, location, brand, model, serial_number, built_in, commissioned_on,
    refrigerant, refrigerant_gwp, charge_kg, internal_notes, needs_risk_analysis, lock_version, created_at, updated_at, deleted_at,
    xmin)
  on fieldops.assets to gateway_owner;
create view gateway.installaties as
  select tenant_id as workspace_id, id, customer_id, name, description, location, brand, model, serial_number, built_in,
    commissioned_on, refrigerant, refrigerant_gwp, charge_kg, internal_notes, needs_risk_analysis, lock_version, created_at,
    updated_at, xmin as row_xid
  from fieldops.assets
  where tenant_id = gateway.workspace()::integer
    and coalesce(tenant_id = any (array[(select gateway.workspace()::integer)]), false) -- the tenant wall, see sql/core/002_workspace.sql
    and deleted_at is null;
alter view gateway.installaties owner to gateway_owner;
grant select on gateway.installaties to gateway_reader;
-- Reading one's own write while every replica is behind (capped).
grant select on gateway.installaties to gateway_writer;
