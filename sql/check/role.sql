-- The role of this connection: its attributes, memberships and possessions. One row.
-- A superuser is a member of every role, so its memberships and possessions say nothing and are left out.
with recursive me as (
  select oid, rolname, rolsuper, rolbypassrls, rolcreaterole, rolcreatedb, rolreplication
  from pg_roles where rolname = current_user
), member_of (oid) as (
  select oid from me where not rolsuper
  union
  select a.roleid from pg_auth_members a join member_of m on m.oid = a.member
)
select me.rolname as name, me.rolsuper as superuser, me.rolbypassrls as bypass_rls,
  me.rolcreaterole as create_role, me.rolcreatedb as create_db, me.rolreplication as replication,
  array(select r.rolname::text from member_of m join pg_roles r using (oid) where r.oid <> me.oid order by 1) as member_of,
  array(
    select n.nspname || '.' || c.relname from pg_class c join pg_namespace n on n.oid = c.relnamespace
    where c.relowner = me.oid and not me.rolsuper and c.relkind in ('r', 'p', 'v', 'm', 'f', 'S') and n.nspname not like 'pg\_temp%'
    order by 1 limit 5) as owns,
  array(
    select n.nspname::text from pg_namespace n
    where not me.rolsuper and n.nspname not like 'pg\_%' and has_schema_privilege(n.oid, 'create')
    order by 1) as creates_in,
  not me.rolsuper and has_database_privilege(current_database(), 'temporary') as creates_temporary
from me
