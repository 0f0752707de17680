-- The files of views whose objects read the tables $1, directly or through other views; for NULL the files with views of records. Relies on
-- the keys of pg_depend and pg_rewrite.
with recursive over (relation) as (
  select name::regclass::oid from unnest($1::text[]) name
  union
  select r.ev_class from over join pg_depend d on d.refclassid = 'pg_class'::regclass and d.refobjid = over.relation
    join pg_rewrite r on d.classid = 'pg_rewrite'::regclass and r.oid = d.objid
)
select root, name from gateway.applied_files where root in ('views', 'gateway') and exists (
  select from unnest(objects) object where case when $1 is null then object ~ ' records[.]' else object in (
    select format('view %I.%I', n.nspname, c.relname)
    from over join pg_class c on c.oid = over.relation join pg_namespace n on n.oid = c.relnamespace) end)
