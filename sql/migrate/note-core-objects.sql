-- Keeps the states of the objects of core with its last file: the wall is no better than the gateway's own objects.
with own (objects) as (
  select coalesce(array_agg(object order by object), '{}')
  from pg_depend d, pg_identify_object(d.classid, d.objid, 0) o, concat(o.type, ' ', o.identity) object
  where d.refclassid = 'pg_namespace'::regclass and d.deptype = 'n' and d.refobjid = 'gateway'::regnamespace and o.type in ('function', 'table', 'view')
    and object <> 'table gateway.migration_lock' -- which the running migration holds
    and not exists (select from gateway.applied_files f where f.root in ('views', 'gateway') and object = any (f.objects))
)
update gateway.applied_files f set objects = case when f.name = last then own.objects else '{}' end,
  digest = case when f.name = last then '' end, sources = case when f.name = last then gateway.states_of(own.objects) end
from own, (select max(name) as last from gateway.applied_files where root = 'core') newest where f.root = 'core'
