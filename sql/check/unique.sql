-- The item of the unique indexes and exclusion constraints of the table below a write view that have a column which clients write ($2), and
-- neither the workspace nor a reference to one of its records ($3). $1 is the name of the resource.
with recursive {shown}, found as (
  select i.indexrelid::regclass::text || ' on ' || i.indrelid::regclass::text as name
  from pg_index i
    cross join lateral (
      select array_agg(shown.name::text) as names
      from shown
      where shown.relation = i.indrelid and (shown.number = any (i.indkey) or shown.number in (
        select d.refobjsubid from pg_depend d where d.classid = 'pg_class'::regclass and d.objid = i.indexrelid and d.refobjid = i.indrelid))) c
  where (i.indisunique or i.indisexclusion) and i.indrelid in (select relation from shown) and c.names && $2::text[] and not c.names && $3::text[]
)
select case when count(*) = 0 then 'ok' else 'warning' end as level, 'unique' as code, $1::text as object,
  coalesce('Without the workspace: ' || string_agg(name, ', ' order by name) || '. A client learns by 400 taken that another workspace has a value.',
    'Each has the workspace, or no column that clients write.') as detail
from found
