-- The functions behind `tokens`: another app schema needs other functions and keeps the command line.
-- For the admin alone: they run with the caller's rights and neither login role may execute them.
-- Errors an operator can make have a SQLSTATE of their own (class WG); their message is shown as it stands.

-- The workspace meant by an id or by a name.
create function gateway.find_workspace(id_or_name text) returns uuid
  language plpgsql stable
  as $$
  declare
    found_ids uuid[] := array(select w.id from app.workspaces w where w.id::text = lower(id_or_name) or w.naam = id_or_name limit 2);
  begin
    if cardinality(found_ids) = 1 then return found_ids[1]; end if;
    if cardinality(found_ids) = 0 then raise sqlstate 'WG001' using message = format('There is no workspace %L.', id_or_name); end if;
    raise sqlstate 'WG001' using message = format('Several workspaces are called %L; give the id.', id_or_name);
  end $$;

-- The user of the workspace meant by an id or by an e-mail address. Whether they own it, create_token decides.
create function gateway.find_user(workspace uuid, id_or_email text) returns uuid
  language plpgsql stable
  as $$
  declare
    found_ids uuid[] := array(
      select u.id from app.users u
      where u.workspace_id = workspace and (u.id::text = lower(id_or_email) or lower(u.email) = lower(id_or_email)) limit 2);
  begin
    if cardinality(found_ids) = 1 then return found_ids[1]; end if;
    if cardinality(found_ids) = 0 then
      raise sqlstate 'WG002' using message = format('The workspace has no user %L.', id_or_email);
    end if;
    raise sqlstate 'WG002' using message = format('Several users of the workspace have the address %L; give the id.', id_or_email);
  end $$;

-- Stores a token's hash. Only an owner of the workspace may have one made.
create function gateway.create_token(id uuid, workspace uuid, owner uuid, naam text, hash bytea, scopes text[],
    expires timestamptz, rotated_from uuid) returns void
  language plpgsql
  as $$
  begin
    if not exists (select from app.users u where u.id = owner and u.workspace_id = workspace and u.rol = 'owner') then
      raise sqlstate 'WG003' using message = format('User %s is not an owner of workspace %s.', owner, workspace);
    end if;
    insert into app.api_tokens (id, workspace_id, created_by, naam, token_hash, scopes, expires_at, rotated_from)
    values (create_token.id, workspace, owner, create_token.naam, hash, create_token.scopes, expires, create_token.rotated_from);
  end $$;

-- The tokens of a workspace, or of all for NULL; never their hashes.
create function gateway.list_tokens(workspace uuid)
  returns table (id uuid, workspace_id uuid, workspace_naam text, created_by uuid, naam text, scopes text[], created_at timestamptz,
    expires_at timestamptz, revoked_at timestamptz, rotated_from uuid, state text)
  language sql stable
  as $$
    select t.id, t.workspace_id, w.naam, t.created_by, t.naam, t.scopes, t.created_at, t.expires_at, t.revoked_at, t.rotated_from,
      case when t.revoked_at is not null then 'revoked' when t.expires_at <= now() then 'expired' else 'active' end
    from app.api_tokens t join app.workspaces w on w.id = t.workspace_id
    where workspace is null or t.workspace_id = workspace
    order by w.naam, t.created_at, t.id
  $$;

-- Revokes, and says since when: an earlier moment than now if it was revoked before.
create function gateway.revoke_token(id uuid) returns table (revoked_at timestamptz, revoked_now boolean)
  language plpgsql
  as $$
  declare
    before timestamptz;
  begin
    select t.revoked_at into before from app.api_tokens t where t.id = revoke_token.id for update;
    if not found then raise sqlstate 'WG004' using message = format('There is no token %s.', revoke_token.id); end if;
    update app.api_tokens t set revoked_at = clock_timestamp() where t.id = revoke_token.id and t.revoked_at is null;
    return query select t.revoked_at, before is null from app.api_tokens t where t.id = revoke_token.id;
  end $$;

-- Makes the successor of a token, with the same name, scopes, workspace and owner, and revokes the token: both or neither.
create function gateway.rotate_token(id uuid, successor uuid, hash bytea, expires timestamptz)
  returns table (workspace_id uuid, naam text, scopes text[])
  language plpgsql
  as $$
  declare
    old app.api_tokens;
  begin
    select * into old from app.api_tokens t where t.id = rotate_token.id for update;
    if not found then raise sqlstate 'WG004' using message = format('There is no token %s.', rotate_token.id); end if;
    if old.revoked_at is not null then
      raise sqlstate 'WG005' using message = format('Token %s is revoked; create a new one instead.', rotate_token.id);
    end if;
    perform gateway.create_token(successor, old.workspace_id, old.created_by, old.naam, hash, old.scopes, expires, old.id);
    update app.api_tokens t set revoked_at = clock_timestamp() where t.id = old.id;
    return query select old.workspace_id, old.naam, old.scopes;
  end $$;

revoke all on function gateway.find_workspace(text), gateway.find_user(uuid, text),
  gateway.create_token(uuid, uuid, uuid, text, bytea, text[], timestamptz, uuid), gateway.list_tokens(uuid),
  gateway.revoke_token(uuid), gateway.rotate_token(uuid, uuid, bytea, timestamptz) from public;

-- The ids of the data keys in use, over all workspaces, with the number of values seen: `check` and `serve` hold them
-- against the keyring. SECURITY DEFINER because the wall shows no customer without a workspace; all that comes out
-- are key ids and counts, no value and nothing of any workspace, so the reader may execute it.
-- All rows up to about 20,000, of more a sample of as many, taken by page: 35 ms for 300,000 rows (560 ms before their first ANALYZE).
-- A key that only a handful of rows use can be missed; those rows then show decodeErrors.
create function gateway.key_ids() returns table (key_id text, seen bigint)
  language sql stable security definer set search_path = ''
  as $$
    select split_part(v.value, ':', 3), count(*)
    from app.klanten k tablesample system (
        (select least(100, 100 * 20000 / greatest(c.reltuples, 1)) from pg_catalog.pg_class c where c.oid = 'app.klanten'::pg_catalog.regclass))
      cross join lateral (values (k.naam), (k.straat), (k.huisnummer), (k.toevoeging), (k.postcode), (k.plaats), (k.kvk_nummer)) v (value)
    where v.value like 'enc:v_:%'
    group by 1
  $$;
alter function gateway.key_ids() owner to gateway_owner;
revoke all on function gateway.key_ids() from public;
grant execute on function gateway.key_ids() to gateway_reader;

-- Up to ten workspaces, those with a token first: `check` and `serve` try the tenant wall between them. SECURITY DEFINER
-- because the wall shows nothing without a workspace; all that comes out are ids, which open nothing by themselves.
grant select (id) on app.workspaces to gateway_owner;
create function gateway.sample_workspaces() returns setof uuid
  language sql stable security definer set search_path = ''
  as $$
    select w.id from app.workspaces w
    order by exists (select from app.api_tokens t where t.workspace_id = w.id) desc, w.id
    limit 10
  $$;
alter function gateway.sample_workspaces() owner to gateway_owner;
revoke all on function gateway.sample_workspaces() from public;
grant execute on function gateway.sample_workspaces() to gateway_reader;
