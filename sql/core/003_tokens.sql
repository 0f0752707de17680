-- Access tokens. The functions below use three views of the operator, which sql/views/tokens.sql defines over the reference app:
--   gateway.api_tokens     the table of tokens: gateway.tokens, or the app's own table with these columns
--   gateway.workspaces     id, name
--   gateway.token_owners   workspace_id, id, email: the users who may have tokens
-- Their ids have the app's types; here ids are text, to which every type can be cast.
-- The views are created after this file and replaced while it stays, so the bodies are checked when they run.
set local check_function_bodies = off;

-- Only the SHA-256 of a token is stored; the token has 256 bits of entropy, so no salt or stretching is needed.
create table gateway.tokens (
  id uuid primary key,
  workspace_id text not null,
  created_by text not null,
  name text not null,
  token_hash bytea not null unique check (length(token_hash) = 32),
  scopes text[] not null,
  created_at timestamptz not null default now(),
  expires_at timestamptz,
  revoked_at timestamptz,
  rotated_from uuid references gateway.tokens,
  -- NULL: the default of the gateways. A view of the app's own table may lack it: then every token has the default.
  requests_per_minute integer check (requests_per_minute between 1 and 100000)
);
create index tokens_rotated_from on gateway.tokens (rotated_from) where rotated_from is not null; -- `tokens prune` looks for successors

-- The last use of each token, for people who look for tokens that are no longer used. A table of its own, because the table of
-- tokens may be the app's. Nothing is judged by it.
create table gateway.token_uses (
  token_id uuid primary key,
  used_at timestamptz not null
) with (fillfactor = 50);
alter table gateway.token_uses owner to gateway_owner;

-- Notes that the tokens were used now. Several gateways report the same token: its row is written again after 50 seconds at
-- the earliest. In the order of the ids, so that two gateways do not wait for each other in a circle. SECURITY DEFINER, because
-- the writer itself may write nothing here; ids that are no token's are left out.
create function gateway.note_token_uses(ids uuid[]) returns void
  language sql security definer set search_path = ''
  as $$
    insert into gateway.token_uses as noted (token_id, used_at)
    select t.id, pg_catalog.now() from gateway.api_tokens t where t.id = any (ids) order by t.id
    on conflict (token_id) do update set used_at = excluded.used_at
    where noted.used_at < excluded.used_at - interval '50 seconds'
  $$;
alter function gateway.note_token_uses(uuid[]) owner to gateway_owner;
revoke all on function gateway.note_token_uses(uuid[]) from public;
grant execute on function gateway.note_token_uses(uuid[]) to gateway_writer;

-- A sentence for each table whose row security hides rows of these views from the role that reads it: no policy that permits is true for
-- every row, or one that restricts is not. A policy whose condition needs a column counts as hiding. Views below a view read as their own
-- owners, unless they have security_invoker. The conditions are evaluated for the caller of the look-up, as the table itself evaluates
-- them.
create function gateway.hidden_rows(views text[]) returns setof text
  language plpgsql stable set search_path = ''
  as $$
  declare
    hiding record;
    policy record;
    is_true boolean;
    is_shown boolean;
  begin
    for hiding in
      with recursive below (view, oid, reader) as (
        select v, to_regclass(v)::oid, (select o.oid from pg_catalog.pg_roles o where o.rolname = current_user) from unnest(views) v
        union
        select b.view, d.refobjid, case when c.reloptions::text ~ 'security_invoker=(true|on|1|yes)' then b.reader else c.relowner end
        from below b join pg_catalog.pg_class c on c.oid = b.oid and c.relkind = 'v' join pg_catalog.pg_rewrite r on r.ev_class = c.oid
          join pg_catalog.pg_depend d on d.classid = 'pg_catalog.pg_rewrite'::regclass and d.objid = r.oid
            and d.refclassid = 'pg_catalog.pg_class'::regclass and d.refobjid <> c.oid
      )
      select b.view, b.oid, b.reader from below b join pg_catalog.pg_class c using (oid) join pg_catalog.pg_roles o on o.oid = b.reader
      where c.relrowsecurity and not o.rolsuper and not o.rolbypassrls and (c.relforcerowsecurity or not pg_catalog.pg_has_role(b.reader, c.relowner, 'usage'))
    loop
      is_shown := null;
      for policy in
        select p.polpermissive as permits, pg_catalog.pg_get_expr(p.polqual, p.polrelid) as condition from pg_catalog.pg_policy p
        where p.polrelid = hiding.oid and p.polcmd in ('r', '*')
          and exists (select from unnest(p.polroles) r where r = 0 or pg_catalog.pg_has_role(hiding.reader, r, 'usage'))
        order by p.polpermissive desc
      loop
        begin
          execute 'select ' || policy.condition into is_true;
        exception when others then
          is_true := false;
        end;
        if policy.permits then is_shown := coalesce(is_shown, false) or coalesce(is_true, false);
        elsif policy.condition is not null then is_shown := is_shown and coalesce(is_true, false);
        end if;
      end loop;
      if is_shown is not true then
        return next format('row security of %s hides rows of %s from %s', hiding.oid::regclass, hiding.view, hiding.reader::regrole);
      end if;
    end loop;
  end $$;
