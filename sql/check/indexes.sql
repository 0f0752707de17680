-- The indexes that `migrate --indexes` made, and that are gone, not valid, or on another table than the one for which they were made: a
-- table that was swapped for another keeps its indexes. A renamed table is the same table, so nothing has its earlier name.
with relation as (
  select c.oid, format('%I.%I', n.nspname, c.relname) as name from pg_class c join pg_namespace n on n.oid = c.relnamespace
)
select f.name from gateway.applied_files f where f.root = 'indexes' and not exists (
  select from pg_index i join relation r on r.oid = i.indexrelid join relation t on t.oid = i.indrelid
  where r.name = f.name and i.indisvalid
    and ('table ' || t.name = f.objects[2] or not exists (select from relation where 'table ' || name = f.objects[2])))
order by 1
