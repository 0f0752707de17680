-- Whether the views are those that `migrate` made, of the walls $1, and of their files $2 alone unless it is null: a row for each resource
-- or file with a fault, else one. A view that was changed since may have lost its wall, or show other rows, and is refused. One below which
-- something has another name since shows the same rows, unless something else has the old name now. Without the views of tokens, valid
-- tokens look unknown. With other definitions a gateway can be served while the new ones are rolled out. Relies on the keys of pg_depend
-- and pg_rewrite.
with recursive wall as (
  select * from jsonb_to_recordset($1) as w (name text, hash text, views text[])
), applied as (
  select *, root || '/' || name as file from gateway.applied_files where $2::text[] is null or root || '/' || name = any ($2)
), altered as (
  select a.* from (select *, gateway.digest_of(objects) as now from applied where digest is not null and root <> 'core') a where digest is distinct from now
), core (object, differs) as ( -- of the objects of core each that is gone or differs, and in what
  select e.object, coalesce(string_agg(k.key, ', ' order by k.key desc), 'it is gone')
  from applied a cross join gateway.states_of(a.objects) now cross join jsonb_each(a.sources) e (object, state)
    left join jsonb_each(now -> e.object) k on e.state -> k.key is distinct from k.value
  where a.root = 'core' and a.digest is not null and now -> e.object is distinct from e.state
  group by e.object
), below (name, relation) as (
  select w.name, to_regclass(v.name)::oid from wall w cross join unnest(w.views) v (name)
  union
  select b.name, d.refobjid from below b
    join pg_rewrite r on r.ev_class = b.relation
    join pg_depend d on d.classid = 'pg_rewrite'::regclass and d.objid = r.oid and d.refclassid = 'pg_class'::regclass
), relation as ( -- by name, as the role may use neither the schema records nor the schemas of the app
  select c.oid, format('%I.%I', n.nspname, c.relname) as name from pg_class c join pg_namespace n on n.oid = c.relnamespace
), change as ( -- of an operator's file, in its names alone or not
  select a.root, a.name, a.file, a.objects,
    now.tree is not distinct from a.sources ->> 'tree' and gone.names is not null and swapped.names is null as is_renamed, gone.names as gone, swapped.names as swapped
  from altered a cross join lateral gateway.sources_of(a.objects) s (sources) cross join lateral (select s.sources ->> 'tree') now (tree)
    cross join lateral (
      select string_agg(relation || '.' || c, ', ') from jsonb_array_elements(a.sources -> 'columns') e, concat(e ->> 0) relation, concat(e ->> 1) c
      where not s.sources -> 'columns' @> jsonb_build_array(e)) gone (names)
    cross join lateral (
      select string_agg(o.name, ', ') from (
        select r.name from relation r where a.sources -> 'tables' ? r.name and not s.sources -> 'tables' ? r.name
        union all
        select r.name || '.' || f.attname from jsonb_array_elements(a.sources -> 'columns') e join relation r on r.name = e ->> 0
          join pg_attribute f on f.attrelid = r.oid and f.attname = e ->> 1 and not f.attisdropped
        where not s.sources -> 'columns' @> jsonb_build_array(e) and s.sources -> 'tables' ? r.name) o (name)) swapped (names)
  where a.root = 'views' and a.now is not null
), fault (code, level, object, text) as (
  select 'migrated', 'refused', '', 'changed since `migrate` made it: ' || replace(object, 'pg_catalog.', '') || ' (' || differs || ')' from core
  union all
  select 'migrated', 'refused', name, 'changed since `migrate` made them: the views of ' || file from altered where root = 'gateway' and now is not null
  union all
  select 'dropped', 'failed', name, 'dropped since `migrate` made them: the views of ' || file
  from altered where root = 'gateway' and now is null and name not in (select name from wall where views <> '{}') -- sql/check/views.sql has those
  union all
  select 'migrated', case when c.is_renamed or w.name is null and not c.objects && '{view gateway.api_tokens,view gateway.workspaces,view gateway.token_owners}' then 'failed' else 'refused' end, coalesce(w.name, ''), case
      when c.is_renamed then 'the views of ' || c.file || ' read what has another name since `migrate` made them: ' || c.gone
      when c.swapped is not null then 'the views of ' || c.file || ' do not read ' || c.swapped || ' any more: the name belongs to another table or column since `migrate` made them'
      else 'changed since `migrate` made them: the views of ' || c.file end
  from change c left join lateral (
    select distinct b.name from below b join relation r on r.oid = b.relation where 'view ' || r.name = any (c.objects)) w on true
  union all
  select 'migrated', 'failed', w.name, 'made of other definitions: the views of ' || w.name
  from wall w left join gateway.applied_files a on a.root = 'gateway' and a.name = w.name
  where a.hash is distinct from w.hash and ($2 is null or 'gateway/' || w.name = any ($2))
)
select level, code, object, string_agg(text, '; ' order by text) || '.' as detail,
  case when level = 'refused' and object = '' and exists (select from core) then 'Run migrate --repair, which makes functions, privileges and owners of the gateway again.' end as advice
from fault group by level, code, object
union all
select 'ok', 'migrated', '', 'The views are those that `migrate` made.', null where not exists (select from fault)
