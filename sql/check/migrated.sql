-- Whether the views are those that `migrate` made, of the walls $1. A view of the roles that was changed since may have lost its wall, and
-- is refused; with other definitions a gateway can be served while the new ones are rolled out.
with applied as (
  select root, name, hash, digest is distinct from gateway.digest_of(objects) as is_altered from gateway.applied_files where root in ('views', 'gateway')
), altered as (
  select string_agg(root || '/' || name, ', ') as names, bool_or(root = 'gateway') as has_wall from applied where is_altered
), other as (
  select string_agg(w.name, ', ') as names from jsonb_to_recordset($1) as w (name text, hash text)
    left join applied a on a.root = 'gateway' and a.name = w.name
  where a.hash is distinct from w.hash
)
select case when has_wall then 'refused' when coalesce(altered.names, other.names) is null then 'ok' else 'failed' end as level,
  'migrated' as code, '' as object, coalesce(nullif(concat_ws('; ', 'changed since `migrate` made them: the views of ' || altered.names,
    'made of other definitions: the views of ' || other.names), '') || '.', 'The views are those that `migrate` made.') as detail
from altered, other
