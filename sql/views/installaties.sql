-- Installations.
-- row_xid is xmin as it is stored: by it a sync pass finds the rows that changed (docs/understand/sync.md).
-- Relies on app.installaties (workspace_id, created_at, id) for lists, (workspace_id, klant_id, created_at, id) for the
-- list of one customer, and the primary key for details.
create view records.installaties as
  select workspace_id, id, klant_id as customer_id, naam, omschrijving, locatie, merk, type, serienummer, bouwjaar,
    inbedrijfstelling, koudemiddel, koudemiddel_gwp, vulling_kg, interne_notities, lmra_verplicht, version, created_at,
    updated_at, xmin as row_xid
  from app.installaties;
