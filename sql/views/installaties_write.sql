-- Installations as the writer changes them, column by column. Refrigerant, charge, notes and LMRA flag can be read back and
-- never written: neither the writer nor the view's owner has the privilege, so PostgreSQL itself refuses.
-- Automatically updatable (CREATE VIEW, "Updatable Views"); the check option keeps a row in its workspace on the way in.
-- Its columns are those of gateway.installaties, so that a write answers with the same record as a read.
grant insert (id, workspace_id, klant_id, naam, omschrijving, locatie, merk, type, serienummer, bouwjaar, inbedrijfstelling),
    update (klant_id, naam, omschrijving, locatie, merk, type, serienummer, bouwjaar, inbedrijfstelling)
  on app.installaties to gateway_owner;
create view gateway.installaties_write as
  select workspace_id, id, klant_id as customer_id, naam, omschrijving, locatie, merk, type, serienummer, bouwjaar,
    inbedrijfstelling, koudemiddel, koudemiddel_gwp, vulling_kg, interne_notities, lmra_verplicht, version, created_at,
    updated_at
  from app.installaties
  where workspace_id = gateway.workspace()::uuid
    and coalesce(workspace_id = any (array[(select gateway.workspace()::uuid)]), false) -- the tenant wall, see sql/core/002_workspace.sql
  with cascaded check option;
alter view gateway.installaties_write owner to gateway_owner;
grant select on gateway.installaties_write to gateway_writer;
grant insert (id, workspace_id, customer_id, naam, omschrijving, locatie, merk, type, serienummer, bouwjaar, inbedrijfstelling),
    update (customer_id, naam, omschrijving, locatie, merk, type, serienummer, bouwjaar, inbedrijfstelling)
  on gateway.installaties_write to gateway_writer;
