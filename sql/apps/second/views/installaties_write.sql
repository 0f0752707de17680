-- Assets as the writer changes them, column by column. The app has no trigger, so the gateway itself moves lock_version and
-- updated_at (`onChange` of the definition); the app's own stale UPDATE then finds another lock_version, as between its users.
grant insert (tenant_id, customer_id, name, description, location, brand, model, serial_number, built_in, commissioned_on),
    update (customer_id, name, description, location, brand, model, serial_number, built_in, commissioned_on, lock_version, updated_at)
  on fieldops.assets to gateway_owner;
create view gateway.installaties_write as
  select tenant_id as workspace_id, id, customer_id, name, description, location, brand, model, serial_number, built_in,
    commissioned_on, refrigerant, refrigerant_gwp, charge_kg, internal_notes, needs_risk_analysis, lock_version, created_at,
    updated_at
  from fieldops.assets
  where tenant_id = gateway.workspace()::integer
    and coalesce(tenant_id = any (array[(select gateway.workspace()::integer)]), false) -- the tenant wall, see sql/core/002_workspace.sql
    and deleted_at is null
  with cascaded check option;
alter view gateway.installaties_write owner to gateway_owner;
grant select on gateway.installaties_write to gateway_writer;
grant insert (workspace_id, customer_id, name, description, location, brand, model, serial_number, built_in, commissioned_on),
    update (customer_id, name, description, location, brand, model, serial_number, built_in, commissioned_on, lock_version, updated_at)
  on gateway.installaties_write to gateway_writer;
