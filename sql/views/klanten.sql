-- Customers. No e-mail and no telephone: the owner of the view cannot read those columns at all.
-- row_xid is xmin as it is stored: by it a sync pass finds the rows that changed (docs/sync.md).
-- Relies on app.klanten (workspace_id, created_at, id) for lists and the primary key for details.
grant select (workspace_id, id, naam, straat, huisnummer, toevoeging, postcode, plaats, land, kvk_nummer, created_at, updated_at,
    xmin)
  on app.klanten to gateway_owner;
create view gateway.klanten as
  select workspace_id, id, naam, straat, huisnummer, toevoeging, postcode, plaats, land, kvk_nummer, created_at, updated_at,
    xmin as row_xid
  from app.klanten
  where workspace_id = gateway.workspace()::uuid
    and coalesce(workspace_id = any (array[(select gateway.workspace()::uuid)]), false); -- the tenant wall, see sql/core/002_workspace.sql
alter view gateway.klanten owner to gateway_owner;
grant select on gateway.klanten to gateway_reader;
-- A new owner of an installation must be a customer of the same workspace; for that the writer sees ids and nothing else.
grant select (workspace_id, id) on gateway.klanten to gateway_writer;
