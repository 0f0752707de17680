-- The columns of a write view that show the columns for which PostgreSQL refused a row, and of each whether the refusal is about it: its
-- own name, or a constraint or unique index over it. None: the table is not below the view. The role may read the catalogs, and no table of
-- the app. The table can be a partition of the one below the view. $1 to $4 are the column, the constraint, the
-- schema and the table of the refusal.
with recursive {shown}
select distinct shown.name, a.attname in (
  select i.attname from pg_attribute i where i.attrelid = c.oid and (i.attname = $1 or i.attnum in (
    select unnest(conkey) from pg_constraint where conrelid = c.oid and conname = $2
    union all
    select d.refobjsubid from pg_depend d join pg_class x on x.oid = d.objid and d.classid = 'pg_class'::regclass
    where x.relname = $2 and x.relnamespace = n.oid and d.refobjid = c.oid)))
from pg_class c join pg_namespace n on n.oid = c.relnamespace and n.nspname = $3 and c.relname = $4
  join shown on shown.relation = c.oid or shown.relation in (select pg_partition_ancestors(c.oid))
  join pg_attribute a on a.attrelid = shown.relation and a.attnum = shown.number
