-- One token by the SHA-256 of its text, for any workspace: the only question the reader can ask without a workspace.
-- Relies on the unique index on app.api_tokens (token_hash): one index probe.
-- Returns expiry and revocation without judging them: the gateway goes by its own clock, also while the answer is cached.
grant select (id, workspace_id, token_hash, scopes, expires_at, revoked_at) on app.api_tokens to gateway_owner;
create function gateway.find_token(hash bytea)
  returns table (token_id uuid, workspace_id uuid, scopes text, expires_at timestamptz, revoked_at timestamptz)
  language sql stable security definer set search_path = ''
  as $$
    select t.id, t.workspace_id, array_to_string(t.scopes, ' '), t.expires_at, t.revoked_at
    from app.api_tokens t
    where t.token_hash = hash
  $$;
alter function gateway.find_token(bytea) owner to gateway_owner;
revoke all on function gateway.find_token(bytea) from public;
grant execute on function gateway.find_token(bytea) to gateway_reader;
