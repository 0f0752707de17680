-- Tokens, their workspaces and their owners, for the functions of sql/core/003_tokens.sql. No login role may read these.
create view gateway.api_tokens as select * from gateway.tokens;
grant select, insert, update (revoked_at) on gateway.api_tokens to gateway_owner; -- the owner of find_token and issue_token

create view gateway.workspaces as {workspaces};
grant select (id) on gateway.workspaces to gateway_owner;

create view gateway.token_owners as {owners};
grant select (workspace_id, id) on gateway.token_owners to gateway_owner;{policies}
