-- All that one query can tell of a server, its session and its login: a row for each item as `check` prints it, with the system
-- identifier of the cluster. $1 has the needs of the gateway: the role that the login is, or is a member of; the relations that it may
-- use; the deadlines; the connections of all gateways; the clock. It is sent in one message, whose arrival statement_timestamp() tells.
-- A login that is a member of exactly its role, inherits its privileges and cannot grant them counts as that role, so that passwords can
-- be changed without a gap. A superuser is a member of every role, so its memberships and possessions say nothing and are left out.
with recursive need as (
  select * from jsonb_to_record($1) as n (kind text, role text, relations text[], clock float8, pooled boolean,
    "statementTimeoutMs" integer, connections integer, peak integer, sum text, session jsonb, "ofRole" jsonb)
), setting as (
  select json_object_agg(name, setting) as of from pg_settings
), fact as (
  select need.*, kind = 'replica' as is_replica, me.oid as me, me.rolname as login, me.rolsuper as is_super, me.rolvaliduntil, me.rolconnlimit, d.datconnlimit,
    d.datname, pg_is_in_recovery() as recovers, current_setting('transaction_read_only') = 'on' as reads_only,
    (of->>'max_standby_streaming_delay')::integer as conflict_ms,
    (of->>'max_connections')::integer - (of->>'superuser_reserved_connections')::integer
      - coalesce(of->>'reserved_connections', '0')::integer as server_limit, -- from PostgreSQL 16 on, for pg_use_reserved_connections
    round(extract(epoch from statement_timestamp()) * 1000 - clock) || ' ms from the gateway''s' as distance,
    abs(extract(epoch from statement_timestamp()) * 1000 - clock) as distance_ms
  from need, setting, pg_roles me, pg_database d where me.rolname = current_user and d.datname = current_database()
), member_of (oid) as (
  select me from fact where not is_super
  union
  select a.roleid from pg_auth_members a join member_of m on m.oid = a.member
), held as (
  select r.* from pg_roles r where r.oid in (select me from fact union all select oid from member_of)
), fault (code, level, text) as (
  select f.code, f.level, f.text
  from fact cross join lateral (select least(nullif(rolconnlimit, -1), nullif(datconnlimit, -1), server_limit) as allowed) l cross join lateral (
    select concat_ws(', ', case when of->>'auto_explain.log_min_duration' <> '-1' and of->>'auto_explain.log_parameter_max_length' <> '0' then 'auto_explain' end,
      case when of->>'log_parameter_max_length' <> '0' and (of->>'log_statement' = 'all' or of->>'log_min_duration_statement' = '0')
        then 'log_statement or log_min_duration_statement' end) as by from setting) logs cross join lateral (values
    ('recovery', 'refused', is_replica and not recovers, 'it is not in recovery: this is no replica but a primary'),
    ('recovery', 'refused', is_replica and recovers and not reads_only, 'transactions can write'),
    ('recovery', 'failed', not is_replica and recovers, 'It is in recovery: no primary now, so writes will be answered 503'),
    ('recovery', 'failed', not is_replica and not recovers and reads_only, 'Transactions are read-only, so writes will be answered 503'),
    ('standby', 'failed', case when recovers then pg_is_wal_replay_paused() end,
      'Replay is paused, so its data grows older until it serves no reads'),
    -- A standby that does not tell the primary of its statements ends them where replay needs what they read.
    ('standby', 'warning', current_setting('hot_standby_feedback') = 'off' and conflict_ms between 0 and "statementTimeoutMs" - 1,
      'hot_standby_feedback is off, and replay ends a statement that it waits for after ' || conflict_ms
        || ' ms (max_standby_streaming_delay): pages break off while the primary vacuums'),
    ('standby', 'warning', recovers and current_setting('recovery_min_apply_delay') <> '0',
      'recovery_min_apply_delay is ' || current_setting('recovery_min_apply_delay')
        || ': every change is shown that much later, and a read after a write finds no replica that has it'),
    ('session', 'refused', current_setting('server_encoding') <> 'UTF8',
      'the database''s encoding is ' || current_setting('server_encoding') || ', not UTF8, which only a new database can change'),
    ('clock', 'failed', distance_ms > 2000, 'It is ' || distance || '; expiry of tokens is judged by the gateway''s clock'
      || case when distance_ms > 300000 then ', and the MAC of a workspace holds for an hour and five minutes around it: requests will be answered 503' else '' end),
    ('role', 'warning', rolvaliduntil < now() + interval '14 days', 'the password of ' || login || ' expires ' || to_char(rolvaliduntil at time zone 'UTC', 'YYYY-MM-DD HH24:MI') || ' UTC (rolvaliduntil): set another time'),
    ('role_settings', 'warning', logs.by <> '', logs.by || ' logs parameters of statements, among them the MAC of a workspace, which opens it for up to an hour'),
    ('connections', case when allowed < connections then 'failed' else 'warning' end, not pooled and allowed < peak,
      connections || ' are needed, ' || sum || '; up to ' || peak || ' while statements wait for locks; ' || concat_ws(', ',
        case when nullif(rolconnlimit, -1) < peak then 'the role allows ' || rolconnlimit end,
        case when nullif(datconnlimit, -1) < peak then 'the database allows ' || datconnlimit end,
        case when server_limit < peak then 'the server allows ' || server_limit end))
  ) f (code, level, is_so, text)
  where f.is_so
  union all
  -- Each login sends these, so another value shows a pooler that passes none on, over a role whose settings differ.
  select case w.level when 'refused' then 'session' else 'role_settings' end, w.level, w.name || ' is ' || s.setting || ', not ' || w.value
  from fact cross join jsonb_to_recordset(session) w (name text, value text, level text) join pg_settings s using (name)
  where s.setting <> w.value
  union all
  select 'role_settings', 'warning', 'the role has settings that `migrate` does not make, ' || string_agg(own, ', ' order by own)
    || ': reset those that no administrator made, because a login can change its own'
    -- The settings of one transaction cannot be reset by name from PostgreSQL 16 on.
    || case when bool_or(own ~ '^transaction_') then ', with `alter role … reset all`, after which `migrate --repair` makes ours again' else '' end
  from fact cross join lateral (
    select distinct own from pg_db_role_setting s cross join unnest(setconfig) own
    where s.setrole in (me, to_regrole(role)) and s.setdatabase in (0, (select oid from pg_database d where d.datname = fact.datname))
      and (own !~ '^[^=]*[.]' or own like 'gateway.%') -- parameters of the app
      and not exists (select from jsonb_to_recordset("ofRole") w (name text, value text) where w.name || '=' || w.value = own)) o
  where not is_super
  having count(*) > 0
  union all
  -- It can create no objects that would get them, but they keep DROP ROLE from it.
  select 'role_settings', 'warning', login || ' has default privileges (pg_default_acl), which no gateway needs: take them back with `alter default privileges for role ' || quote_ident(login) || ' …`'
  from fact where not is_super and exists (select from pg_default_acl where defaclrole = me)
  union all
  select 'role', 'refused', 'it has ' || concat_ws(', ', case when is_super then 'SUPERUSER' end, case when bool_or(rolbypassrls) then 'BYPASSRLS' end,
    case when bool_or(rolcreaterole) then 'CREATEROLE' end, case when bool_or(rolcreatedb) then 'CREATEDB' end,
    case when bool_or(rolreplication) then 'REPLICATION' end)
  from fact cross join held group by is_super
  having is_super or bool_or(rolbypassrls or rolcreaterole or rolcreatedb or rolreplication)
  union all
  select 'role', 'refused', 'it is a member of ' || string_agg(rolname, ', ' order by rolname)
  from fact join held on held.oid <> me and rolname <> role having count(*) > 0
  union all
  select 'role', 'refused', 'it is a member of ' || role || ' and ' || case when a.admin_option then 'can grant it' else 'does not inherit from it' end
  from fact join pg_auth_members a on a.member = me and a.roleid = to_regrole(role)
  where not is_super and (a.admin_option or not pg_has_role(me, a.roleid, 'usage'))
  union all
  select 'role', 'refused', 'it owns ' || string_agg(name, ', ' order by name) filter (where place <= 5)
    || case when count(*) > 5 then ' and ' || count(*) - 5 || ' more' else '' end
  from (
    select n.nspname || '.' || c.relname as name, row_number() over (order by n.nspname, c.relname) as place from pg_class c join pg_namespace n on n.oid = c.relnamespace
    where c.relowner in (select oid from held) and not (select is_super from fact) and c.relkind in ('r', 'p', 'v', 'm', 'f', 'S')
      and n.nspname not like 'pg\_temp%') o
  having count(*) > 0
  union all
  select 'role', 'refused', 'it may create in schema ' || n.nspname
  from fact, pg_namespace n where not is_super and n.nspname not like 'pg\_%' and has_schema_privilege(n.oid, 'create')
  union all
  select 'role', 'refused', 'it may create temporary objects: revoke TEMPORARY on the database from '
    || string_agg(case when a.grantee = 0 then 'PUBLIC' else pg_get_userbyid(a.grantee)::text end, ', ')
  from fact join pg_database d using (datname) cross join lateral aclexplode(coalesce(d.datacl, acldefault('d', d.datdba))) a
  where a.privilege_type = 'TEMPORARY' and not is_super and (a.grantee = 0 or a.grantee in (select oid from held))
  having count(*) > 0
  union all
  -- Privileges beyond those that the gateway grants, to the login or to PUBLIC, outside the system's schemas and extensions. The writer
  -- has some on all relations of the schema gateway; its write views are checked by column. A trigger's function is no privilege, because
  -- PostgreSQL lets no statement call it.
  (select 'privileges', 'refused', case when place > 20 then 'and ' || total - 20 || ' more' else excess end from (
    select excess, row_number() over (order by excess) as place, count(*) over () as total from (
    select 'it may ' || string_agg(lower(p.privilege), ', ' order by p.privilege) || ' on ' || n.nspname || '.' || c.relname as excess
    from fact cross join pg_class c
      join pg_namespace n on n.oid = c.relnamespace
      cross join lateral (
        select privilege from unnest(array['SELECT', 'INSERT', 'UPDATE', 'REFERENCES']) privilege
        where has_any_column_privilege(c.oid, privilege)
        union all
        select privilege from unnest(array['DELETE', 'TRUNCATE', 'TRIGGER']) privilege
        where has_table_privilege(c.oid, privilege)
      ) p
    where c.relkind in ('r', 'p', 'v', 'm', 'f') and not is_super
      and n.nspname <> 'information_schema' and n.nspname not like 'pg\_%'
      and not exists (select from pg_depend d where d.classid = 'pg_class'::regclass and d.objid = c.oid and d.deptype = 'e')
      and not case when is_replica then p.privilege = 'SELECT' and n.nspname || '.' || c.relname = any (relations)
        else p.privilege in ('SELECT', 'INSERT', 'UPDATE') and n.nspname = 'gateway' end
    group by n.nspname, c.relname
    union all
    select 'it may execute the SECURITY DEFINER function ' || p.oid::regprocedure
    from fact, pg_proc p join pg_namespace n on n.oid = p.pronamespace
    where p.prosecdef and not is_super and p.prorettype not in ('trigger'::regtype, 'event_trigger'::regtype)
      and n.nspname not in ('information_schema', 'gateway') and n.nspname not like 'pg\_%'
      and has_schema_privilege(n.oid, 'usage') and has_function_privilege(p.oid, 'execute')
      and not exists (select from pg_depend d where d.classid = 'pg_proc'::regclass and d.objid = p.oid and d.deptype = 'e')
    union all
    -- PostgreSQL evaluates conditions in the order of their cost: such a function would see rows before the tenant wall does.
    select 'it may execute the function ' || p.oid::regprocedure || ', whose cost of ' || p.procost || ' is below 1'
    from fact, pg_proc p join pg_namespace n on n.oid = p.pronamespace
    where p.procost < 1 and not is_super and p.prorettype not in ('trigger'::regtype, 'event_trigger'::regtype)
      and n.nspname <> 'information_schema' and n.nspname <> 'pg_catalog'
      and has_schema_privilege(n.oid, 'usage') and has_function_privilege(p.oid, 'execute')) e) counted
  where place <= 21 order by place)
  union all
  -- Every login of a database may LISTEN on the primary, and no privilege keeps it from a channel.
  select 'privileges', 'warning', string_agg(p.oid::regprocedure::text, ', ' order by p.oid::regprocedure::text)
    || ' sends more than an id to listeners: a stolen login that listens hears it, of all workspaces'
  from fact, pg_proc p join pg_namespace n on n.oid = p.pronamespace
  where not is_replica and n.nspname not in ('information_schema', 'gateway', 'pg_catalog') and p.prosrc ~* '\m(pg_notify|notify)\M'
    and p.prosrc ~* '\m(row_to_json|to_jsonb?|jsonb?_build_object|hstore)\M|\m(new|old)([.][*])?\s*(::|\))|concat_ws|\|\|'
    and not exists (select from pg_depend d where d.classid = 'pg_proc'::regclass and d.objid = p.oid and d.deptype = 'e')
  having count(*) > 0
  union all
  select 'privileges', 'failed', concat_ws(', ', case a.grantee when 0 then 'PUBLIC' else pg_get_userbyid(a.grantee)::text end || ' may use ' || name, shows)
  from (
    select 'the schema records', 'whose views show the rows of all workspaces', nspacl, nspowner from pg_namespace where nspname = 'records'
    union all
    select 'gateway.wall_keys', 'which open every workspace', relacl, relowner -- to_regclass fails without USAGE on the schema
      from pg_class c join pg_namespace n on n.oid = relnamespace where nspname = 'gateway' and relname = 'wall_keys'
  ) o (name, shows, acl, owner) cross join aclexplode(acl) a where a.grantee not in (owner, to_regrole('gateway_owner'))
  group by a.grantee, name, shows
  union all
  select 'privileges', 'warning', 'it may execute ' || string_agg(distinct p.proname, ', ') || ', which a superuser can revoke from PUBLIC: it can store large objects, or write messages into the WAL'
  from fact, pg_proc p where p.pronamespace = 'pg_catalog'::regnamespace and p.proname in ('lo_create', 'lo_from_bytea', 'lo_put', 'pg_logical_emit_message')
    and not is_super and has_function_privilege(p.oid, 'execute')
  having count(*) > 0
), numbered as (
  select *, row_number() over () as place from fault
)
select coalesce((array_agg(n.level order by array_position(array['refused', 'failed', 'warning'], n.level)))[1], 'ok') as level,
  i.code, i.object, coalesce(string_agg(n.text, '; ' order by n.place) || '.', i.ok) as detail, system_identifier::text as system
from fact cross join pg_control_system() cross join lateral (values
  (1, 'recovery', '', true, case when is_replica then 'It is a replica and read-only.' else 'It is a primary.' end),
  (2, 'standby', '', is_replica and recovers, 'It replays, and leaves statements their time.'),
  (3, 'session', '', true, 'The encoding is UTF8, and values have the forms that serializers read.'),
  (4, 'clock', '', true, distance || '.'),
  (5, 'role_settings', '', true, 'The session has the settings that the login sends, and the role no others.'),
  (6, 'connections', '', not pooled, connections || ' are needed: ' || sum || '. Up to ' || peak || ' while statements wait for locks.'),
  (7, 'role', login, true, 'No superuser, no BYPASSRLS, member of no further role, owner of nothing.'),
  (8, 'privileges', login, not is_super, 'None beyond those that the gateway grants.')
) i (place, code, object, is_asked, ok)
  left join numbered n using (code)
where i.is_asked
group by i.place, i.code, i.object, i.ok, system_identifier
order by i.place
