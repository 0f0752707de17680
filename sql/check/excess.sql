-- The privileges of this role beyond $2 on the relations whose "schema.name" matches the expression $1.
-- Everything outside the system's schemas and extensions counts, granted to the role or to PUBLIC.
select 'may ' || string_agg(lower(p.privilege), ', ' order by p.privilege) || ' on ' || n.nspname || '.' || c.relname as excess
from pg_class c
  join pg_namespace n on n.oid = c.relnamespace
  cross join lateral (
    select privilege from unnest(array['SELECT', 'INSERT', 'UPDATE', 'REFERENCES']) privilege
    where has_any_column_privilege(c.oid, privilege)
    union all
    select privilege from unnest(array['DELETE', 'TRUNCATE', 'TRIGGER']) privilege
    where has_table_privilege(c.oid, privilege)
  ) p
where c.relkind in ('r', 'p', 'v', 'm', 'f')
  and n.nspname <> 'information_schema' and n.nspname not like 'pg\_%'
  and not exists (select from pg_depend d where d.classid = 'pg_class'::regclass and d.objid = c.oid and d.deptype = 'e')
  and not (n.nspname || '.' || c.relname ~ $1 and p.privilege = any ($2::text[]))
group by n.nspname, c.relname
union all
select 'may execute the SECURITY DEFINER function ' || p.oid::regprocedure
from pg_proc p join pg_namespace n on n.oid = p.pronamespace
where p.prosecdef
  and n.nspname not in ('information_schema', 'gateway') and n.nspname not like 'pg\_%'
  and has_schema_privilege(n.oid, 'usage') and has_function_privilege(p.oid, 'execute')
  and not exists (select from pg_depend d where d.classid = 'pg_proc'::regclass and d.objid = p.oid and d.deptype = 'e')
union all
-- PostgreSQL evaluates conditions in the order of their cost: such a function would see rows before the tenant wall does.
select 'may execute the function ' || p.oid::regprocedure || ', whose cost of ' || p.procost || ' is below 1'
from pg_proc p join pg_namespace n on n.oid = p.pronamespace
where p.procost < 1
  and n.nspname <> 'information_schema' and n.nspname <> 'pg_catalog'
  and has_schema_privilege(n.oid, 'usage') and has_function_privilege(p.oid, 'execute')
order by 1
limit 10
