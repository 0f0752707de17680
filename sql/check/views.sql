-- The views named in $1 ("schema.name"): owner, definition and columns of each. A missing view gives no row.
-- A domain counts as the type below it. `hidden_tables`: tables below it whose
-- row-level security shows no row to the role that reads them, because no policy is for that role, and none that is for every role
-- is `true` (CREATE POLICY). Views below a view read as their own owners.
select v.name, c.relkind = 'v' as is_view, o.rolname as owner, o.rolsuper as owner_superuser, o.rolbypassrls as owner_bypasses,
  coalesce(array_to_string(c.reloptions, ',') ~ 'security_invoker=(true|on|1|yes)', false) as invoker,
  array(
    select distinct t.oid::regclass::text
    from pg_rewrite r
      join pg_depend d on d.classid = 'pg_rewrite'::regclass and d.objid = r.oid and d.refclassid = 'pg_class'::regclass
      join pg_class t on t.oid = d.refobjid
    where r.ev_class = c.oid and t.oid <> c.oid and pg_has_role(c.relowner, t.relowner, 'member')
    order by 1) as owned_tables,
  array(
    with recursive below (relation, reader) as (
      select c.oid, c.relowner
      union
      select t.oid, case when t.relkind = 'v' then t.relowner else below.reader end
      from below
        join pg_class w on w.oid = below.relation and w.relkind = 'v'
        join pg_rewrite r on r.ev_class = w.oid
        join pg_depend d on d.classid = 'pg_rewrite'::regclass and d.objid = r.oid and d.refclassid = 'pg_class'::regclass
        join pg_class t on t.oid = d.refobjid)
    select distinct t.oid::regclass::text
    from below
      join pg_class t on t.oid = below.relation
      join pg_roles b on b.oid = below.reader
    where t.relrowsecurity and not b.rolsuper and not b.rolbypassrls
      and (t.relforcerowsecurity or not pg_has_role(b.oid, t.relowner, 'usage'))
      and not exists (
        select from pg_policy p cross join unnest(p.polroles) role
        where p.polrelid = t.oid and p.polpermissive and p.polcmd in ('r', '*')
          and case when role = 0 then pg_get_expr(p.polqual, t.oid) = 'true' else pg_has_role(b.oid, role, 'usage') end)
    order by 1) as hidden_tables,
  (select json_object_agg(a.attname, json_build_object(
      'type', case when t.typtype = 'e' then 'enum' else trim('"' from coalesce(nullif(t.typbasetype, 0), t.oid)::regtype::text) end, 'readable', has_column_privilege(c.oid, a.attnum, 'select')))
    from pg_attribute a join pg_type t on t.oid = a.atttypid
    where a.attrelid = c.oid and a.attnum > 0) as columns
from unnest($1::text[]) v (name)
  join pg_class c on c.oid = to_regclass(v.name)
  join pg_roles o on o.oid = c.relowner
