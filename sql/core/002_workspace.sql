-- The keys of the wall: HMAC-SHA-256 (RFC 2104) needs a key only as two blocks of 64 bytes, the key XOR ipad and the key XOR opad.
-- `migrate` stores them of WALL_KEY, from which they are derived one way. Several keys are valid while gateways with the one are replaced
-- by gateways with the other; their fingerprints name them. No login can read them: a login that knows one can name any workspace.
-- `sync_key` opens sync tokens and cursors, which lead to no workspace: gateways with another WALL_KEY read them by the function below.
create table gateway.wall_keys (
  inner_pad bytea primary key check (length(inner_pad) = 64),
  outer_pad bytea not null check (length(outer_pad) = 64),
  sync_key bytea not null check (length(sync_key) = 32),
  fingerprint text not null generated always as (left(encode(sha256(inner_pad), 'hex'), 8)) stored,
  stored_at timestamptz not null default clock_timestamp(),
  used_at timestamptz
);
alter table gateway.wall_keys owner to gateway_owner;

create function gateway.sync_keys() returns setof pg_catalog.bytea
  language sql stable security definer set search_path = ''
  as $$ select sync_key from gateway.wall_keys order by stored_at desc $$;
alter function gateway.sync_keys() owner to gateway_owner;
revoke all on function gateway.sync_keys() from public;
grant execute on function gateway.sync_keys() to gateway_reader;

-- Notes that a gateway with this key runs, each minute: `migrate --retire-wall-keys` keeps what is in use. Several gateways report the same
-- key.
create function gateway.note_wall_key_use(of_key pg_catalog.text) returns void
  language sql security definer set search_path = ''
  as $$
    update gateway.wall_keys set used_at = pg_catalog.now()
    where fingerprint = of_key and (used_at is null or used_at < pg_catalog.now() - interval '25 seconds')
  $$;
alter function gateway.note_wall_key_use(text) owner to gateway_owner;
revoke all on function gateway.note_wall_key_use(text) from public;
grant execute on function gateway.note_wall_key_use(text) to gateway_writer;

-- The workspace of the running statement where its MAC is right, else no row. The gateway sets MAC, hour and workspace for the transaction
-- only, in the same message as the statement that they guard: 64 hexadecimal digits, U+001F, the middle of the hour in seconds since 1970,
-- U+001F and the id. The MAC is over hour, U+001F and id, and holds in its hour and five minutes around it, so that one that stands in a
-- log opens nothing later. A view, so that it is planned with the statement: the function below costs twice as much. 64 bits of a hash of
-- both MACs are compared, because the time that a comparison of texts takes tells where they differ; a forger needs 2^63 statements. Every
-- name has its schema, whatever the search_path of the admin.
create view gateway.verified_workspace as
  select pg_catalog.split_part(s.mac_and_id, e'\x1f', 3) as id
  from gateway.wall_keys k cross join (select pg_catalog.current_setting('gateway.workspace_id', true)) s (mac_and_id)
  where case when pg_catalog.hashtextextended(pg_catalog.split_part(s.mac_and_id, e'\x1f', 1), 0) operator(pg_catalog.=)
    pg_catalog.hashtextextended(pg_catalog.encode(pg_catalog.sha256(k.outer_pad operator(pg_catalog.||) pg_catalog.sha256(
      k.inner_pad operator(pg_catalog.||) pg_catalog.convert_to(pg_catalog.split_part(s.mac_and_id, e'\x1f', 2) operator(pg_catalog.||) e'\x1f'
        operator(pg_catalog.||) pg_catalog.split_part(s.mac_and_id, e'\x1f', 3), 'UTF8'))), 'hex'), 0)
    then pg_catalog.abs(pg_catalog.date_part('epoch', pg_catalog.statement_timestamp()) operator(pg_catalog.-)
      pg_catalog.split_part(s.mac_and_id, e'\x1f', 2)::pg_catalog.float8) operator(pg_catalog.<=) 2100 end;
alter view gateway.verified_workspace owner to gateway_owner;

