-- Tokens, their workspaces and their owners, for the functions of sql/core/003_tokens.sql. No login role may read these.
-- The app has no tokens, so the gateway keeps them in a table of its own.
create view gateway.api_tokens as select * from gateway.tokens;
grant select, insert, update (revoked_at) on gateway.api_tokens to gateway_owner; -- the owner of find_token and issue_token

create view gateway.workspaces as select id, title as name from fieldops.tenants;
grant select (id) on gateway.workspaces to gateway_owner;

create view gateway.token_owners as select tenant_id as workspace_id, id, email from fieldops.staff where is_admin;
grant select (workspace_id, id) on gateway.token_owners to gateway_owner;
