-- The audit log. Redaction is the projection layer's work: it needs the rules, not SQL.
-- row_xid is xmin as it is stored: by it a sync pass finds the rows that changed (docs/understand/sync.md).
-- Relies on app.logboeken (workspace_id, tijdstip, id) and (workspace_id, entiteit_id, tijdstip, id), per year.
-- Ordered by the partition key, so PostgreSQL appends the years in order and stops with the page; a keyset condition
-- on (tijdstip, id) does not prune partitions, so the statements add tijdstip >= … beside it, which does.
create view records.logboeken as
  select workspace_id, id, entiteit as entity, entiteit_id as entity_id, actie, actor_type, actor_id, tijdstip, wijzigingen,
    xmin as row_xid
  from app.logboeken;
-- Writes of the gateway add their entries here; a column default runs with the rights of the inserting role.
grant usage on sequence app.logboeken_id_seq to gateway_writer;