-- The same, or NULL without a workspace, which equals nothing: then there are no rows. A wrong MAC is an error and not NULL, because a
-- client would take the answer of a gateway with a retired key for a workspace without records. SECURITY DEFINER, because no login can read
-- the key. In PL/pgSQL, which keeps its plan. The result is text, because the ids of workspaces have the app's type: each view casts it to
-- the type of its column. `migrate` makes views with the tenant wall (src/resource/statements/walls.ts),
--   workspace_id = (select coalesce((select id from gateway.verified_workspace), gateway.workspace())::uuid)
-- and with security_barrier, so that no condition of a statement sees a row before the wall, whatever the condition costs. The cast
-- belongs on the workspace: "workspace_id::text = …" can use no index on the column.
create function gateway.workspace() returns pg_catalog.text
  language plpgsql stable parallel safe security definer
  as $$
  declare
    workspace pg_catalog.text := (select id from gateway.verified_workspace);
  begin
    if workspace is null and pg_catalog.current_setting('gateway.workspace_id', true) operator(pg_catalog.<>) '' then
      raise sqlstate 'WG006' using message = 'The MAC of the workspace is of no key that the database has, or of another hour.';
    end if;
    return workspace;
  end $$;
alter function gateway.workspace() owner to gateway_owner;
revoke all on function gateway.workspace() from public;
grant execute on function gateway.workspace() to gateway_owner, gateway_reader, gateway_writer;

-- A digest of these views and functions of the schemas records and gateway, named as DROP names them: their definitions and owners, and in
-- gateway their privileges, which in records the views of the roles bring with them, in any order: a grant that replaces a revoked one
-- stands last. NULL when one of them is gone. `migrate` notes it, so that `check` sees what was changed by hand.
create function gateway.digest_of(objects text[]) returns text
  language sql stable set search_path = '' set quote_all_identifiers = off
  as $$
    select case when count(*) = cardinality(objects) then coalesce(md5(string_agg(v.definition, '' order by o.identity)), '') end
    from pg_catalog.pg_depend d
      join pg_catalog.pg_namespace n on n.oid = d.refobjid
      cross join lateral pg_catalog.pg_identify_object(d.classid, d.objid, 0) o
      cross join lateral (
        select concat_ws(' ', pg_catalog.pg_get_viewdef(c.oid), c.relowner::regrole, c.reloptions, case when n.nspname = 'gateway' then array(select unnest(coalesce(c.relacl, pg_catalog.acldefault('r', c.relowner)))::text order by 1) end, array(
            select concat_ws(' ', a.attname, case when n.nspname = 'gateway' then array(select unnest(a.attacl)::text order by 1) end, pg_catalog.pg_get_expr(f.adbin, f.adrelid))
            from pg_catalog.pg_attribute a left join pg_catalog.pg_attrdef f on f.adrelid = a.attrelid and f.adnum = a.attnum
            where a.attrelid = c.oid and (n.nspname = 'gateway' and a.attacl is not null or f.oid is not null) order by a.attnum), array(
            select pg_catalog.pg_get_triggerdef(t.oid) from pg_catalog.pg_trigger t where t.tgrelid = c.oid order by t.tgname))
          from pg_catalog.pg_class c where d.classid = 'pg_catalog.pg_class'::regclass and c.oid = d.objid and c.relkind = 'v'
        union all
        select concat_ws(' ', p.prosrc, pg_catalog.pg_get_function_arguments(p.oid), p.prosecdef, p.proconfig, p.proowner::regrole,
            array(select unnest(coalesce(p.proacl, pg_catalog.acldefault('f', p.proowner)))::text order by 1))
          from pg_catalog.pg_proc p where d.classid = 'pg_catalog.pg_proc'::regclass and p.oid = d.objid
        union all
        select '' where d.classid not in ('pg_catalog.pg_class'::regclass, 'pg_catalog.pg_proc'::regclass)) v (definition)
    where d.refclassid = 'pg_catalog.pg_namespace'::regclass and d.deptype = 'n'
      and n.nspname in ('gateway', 'records') and concat(o.type, ' ', o.identity) = any (objects)
  $$;

