-- The index $2, which a plan over the view $1 names without its schema: its definition, its table (of a partition the whole
-- table), and the definitions of all indexes of that table. The tables below the view tell it from an index of the same name elsewhere.
with recursive below (oid) as (
  select $1::regclass::oid
  union
  select d.refobjid from below join pg_rewrite r on r.ev_class = below.oid
    join pg_depend d on d.classid = 'pg_rewrite'::regclass and d.objid = r.oid and d.refclassid = 'pg_class'::regclass
)
select pg_get_indexdef(i.indexrelid) as definition, t.root::regclass::text as "table",
  array(select pg_get_indexdef(x.indexrelid) from pg_index x where x.indrelid = t.root and x.indisvalid) as all
from pg_index i join pg_class c on c.oid = i.indexrelid
  cross join lateral (select coalesce(pg_partition_root(i.indrelid), i.indrelid) as root) t
where c.relname = $2 and t.root in (select oid from below)
