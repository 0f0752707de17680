-- The role of this connection: its attributes, memberships and possessions. One row. $1 is the role that it is or inherits from:
-- a login that is a member of that role, inherits its privileges and cannot grant them counts as that role.
-- A superuser is a member of every role, so its memberships and possessions say nothing and are left out.
with recursive me as (
  select oid, rolname, rolsuper from pg_roles where rolname = current_user
), member_of (oid) as (
  select oid from me where not rolsuper
  union
  select a.roleid from pg_auth_members a join member_of m on m.oid = a.member
), held as (
  select r.* from pg_roles r where r.oid in (select oid from me union all select oid from member_of)
)
select me.rolname as name, me.rolsuper as superuser,
  (select bool_or(rolbypassrls) from held) as bypass_rls,
  (select bool_or(rolcreaterole) from held) as create_role,
  (select bool_or(rolcreatedb) from held) as create_db,
  (select bool_or(rolreplication) from held) as replication,
  array(select r.rolname::text from member_of m join pg_roles r using (oid) where r.oid <> me.oid and r.rolname <> $1 order by 1) as member_of,
  array(
    select case when a.admin_option then 'can grant it' else 'does not inherit from it' end
    from pg_auth_members a
    where a.member = me.oid and a.roleid = to_regrole($1) and not me.rolsuper
      and (a.admin_option or not pg_has_role(me.oid, a.roleid, 'usage'))) as membership_faults,
  array(
    select n.nspname || '.' || c.relname from pg_class c join pg_namespace n on n.oid = c.relnamespace
    where c.relowner in (select oid from held) and not me.rolsuper and c.relkind in ('r', 'p', 'v', 'm', 'f', 'S') and n.nspname not like 'pg\_temp%'
    order by 1 limit 5) as owns,
  array(
    select n.nspname::text from pg_namespace n
    where not me.rolsuper and n.nspname not like 'pg\_%' and has_schema_privilege(n.oid, 'create')
    order by 1) as creates_in,
  array(
    select case when a.grantee = 0 then 'PUBLIC' else pg_get_userbyid(a.grantee)::text end
    from pg_database d cross join lateral aclexplode(coalesce(d.datacl, acldefault('d', d.datdba))) a
    where d.datname = current_database() and a.privilege_type = 'TEMPORARY' and not me.rolsuper
      and (a.grantee = 0 or a.grantee in (select oid from held))
    order by 1) as temporary_from,
  array(
    select unnest(setconfig) from pg_db_role_setting where setrole = to_regrole($1) and setdatabase = 0
    except
    select unnest(setconfig) from pg_db_role_setting
    where setrole = me.oid and setdatabase in (0, (select oid from pg_database where datname = current_database()))
    order by 1) as missing_settings
from me
