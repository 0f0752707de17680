-- Tokens, their workspaces and their owners, for the functions of sql/core/003_tokens.sql. No login role may read these.

-- The reference app has a table of its own for tokens. An app without one takes gateway.tokens:
--   create view gateway.api_tokens as select * from gateway.tokens;
-- Automatically updatable, and with exactly these columns, since tokens are created and revoked through it.
-- Relies on the unique index on app.api_tokens (token_hash).
create view gateway.api_tokens as
  select id, workspace_id, created_by, naam as name, token_hash, scopes, created_at, expires_at, revoked_at, rotated_from
  from app.api_tokens;
grant select, insert, update (revoked_at) on gateway.api_tokens to gateway_owner; -- the owner of find_token and issue_token

create view gateway.workspaces as select id, naam as name from app.workspaces;
grant select (id) on gateway.workspaces to gateway_owner;

create view gateway.token_owners as select workspace_id, id, email from app.users where rol = 'owner';
grant select (workspace_id, id) on gateway.token_owners to gateway_owner;
