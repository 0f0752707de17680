-- Unique indexes and exclusion constraints of the table below a write view that have a column which clients write ($1), and neither the
-- workspace nor a reference to one of its records ($2): each as "index on table". The CTE `shown` stands in its place: the columns that the view shows.
with recursive {shown}
select i.indexrelid::regclass::text || ' on ' || i.indrelid::regclass::text as name
from pg_index i
  cross join lateral (
    select array_agg(shown.name::text) as names
    from shown
    where shown.relation = i.indrelid and (shown.number = any (i.indkey) or shown.number in (
      select d.refobjsubid from pg_depend d where d.classid = 'pg_class'::regclass and d.objid = i.indexrelid and d.refobjid = i.indrelid))) c
where (i.indisunique or i.indisexclusion) and i.indrelid in (select relation from shown) and c.names && $1::text[] and not c.names && $2::text[]
order by 1