-- The tables and columns that these views read, and their queries: `tree` is a digest of their queries as PostgreSQL keeps them, which a
-- new name below leaves as it is, and `tables` and `columns` are the names. Beside the digest it tells a view that was changed from one
-- below which a name was.
create function gateway.sources_of(objects text[]) returns jsonb
  language sql stable set search_path = '' set quote_all_identifiers = off
  as $$
    with rule as (
      select r.* from pg_catalog.pg_namespace n join pg_catalog.pg_class c on c.relnamespace = n.oid join pg_catalog.pg_rewrite r on r.ev_class = c.oid
      where n.nspname in ('gateway', 'records') and format('view %I.%I', n.nspname, c.relname) = any (objects)
    ), read as (
      select distinct d.refobjid::regclass::text as relation, a.attname::text as name
      from rule r join pg_catalog.pg_depend d on d.classid = 'pg_catalog.pg_rewrite'::regclass and d.objid = r.oid
          and d.refclassid = 'pg_catalog.pg_class'::regclass and d.refobjid <> r.ev_class
        left join pg_catalog.pg_attribute a on a.attrelid = d.refobjid and a.attnum = d.refobjsubid
    )
    select jsonb_build_object(
      'tree', (select md5(string_agg(ev_action::text, '' order by ev_class::regclass::text, rulename)) from rule),
      'tables', (select coalesce(jsonb_agg(distinct relation), '[]') from read),
      'columns', (select coalesce(jsonb_agg(jsonb_build_array(relation, name)), '[]') from read where name is not null))
  $$;

-- The states of these objects of the schema gateway, for `check` to name what differs, and for `migrate --repair`: of each its text (of a
-- table its policies), its owner, and the privileges of PUBLIC and of the gateway's roles.
create function gateway.states_of(objects text[]) returns jsonb
  language sql stable set search_path = '' set quote_all_identifiers = off
  as $$
    select coalesce(jsonb_object_agg(concat(o.type, ' ', o.identity), jsonb_build_object('text', md5(s.text), 'owner', s.owner, 'privileges', r.privileges)), '{}')
    from pg_catalog.pg_depend d
      join pg_catalog.pg_namespace n on n.oid = d.refobjid and n.nspname = 'gateway'
      cross join lateral pg_catalog.pg_identify_object(d.classid, d.objid, 0) o
      cross join lateral (
        select concat_ws(' ', case c.relkind when 'v' then pg_catalog.pg_get_viewdef(c.oid) end, c.reloptions, c.relrowsecurity, array(
            select concat_ws(' ', p.polname, p.polcmd, p.polpermissive, p.polroles::regrole[], pg_catalog.pg_get_expr(p.polqual, c.oid), pg_catalog.pg_get_expr(p.polwithcheck, c.oid))
            from pg_catalog.pg_policy p where p.polrelid = c.oid order by p.polname)), c.relowner::regrole::text,
            coalesce(c.relacl, pg_catalog.acldefault('r', c.relowner)), array(
            select concat_ws(' ', a.attname, x.grantee::regrole, x.privilege_type) from pg_catalog.pg_attribute a, pg_catalog.aclexplode(a.attacl) x where a.attrelid = c.oid order by 1)
          from pg_catalog.pg_class c where d.classid = 'pg_catalog.pg_class'::regclass and c.oid = d.objid
        union all
        select concat_ws(' ', p.prosrc, pg_catalog.pg_get_function_result(p.oid), p.prosecdef, p.provolatile, p.procost, p.proconfig), p.proowner::regrole::text,
            coalesce(p.proacl, pg_catalog.acldefault('f', p.proowner)), '{}'
          from pg_catalog.pg_proc p where d.classid = 'pg_catalog.pg_proc'::regclass and p.oid = d.objid) s (text, owner, acl, columns)
      cross join lateral (
        select array(
          select concat_ws(' ', case x.grantee when 0 then 'public' else x.grantee::regrole::text end, x.privilege_type) from pg_catalog.aclexplode(s.acl) x
          where x.grantee = 0 or x.grantee::regrole::text ~ '^gateway_(owner|reader|writer|issuer)$' order by 1) || s.columns) r (privileges)
    where d.refclassid = 'pg_catalog.pg_namespace'::regclass and d.deptype = 'n' and concat(o.type, ' ', o.identity) = any (objects)
  $$;
