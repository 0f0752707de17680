-- The roles $1: whether another database of the cluster uses them, and their members without the admin.
select r.rolname as name, exists (
  select from pg_shdepend s where s.refclassid = 'pg_authid'::regclass and s.refobjid = r.oid
    and s.dbid <> (select oid from pg_database where datname = current_database())
    and (s.dbid <> 0 or s.classid <> 'pg_database'::regclass or s.objid <> (select oid from pg_database where datname = current_database()))) as "isUsed",
  array(select m.rolname::text from pg_auth_members a join pg_roles m on m.oid = a.member
    where a.roleid = r.oid and m.rolname <> current_user order by 1) as members
from pg_roles r where r.rolname = any ($1) order by 1
