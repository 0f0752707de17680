-- The app's own audit log: entries are added, never changed and never read here.
grant insert (workspace_id, entiteit, entiteit_id, actie, actor_type, actor_id, wijzigingen) on app.logboeken to gateway_owner;
create view gateway.logboeken_write as
  select workspace_id, entiteit as entity, entiteit_id as entity_id, actie, actor_type, actor_id, wijzigingen
  from app.logboeken
  where workspace_id = gateway.workspace()::uuid
  with cascaded check option;
alter view gateway.logboeken_write owner to gateway_owner;
grant insert on gateway.logboeken_write to gateway_writer;
grant usage on sequence app.logboeken_id_seq to gateway_writer; -- a column default runs with the rights of the inserting role
