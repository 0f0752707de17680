-- Names the required columns among those with the numbers $3, of the table $2 in the schema $1. A column is required if it, or its
-- domain, is NOT NULL, and no trigger before an INSERT may set it (fills.sql). The query reads the catalogs, and no table of the app.
select string_agg(a.attname, ', ' order by a.attnum) as names
from pg_class c join pg_namespace n on n.oid = c.relnamespace
  join pg_attribute a on a.attrelid = c.oid and a.attnum = any ($3::smallint[]) and not a.attisdropped and a.attgenerated = ''
  join pg_type t on t.oid = a.atttypid
where n.nspname = $1 and c.relname = $2 and c.relkind in ('r', 'p') and (a.attnotnull or t.typnotnull)
  and not exists (select from pg_trigger g join pg_proc u on u.oid = g.tgfoid join pg_language l on l.oid = u.prolang
    where g.tgrelid = c.oid and not g.tgisinternal and g.tgtype & 7 = 7 and {fills})
