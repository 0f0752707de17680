-- The workspace of the running statement, or NULL, which equals nothing: unset or '' means no rows.
-- The gateway sets it for the transaction only, bound in the same message as the statement it guards.
-- It is text, because the ids of workspaces have the app's type: each view casts it to the type of its column, here uuid.
-- The tenant wall is two conditions in every view, which mean the same and are needed both:
--   workspace_id = gateway.workspace()::uuid
--     A plain SQL function, so that the planner inlines it and the comparison becomes an index condition. The cast belongs on
--     the function: "workspace_id::text = gateway.workspace()" can use no index on the column.
--   coalesce(workspace_id = any (array[(select gateway.workspace()::uuid)]), false)
--     PostgreSQL evaluates conditions in the order of their cost. The first one costs more than many a function, so that in a
--     sequential scan "where set_config('my.value', naam, false) is null" or the error of "where naam::int = 1" showed values of
--     other workspaces. A comparison with an array of one element costs half an operator: less than any built-in function. The
--     subquery runs once per statement; coalesce() keeps the condition out of the index and its selectivity out of the estimates.
--     It adds 0.1 us per row, pages and plans stay the same: 203,000 rows counted in 39 ms instead of 18.
-- (json_value() and its like are no functions: the planner assigns them no cost, see docs/security.md.)
-- Tried: security_barrier views turn an index scan with LIMIT into a full scan and a sort; gateway.workspace() in plpgsql with a
-- tiny cost still leaves the comparison's own cost, and set_config() came first.
-- Functions of a lower cost can be made by a role that can create one: so the login roles can create nothing, nowhere (001).
create function gateway.workspace() returns text
  language sql stable parallel safe
  as $$ select nullif(current_setting('gateway.workspace_id', true), '') $$;
alter function gateway.workspace() owner to gateway_owner;
revoke all on function gateway.workspace() from public;
grant execute on function gateway.workspace() to gateway_owner, gateway_reader, gateway_writer;
