-- The workspace of the running statement, or NULL, which equals nothing: unset or '' means no rows.
-- The gateway sets it for the transaction only, bound in the same message as the statement it guards.
-- A plain SQL function so that the planner inlines it and the comparison becomes an index condition;
-- security_barrier views were measured to turn an index scan with LIMIT into a full scan and a sort.
create function gateway.workspace() returns uuid
  language sql stable parallel safe
  as $$ select nullif(current_setting('gateway.workspace_id', true), '')::uuid $$;
alter function gateway.workspace() owner to gateway_owner;
revoke all on function gateway.workspace() from public;
grant execute on function gateway.workspace() to gateway_owner, gateway_reader, gateway_writer;
