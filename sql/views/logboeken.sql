-- The audit log. Redaction is the projection layer's work: it needs the rules, not SQL.
-- row_xid is xmin as it is stored: by it a sync pass finds the rows that changed (docs/sync.md).
-- Relies on app.logboeken (workspace_id, tijdstip, id) and (workspace_id, entiteit_id, tijdstip, id), per year.
-- Ordered by the partition key, so PostgreSQL appends the years in order and stops with the page; a keyset condition
-- on (tijdstip, id) does not prune partitions, so the statements add tijdstip >= … beside it, which does.
grant select (workspace_id, id, tijdstip, entiteit, entiteit_id, actie, actor_type, actor_id, wijzigingen, xmin)
  on app.logboeken to gateway_owner;
create view gateway.logboeken as
  select workspace_id, id, entiteit as entity, entiteit_id as entity_id, actie, actor_type, actor_id, tijdstip, wijzigingen,
    xmin as row_xid
  from app.logboeken
  where workspace_id = gateway.workspace()::uuid
    and coalesce(workspace_id = any (array[(select gateway.workspace()::uuid)]), false); -- the tenant wall, see sql/core/002_workspace.sql
alter view gateway.logboeken owner to gateway_owner;
grant select on gateway.logboeken to gateway_reader;
