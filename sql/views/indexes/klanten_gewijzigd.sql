-- For GET /klanten?updatedSince=…: the order of the list, with the moment of the last change in the index, so that customers
-- that did not change cost an index entry and no row. An index that begins with updated_at would need a sort of all changed
-- customers for each page. Because updated_at is indexed, updates of a customer are no longer heap-only tuples.
create index concurrently if not exists gateway_klanten_gewijzigd
  on app.klanten (workspace_id, created_at, id, updated_at);
