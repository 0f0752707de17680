-- The item of the collations by which the database or an index orders texts, made with another version of their library than this server
-- has (CREATE COLLATION, "version"): a replica takes the indexes of the primary as they are. musl and some builds of PostgreSQL tell no
-- version, which is NULL.
with known (name, made, present) as (
  select 'the default of the database', datcollversion, pg_database_collation_actual_version(oid)
  from pg_database where datname = current_database()
  union all
  select c.oid::regcollation::text, c.collversion, pg_collation_actual_version(c.oid)
  from pg_collation c
  where c.collprovider <> 'd' and exists (
    select from pg_index i cross join unnest(i.indcollation) used where used = c.oid and i.indexrelid >= 16384)
)
select case when count(*) = 0 then 'ok' else 'warning' end as level, 'collations' as code, '' as object,
  coalesce(string_agg(format('%s was made with %s and is %s here', name, coalesce(made, 'an unknown version'), coalesce(present, 'unknown')), '; ' order by name)
    || ': filters and orders by text can miss rows.', 'Their versions match the indexes.') as detail
from known where made is distinct from present
