-- Partitions of the table $1 whose index is not attached to the index $2.
select quote_ident(n.nspname) as schema, quote_ident(c.relname) as table
from pg_inherits i join pg_class c on c.oid = i.inhrelid join pg_namespace n on n.oid = c.relnamespace
where i.inhparent = to_regclass($1) and c.relkind in ('r', 'p') and not exists (
  select from pg_inherits a join pg_index x on x.indexrelid = a.inhrelid
  where a.inhparent = to_regclass($2) and x.indrelid = c.oid)
order by c.relname
