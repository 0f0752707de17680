-- Customers. No e-mail and no telephone: no view has them.
-- row_xid is xmin as it is stored: by it a sync pass finds the rows that changed (docs/understand/sync.md).
-- Relies on app.klanten (workspace_id, created_at, id) for lists and the primary key for details.
create view records.klanten as
  select workspace_id, id, naam, straat, huisnummer, toevoeging, postcode, plaats, land, kvk_nummer, created_at, updated_at,
    xmin as row_xid
  from app.klanten;
