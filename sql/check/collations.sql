-- Collations by which the database or an index orders texts, made with another version of their library than this server has
-- (CREATE COLLATION, "version"): a replica takes the indexes of the primary as they are.
select v.name, v.made, v.present
from (
  select 'of the database' as name, datcollversion as made, pg_database_collation_actual_version(oid) as present
  from pg_database where datname = current_database()
  union all
  select c.oid::regcollation::text, c.collversion, pg_collation_actual_version(c.oid)
  from pg_collation c
  where c.collversion is not null and exists (
    select from pg_index i cross join unnest(i.indcollation) used where used = c.oid and i.indexrelid >= 16384)
) v
where v.made <> v.present
order by 1
