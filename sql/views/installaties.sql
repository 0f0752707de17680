-- Installations.
-- row_xid is xmin as it is stored: by it a sync pass finds the rows that changed (docs/sync.md).
-- Relies on app.installaties (workspace_id, created_at, id) for lists, (workspace_id, klant_id, created_at, id) for the
-- list of one customer, and the primary key for details.
grant select (workspace_id, id, klant_id, naam, omschrijving, locatie, merk, type, serienummer, bouwjaar, inbedrijfstelling,
    koudemiddel, koudemiddel_gwp, vulling_kg, interne_notities, lmra_verplicht, version, created_at, updated_at, xmin)
  on app.installaties to gateway_owner;
create view gateway.installaties as
  select workspace_id, id, klant_id as customer_id, naam, omschrijving, locatie, merk, type, serienummer, bouwjaar,
    inbedrijfstelling, koudemiddel, koudemiddel_gwp, vulling_kg, interne_notities, lmra_verplicht, version, created_at,
    updated_at, xmin as row_xid
  from app.installaties
  where workspace_id = gateway.workspace()::uuid
    and coalesce(workspace_id = any (array[(select gateway.workspace()::uuid)]), false); -- the tenant wall, see sql/core/002_workspace.sql
alter view gateway.installaties owner to gateway_owner;
grant select on gateway.installaties to gateway_reader;
-- Reading one's own write while every replica is behind (capped).
grant select on gateway.installaties to gateway_writer;
