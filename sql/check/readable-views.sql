-- Of each of the views $1 the columns that the role may read, and the SECURITY DEFINER functions that the view calls, directly or in a
-- view below. A plan prints neither the function of an operator, a cast or an aggregate nor a function that is called by one: each is
-- reached by the dependencies of the rules of the views, of operators and of aggregates. Relies on the keys of pg_depend and pg_rewrite.
with recursive reached (view, class, object) as (
  select name, 'pg_class'::regclass::oid, to_regclass(name)::oid from unnest($1::text[]) name
  union
  select r.view, d.refclassid, d.refobjid
  from reached r
    left join pg_rewrite w on r.class = 'pg_class'::regclass and w.ev_class = r.object and w.ev_type = '1'
    join pg_depend d on d.classid = case when w.oid is null then r.class else 'pg_rewrite'::regclass end and d.objid = coalesce(w.oid, r.object)
  where d.refclassid in ('pg_class'::regclass, 'pg_proc'::regclass, 'pg_operator'::regclass)
)
select v.name, string_agg(quote_ident(a.attname), ', ') as columns,
  array(select distinct n.nspname || '.' || p.proname
    from reached r join pg_proc p on p.oid = r.object join pg_namespace n on n.oid = p.pronamespace
    where r.view = v.name and r.class = 'pg_proc'::regclass and p.prosecdef order by 1) as definers
from unnest($1::text[]) with ordinality v (name, place) join pg_attribute a on a.attrelid = to_regclass(v.name) and a.attnum > 0
where has_column_privilege(a.attrelid, a.attnum, 'select')
group by v.name, v.place order by v.place
