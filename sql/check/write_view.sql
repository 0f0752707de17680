-- The columns of the write view $1 that this role may update and insert, by the grants on the view. A missing view gives no row.
select
  array(select a.attname::text from pg_attribute a
    where a.attrelid = c.oid and a.attnum > 0 and has_column_privilege(c.oid, a.attnum, 'update')) as updates,
  array(select a.attname::text from pg_attribute a
    where a.attrelid = c.oid and a.attnum > 0 and has_column_privilege(c.oid, a.attnum, 'insert')) as inserts
from pg_class c where c.oid = to_regclass($1)
