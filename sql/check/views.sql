-- The views named in $1 ("schema.name"): owner, definition and columns of each. A missing view gives no row.
-- A domain counts as the type below it. `filtered`: its definition calls gateway.workspace().
select v.name, c.relkind = 'v' as is_view, o.rolname as owner, o.rolsuper as owner_superuser, o.rolbypassrls as owner_bypasses,
  coalesce(array_to_string(c.reloptions, ',') ~ 'security_invoker=(true|on|1|yes)', false) as invoker,
  exists (
    select from pg_rewrite r
      join pg_depend d on d.classid = 'pg_rewrite'::regclass and d.objid = r.oid and d.refclassid = 'pg_proc'::regclass
    where r.ev_class = c.oid and d.refobjid = to_regprocedure('gateway.workspace()')) as filtered,
  array(
    select distinct t.oid::regclass::text
    from pg_rewrite r
      join pg_depend d on d.classid = 'pg_rewrite'::regclass and d.objid = r.oid and d.refclassid = 'pg_class'::regclass
      join pg_class t on t.oid = d.refobjid
    where r.ev_class = c.oid and t.oid <> c.oid and pg_has_role(c.relowner, t.relowner, 'member')
    order by 1) as owned_tables,
  (select json_object_agg(a.attname, json_build_object(
      'type', coalesce(nullif(t.typbasetype, 0), t.oid)::regtype, 'readable', has_column_privilege(c.oid, a.attnum, 'select')))
    from pg_attribute a join pg_type t on t.oid = a.atttypid
    where a.attrelid = c.oid and a.attnum > 0) as columns
from unnest($1::text[]) v (name)
  join pg_class c on c.oid = to_regclass(v.name)
  join pg_roles o on o.oid = c.relowner
