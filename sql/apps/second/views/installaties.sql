-- Assets.
-- row_xid is xmin as it is stored: by it a sync pass finds the rows that changed (docs/understand/sync.md).
-- Relies on fieldops.assets (tenant_id, created_at, id) for lists, (tenant_id, customer_id, created_at, id) for the list of one
-- customer, both where deleted_at is null, and the primary key for details.
create view records.installaties as
  select tenant_id as workspace_id, id, customer_id, name, description, location, brand, model, serial_number, built_in,
    commissioned_on, refrigerant, refrigerant_gwp, charge_kg, internal_notes, needs_risk_analysis, lock_version, created_at,
    updated_at, xmin as row_xid
  from fieldops.assets
  where deleted_at is null;
