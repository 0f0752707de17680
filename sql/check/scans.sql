-- The columns of the workspace and the foreign keys of the relations $1 ("schema.name"), given the columns $3 of the relations $2 that
-- a view compares with gateway.workspace(). A partition counts as its whole table. `columns`: the columns of the workspace: compared ones,
-- the key to which they refer, other columns that refer to it, and columns of the same name and type. `isIndirect`: another table has the
-- workspace, by foreign keys, and of the columns none but one that refers to a workspace can. `keys`: foreign keys between the relations.
-- With the SECURITY DEFINER functions among $4, which are no relations.
with recursive relations as (
  select n.nspname || '.' || c.relname as name, c.oid, coalesce(pg_partition_root(c.oid), c.oid) as root
  from pg_class c join pg_namespace n on n.oid = c.relnamespace
  where c.relkind in ('r', 'p', 'm', 'f') and n.nspname not in ('pg_catalog', 'information_schema')
), compared as (
  select distinct r.root as oid, a.attname, a.atttypid, exists (
      select from pg_index i where i.indrelid = r.root and i.indisunique and i.indnkeyatts = 1 and i.indkey[0] = a.attnum) as is_key
  from unnest($2::text[], $3::text[]) c (name, attname)
    join relations r using (name)
    join pg_attribute a on a.attrelid = r.root and a.attname = c.attname
), single_keys as (
  select k.conrelid, a.attname, k.confrelid, b.attname as key
  from pg_constraint k
    join pg_attribute a on a.attrelid = k.conrelid and a.attnum = k.conkey[1]
    join pg_attribute b on b.attrelid = k.confrelid and b.attnum = k.confkey[1]
  where k.contype = 'f' and cardinality(k.conkey) = 1
), workspace_keys as (
  select oid, attname from compared where is_key
  union
  select k.confrelid, k.key from compared c join single_keys k on k.conrelid = c.oid and k.attname = c.attname
), columns as (
  select oid, attname, true as is_own from compared
  union select oid, attname, true from workspace_keys
  union select k.conrelid, k.attname, false from single_keys k join workspace_keys w on w.oid = k.confrelid and w.attname = k.key
  union select a.attrelid, a.attname, true from compared c join pg_attribute a using (attname, atttypid) where not c.is_key and a.attnum > 0
), indirect (oid) as (
  select k.conrelid from pg_constraint k join columns c on c.oid = k.confrelid where k.contype = 'f'
  union
  select k.conrelid from indirect t join pg_constraint k on k.confrelid = t.oid where k.contype = 'f'
)
select r.name,
  array(select distinct c.attname::text from columns c where c.oid = r.root order by 1) as columns,
  r.root in (select oid from indirect) and not exists (select from columns c where c.oid = r.root and c.is_own) as "isIndirect",
  coalesce((
    select json_agg(json_build_object('own', k.own, 'name', o.name, 'other', k.other))
    from (
      select confrelid as oid, conkey, confkey, conrelid as self from pg_constraint where contype = 'f' and conrelid = r.root
      union all
      select conrelid, confkey, conkey, confrelid from pg_constraint where contype = 'f' and confrelid = r.root
    ) f
      join relations o on o.root = f.oid and o.name = any ($1)
      cross join lateral (select
        array(select a.attname::text from unnest(f.conkey) with ordinality u (n, i) join pg_attribute a on a.attrelid = f.self and a.attnum = u.n order by i) as own,
        array(select a.attname::text from unnest(f.confkey) with ordinality u (n, i) join pg_attribute a on a.attrelid = f.oid and a.attnum = u.n order by i) as other) k
  ), '[]') as keys, false as "isDefiner"
from relations r
where r.name = any ($1)
union all
select n.nspname || '.' || p.proname || '()', array[]::text[], false, '[]'::json, true
from pg_proc p join pg_namespace n on n.oid = p.pronamespace
where p.prosecdef and n.nspname || '.' || p.proname = any ($4)
