-- The index $2, which a plan over the view $1 names without its schema: its definition, its table (of a partition the whole
-- table), and the definitions of all indexes of that table. The view's own tables tell it from an index of the same name elsewhere.
select pg_get_indexdef(i.indexrelid) as definition, t.root::regclass::text as "table",
  array(select pg_get_indexdef(x.indexrelid) from pg_index x where x.indrelid = t.root and x.indisvalid) as all
from pg_index i join pg_class c on c.oid = i.indexrelid
  cross join lateral (select coalesce(pg_partition_root(i.indrelid), i.indrelid) as root) t
where c.relname = $2 and t.root in (
  select d.refobjid from pg_rewrite r join pg_depend d on d.classid = 'pg_rewrite'::regclass and d.objid = r.oid
  where r.ev_class = $1::regclass and d.refclassid = 'pg_class'::regclass)
