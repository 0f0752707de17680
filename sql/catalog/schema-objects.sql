-- The objects of the schemas gateway and records in the order of their creation, but $1 and parts such as row types; `object` as DROP names
-- it.
select d.objid as oid, o.type, concat(o.type, ' ', o.identity) as object
from pg_depend d, pg_identify_object(d.classid, d.objid, 0) o
where d.refclassid = 'pg_namespace'::regclass and d.deptype = 'n' and not d.objid = any ($1::oid[])
  and d.refobjid in (select oid from pg_namespace where nspname in ('gateway', 'records'))
order by d.objid