alter function gateway.hidden_rows(text[]) owner to gateway_owner;
revoke all on function gateway.hidden_rows(text[]) from public;

-- For the checks of the gateway.
create function gateway.hidden_token_rows() returns setof text
  language sql stable security definer set search_path = ''
  as $$ select gateway.hidden_rows('{gateway.api_tokens,gateway.workspaces,gateway.token_owners}') $$;
alter function gateway.hidden_token_rows() owner to gateway_owner;
revoke all on function gateway.hidden_token_rows() from public;
grant execute on function gateway.hidden_token_rows() to gateway_reader, gateway_writer;

-- Before a look-up says that something is not there: an answer of rows that may be hidden would refuse a valid token.
create function gateway.refuse_hidden_rows(views text[]) returns void
  language plpgsql stable set search_path = ''
  as $$
  declare
    sentence text := (select string_agg(s, '; ') from gateway.hidden_rows(views) s);
  begin
    if sentence is not null then raise sqlstate 'WG007' using message = sentence; end if;
  end $$;
alter function gateway.refuse_hidden_rows(text[]) owner to gateway_owner;
revoke all on function gateway.refuse_hidden_rows(text[]) from public;

-- Whether a token's workspace and user are still there: the app may mark them as deleted, and a user may lose the right to tokens.
-- The text of the statement holds the ids, so that they take the types of the views, of whatever app, and its indexes are used.
create function gateway.is_token_owner(workspace text, owner text) returns boolean
  language plpgsql volatile set search_path = ''
  as $$
  declare
    is_owner boolean;
  begin
    execute format('select exists (select from gateway.workspaces where id = %1$L)
        and exists (select from gateway.token_owners where workspace_id = %1$L and id = %2$L)', workspace, owner) into is_owner;
    if not is_owner then perform gateway.refuse_hidden_rows('{gateway.workspaces,gateway.token_owners}'); end if;
    return is_owner;
  end $$;
alter function gateway.is_token_owner(text, text) owner to gateway_owner;
revoke all on function gateway.is_token_owner(text, text) from public;

-- Of a token of the workspace of the running statement: the user in whose name a new record is made.
create function gateway.token_owner(token uuid) returns text
  language sql stable security definer set search_path = ''
  as $$ select t.created_by::text from gateway.api_tokens t where t.id = token and t.workspace_id::text = gateway.workspace() $$;
alter function gateway.token_owner(uuid) owner to gateway_owner;
revoke all on function gateway.token_owner(uuid) from public;
grant execute on function gateway.token_owner(uuid) to gateway_writer;

-- By the name of the column, because the view may lack it.
create function gateway.limit_of(token anyelement) returns integer
  language sql immutable set search_path = ''
  as $$ select (pg_catalog.to_jsonb(token) ->> 'requests_per_minute')::integer $$;
revoke all on function gateway.limit_of(anyelement) from public;
grant execute on function gateway.limit_of(anyelement) to gateway_owner;

-- One token by the SHA-256 of its text, for any workspace: the only question that a login can ask without a workspace. The writer asks
-- while no replica can be used. Relies on the unique index on token_hash: one index probe. Returns expiry and revocation without judging
-- them: the gateway goes by its own clock, also while the answer is cached. A token whose workspace or user is gone counts as revoked,
-- since -infinity, for as long as they are. VOLATILE, as is_token_owner, so that its statement takes its snapshot after it has waited for a
-- lock: an ALTER TABLE or REPACK that rewrites the table writes rows that no earlier snapshot sees, and a STABLE function, which reads by
-- the snapshot of its caller, would find no token.
create function gateway.find_token(hash bytea)
  returns table (token_id uuid, workspace_id text, scopes text, expires_at timestamptz, revoked_at timestamptz, name text, requests_per_minute integer)
  language plpgsql volatile security definer set search_path = ''
  as $$
  begin
    return query select t.id, t.workspace_id::text, array_to_string(t.scopes, ' '), t.expires_at,
        case when gateway.is_token_owner(t.workspace_id::text, t.created_by::text) then t.revoked_at else coalesce(t.revoked_at, '-infinity') end,
        t.name::text, gateway.limit_of(t)
      from gateway.api_tokens t
      where t.token_hash = hash;
    if not found then perform gateway.refuse_hidden_rows('{gateway.api_tokens}'); end if;
  end $$;
alter function gateway.find_token(bytea) owner to gateway_owner;
revoke all on function gateway.find_token(bytea) from public;
grant execute on function gateway.find_token(bytea) to gateway_reader, gateway_writer;

-- Up to ten workspaces, those with a token first, whose records `check` reads. For the admin alone: no login role can list workspaces.
create function gateway.sample_workspaces() returns setof text
  language sql stable
  as $$
    select w.id::text from gateway.workspaces w
    order by w.id::text in (select t.workspace_id::text from gateway.api_tokens t) desc, w.id
    limit 10
  $$;
revoke all on function gateway.sample_workspaces() from public;

-- The functions behind the command `tokens`, for the admin alone: they run with the caller's rights and neither login role
-- may execute them. Errors an operator can make have a SQLSTATE of their own (class WG); their message is shown as it stands.

-- The workspace meant by an id or by a name. A view can list it twice, such as by a join.
create function gateway.find_workspace(id_or_name text) returns text
  language plpgsql stable
  as $$
  declare
    found_ids text[] := array(
      select distinct w.id::text from gateway.workspaces w where w.id::text in (id_or_name, lower(id_or_name)) or w.name = id_or_name limit 2);
  begin
    if cardinality(found_ids) = 1 then return found_ids[1]; end if;
    if cardinality(found_ids) = 0 then raise sqlstate 'WG001' using message = format('There is no workspace %L.', id_or_name); end if;
    raise sqlstate 'WG001' using message = format('Several workspaces are called %L; give the id.', id_or_name);
  end $$;

-- The user meant by an id or by an e-mail address, of those who may have tokens of the workspace made.
create function gateway.find_user(workspace text, id_or_email text) returns text
  language plpgsql stable
  as $$
  declare
    found_ids text[] := array(
      select distinct o.id::text from gateway.token_owners o
      where o.workspace_id::text = workspace
        and (o.id::text in (id_or_email, lower(id_or_email)) or lower(o.email) = lower(id_or_email)) limit 2);
  begin
    if cardinality(found_ids) = 1 then return found_ids[1]; end if;
    if cardinality(found_ids) = 0 then
      raise sqlstate 'WG002' using message = format('The workspace has no user %L who may have tokens.', id_or_email);
    end if;
    raise sqlstate 'WG002' using message = format('Several users of the workspace have the address %L; give the id.', id_or_email);
  end $$;

-- Stores a token's hash, for a user who may have tokens of the workspace.
-- The row is a variable of the view's type, because PL/pgSQL then converts the ids to the types of the app.
create function gateway.create_token(id uuid, workspace text, owner text, name text, hash bytea, scopes text[],
    expires timestamptz, rotated_from uuid, requests_per_minute integer) returns void
  language plpgsql
  as $$
  declare
    token gateway.api_tokens;
  begin
    if not exists (select from gateway.workspaces w where w.id::text = workspace)
      or not exists (select from gateway.token_owners o where o.id::text = owner and o.workspace_id::text = workspace) then
      raise sqlstate 'WG003' using message = format('User %s is no token owner of workspace %s.', owner, workspace);
    end if;
    token.id := create_token.id;
    token.workspace_id := workspace;
    token.created_by := owner;
    token.name := create_token.name;
    token.token_hash := hash;
    token.scopes := create_token.scopes;
    token.created_at := now();
    token.expires_at := expires;
    token.rotated_from := create_token.rotated_from;
    token := jsonb_populate_record(token, jsonb_build_object('requests_per_minute', create_token.requests_per_minute));
    if gateway.limit_of(token) is distinct from create_token.requests_per_minute then
      raise sqlstate 'WG008' using message = 'gateway.api_tokens has no column requests_per_minute: add it to the table of tokens and to the view.';
    end if;
    insert into gateway.api_tokens values (token.*);
  end $$;

-- The tokens of a workspace, or of all for NULL; never their hashes.
create function gateway.list_tokens(workspace text)
  returns table (id uuid, workspace_id text, workspace_name text, created_by text, name text, scopes text[], created_at timestamptz,
    expires_at timestamptz, revoked_at timestamptz, rotated_from uuid, state text, last_used_at timestamptz, requests_per_minute integer)
  language sql stable
  as $$
    select t.id, t.workspace_id::text, coalesce(w.name, t.workspace_id::text), t.created_by::text, t.name, t.scopes, t.created_at, t.expires_at, t.revoked_at,
      t.rotated_from, case when t.revoked_at is not null then 'revoked' when t.expires_at <= now() then 'expired'
        when w.id is null or not exists (select from gateway.token_owners o
          where o.id::text = t.created_by::text and o.workspace_id::text = t.workspace_id::text) then 'without owner'
        else 'active' end,
      u.used_at, gateway.limit_of(t)
    from gateway.api_tokens t left join gateway.workspaces w on w.id::text = t.workspace_id::text
      left join gateway.token_uses u on u.token_id = t.id
    where workspace is null or t.workspace_id::text = workspace
    order by w.name, t.created_at, t.id
  $$;

-- Revokes, and says since when: an earlier moment than now if it was revoked before.
create function gateway.revoke_token(id uuid) returns table (revoked_at timestamptz, revoked_now boolean)
  language plpgsql
  as $$
  declare
    before timestamptz;
  begin
    select t.revoked_at into before from gateway.api_tokens t where t.id = revoke_token.id for update;
    if not found then raise sqlstate 'WG004' using message = format('There is no token %s.', revoke_token.id); end if;
    update gateway.api_tokens t set revoked_at = clock_timestamp() where t.id = revoke_token.id and t.revoked_at is null;
    return query select t.revoked_at, before is null from gateway.api_tokens t where t.id = revoke_token.id;
  end $$;

-- Makes the successor of a token, with the same name, scopes, workspace and owner, and revokes the token: both or neither.
create function gateway.rotate_token(id uuid, successor uuid, hash bytea, expires timestamptz)
  returns table (workspace_id text, name text, scopes text[], requests_per_minute integer)
  language plpgsql
  as $$
  declare
    old gateway.api_tokens;
  begin
    select * into old from gateway.api_tokens t where t.id = rotate_token.id for update;
    if not found then raise sqlstate 'WG004' using message = format('There is no token %s.', rotate_token.id); end if;
    if old.revoked_at is not null then
      raise sqlstate 'WG005' using message = format('Token %s is revoked; create a new one instead.', rotate_token.id);
    end if;
    perform gateway.create_token(successor, old.workspace_id::text, old.created_by::text, old.name, hash, old.scopes, expires, old.id, gateway.limit_of(old));
    update gateway.api_tokens t set revoked_at = clock_timestamp() where t.id = old.id;
    return query select old.workspace_id::text, old.name::text, old.scopes, gateway.limit_of(old);
  end $$;

revoke all on function gateway.find_workspace(text), gateway.find_user(text, text),
  gateway.create_token(uuid, text, text, text, bytea, text[], timestamptz, uuid, integer), gateway.list_tokens(text),
  gateway.revoke_token(uuid), gateway.rotate_token(uuid, uuid, bytea, timestamptz) from public;

-- Tokens from the app's own settings page: the app's login is granted gateway_issuer, signs the owner in, and calls the four functions
-- below, each for one workspace. SECURITY DEFINER, because the app reads no hash and writes no row of the tokens. The token is made here,
-- in expressions of PL/pgSQL, which are no statements: whatever the server logs, nested statements and parameters too, has the hash alone.
create function gateway.new_token() returns text
  language plpgsql volatile set search_path = ''
  as $$
  declare
    digits constant text := '0123456789ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz';
    bytes bytea := pg_catalog.uuid_send(pg_catalog.gen_random_uuid()) || pg_catalog.uuid_send(pg_catalog.gen_random_uuid());
    number numeric := 0; -- 244 random bits
    crc bigint := 4294967295; -- CRC-32 as zlib has it
    token text := '';
    sum text := '';
  begin
    for i in 0 .. 31 loop
      number := number * 256 + get_byte(bytes, i);
    end loop;
    for i in 1 .. 43 loop
      token := substr(digits, (number % 62)::integer + 1, 1) || token;
      number := div(number, 62);
    end loop;
    token := 'wdg_' || token;
    bytes := convert_to(token, 'UTF8');
    for i in 0 .. length(bytes) - 1 loop
      crc := crc # get_byte(bytes, i);
      for j in 1 .. 8 loop
        crc := (crc >> 1) # (crc & 1) * 3988292384;
      end loop;
    end loop;
    crc := crc # 4294967295;
    for i in 1 .. 6 loop
      sum := substr(digits, (crc % 62)::integer + 1, 1) || sum;
      crc := crc / 62;
    end loop;
    return token || sum;
  end $$;
revoke all on function gateway.new_token() from public;
grant execute on function gateway.new_token() to gateway_owner;

-- Makes a token for an owner of the workspace and returns it, once. Refuses scopes that no definition of `migrate` grants.
create function gateway.issue_token(workspace text, owner text, name text, scopes text[], expires_at timestamptz default null,
    requests_per_minute integer default null, out id uuid, out token text)
  language plpgsql volatile security definer set search_path = ''
  as $$
  declare
    fault text := case
      when issue_token.name is null or issue_token.name !~ '^[^[:cntrl:]]{1,100}$' or issue_token.name !~ '\S' then 'The name must be 1 to 100 characters, without control characters.'
      when issue_token.expires_at <= now() then 'The token would have expired already.'
      when requests_per_minute not between 1 and 100000 then 'The limit must be 1 to 100000 requests a minute.'
      when coalesce(cardinality(scopes), 0) = 0 then 'A token needs a scope.' end;
    unknown text := (
      select string_agg(coalesce(s, 'null'), ', ') from unnest(scopes) s where s is null or s not in (
        select r.scope from gateway.applied_files f cross join lateral (
          values ('read:' || f.name, true), ('write:' || f.name, exists (select from unnest(f.objects) o where o like 'view %\_write'))) r (scope, is_there)
        where f.root = 'gateway' and r.is_there));
    hash bytea;
  begin
    fault := coalesce(fault, 'There is no scope ' || unknown || '.');
    if fault is not null then raise sqlstate 'WG009' using message = fault; end if;
    id := gen_random_uuid();
    token := gateway.new_token();
    hash := sha256(convert_to(token, 'UTF8')); -- PERFORM is a statement, whose parameters can be logged
    perform gateway.create_token(id, workspace, owner, issue_token.name, hash, scopes, issue_token.expires_at, null, requests_per_minute);
  end $$;

-- The tokens of the workspace, the newest first; no token and no hash.
create function gateway.tokens_of(workspace text)
  returns table (id uuid, owner text, name text, scopes text[], created_at timestamptz, expires_at timestamptz, revoked_at timestamptz,
    last_used_at timestamptz, requests_per_minute integer)
  language plpgsql volatile security definer set search_path = ''
  as $$
  begin
    return query select t.id, t.created_by::text, t.name::text, t.scopes, t.created_at, t.expires_at, t.revoked_at, u.used_at, gateway.limit_of(t)
      from gateway.api_tokens t left join gateway.token_uses u on u.token_id = t.id
      where t.workspace_id::text = workspace order by t.created_at desc, t.id;
  end $$;

-- A token of another workspace is one that is not there.
create function gateway.require_token_of(workspace text, id uuid) returns void
  language plpgsql volatile set search_path = ''
  as $$
  begin
    if not exists (select from gateway.api_tokens t where t.id = require_token_of.id and t.workspace_id::text = workspace) then
      raise sqlstate 'WG004' using message = format('There is no token %s.', id);
    end if;
  end $$;
revoke all on function gateway.require_token_of(text, uuid) from public;
grant execute on function gateway.require_token_of(text, uuid) to gateway_owner;

create function gateway.revoke_token(workspace text, id uuid) returns timestamptz
  language plpgsql volatile security definer set search_path = ''
  as $$
  begin
    perform gateway.require_token_of(workspace, revoke_token.id);
    return (select r.revoked_at from gateway.revoke_token(revoke_token.id) r);
  end $$;

-- Makes the successor, with the same owner, name, scopes, limit and time to live, and revokes the token: both or neither.
create function gateway.rotate_token(workspace text, id uuid, out successor uuid, out token text)
  language plpgsql volatile security definer set search_path = ''
  as $$
  declare
    expires timestamptz;
    hash bytea;
  begin
    perform gateway.require_token_of(workspace, rotate_token.id);
    expires := (select now() + (t.expires_at - t.created_at) from gateway.api_tokens t where t.id = rotate_token.id);
    successor := gen_random_uuid();
    token := gateway.new_token();
    hash := sha256(convert_to(token, 'UTF8'));
    perform gateway.rotate_token(rotate_token.id, successor, hash, expires);
  end $$;

do $$ begin
  if to_regrole('gateway_issuer') is null then create role gateway_issuer nologin; end if;
end $$;
grant usage on schema gateway to gateway_issuer;
alter function gateway.issue_token(text, text, text, text[], timestamptz, integer) owner to gateway_owner;
alter function gateway.tokens_of(text) owner to gateway_owner;
alter function gateway.revoke_token(text, uuid) owner to gateway_owner;
alter function gateway.rotate_token(text, uuid) owner to gateway_owner;
revoke all on function gateway.issue_token(text, text, text, text[], timestamptz, integer), gateway.tokens_of(text),
  gateway.revoke_token(text, uuid), gateway.rotate_token(text, uuid) from public;
grant execute on function gateway.issue_token(text, text, text, text[], timestamptz, integer), gateway.tokens_of(text),
  gateway.revoke_token(text, uuid), gateway.rotate_token(text, uuid) to gateway_issuer;
-- The schema is open to the app's login now: what PUBLIC may execute there it could, too.
revoke all on function gateway.digest_of(text[]), gateway.sources_of(text[]), gateway.states_of(text[]) from public;
grant execute on function gateway.digest_of(text[]), gateway.sources_of(text[]), gateway.states_of(text[]) to gateway_reader, gateway_writer;
-- The four run as gateway_owner, and use these.
grant select on gateway.applied_files to gateway_owner;
grant execute on function gateway.create_token(uuid, text, text, text, bytea, text[], timestamptz, uuid, integer), gateway.revoke_token(uuid),
  gateway.rotate_token(uuid, uuid, bytea, timestamptz) to gateway_owner;
