-- Those of the columns $3 of a table $2 in the schema $1, by their numbers, that are NOT NULL, also by a domain, and that neither
-- PostgreSQL nor a trigger before an INSERT sets: one that names the column or sets the whole row, or whose text is in another
-- language. The role may read the catalogs, and no table of the app.
select string_agg(a.attname, ', ' order by a.attnum) as names
from pg_class c join pg_namespace n on n.oid = c.relnamespace
  join pg_attribute a on a.attrelid = c.oid and a.attnum = any ($3::smallint[]) and not a.attisdropped and a.attgenerated = ''
  join pg_type t on t.oid = a.atttypid
where n.nspname = $1 and c.relname = $2 and c.relkind in ('r', 'p') and (a.attnotnull or t.typnotnull)
  and not exists (select from pg_trigger g join pg_proc u on u.oid = g.tgfoid join pg_language l on l.oid = u.prolang
    where g.tgrelid = c.oid and not g.tgisinternal and g.tgtype & 7 = 7 and (l.lanname <> 'plpgsql' or u.prosrc
      ~* ('\mnew\s*:?=|\minto\s+(strict\s+)?new\M|\mnew\."?' || regexp_replace(a.attname, '(\W)', '\\\1', 'g') || '(?!\w)')))
