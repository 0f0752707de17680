-- The items of the views that $1 needs, a row for each: `views` must be there, `plain` are those whose owner and row-level security are
-- judged, and `columns` the columns of each with the types that fit (none: any) and the privilege that the role must have, or must not
-- (`may` is false). A view that `migrate` made of these definitions, and that a release of the app
-- dropped, has a code of its own. $2 is the statement that creates the gateway's policy, with %1$s for the table and %2$s for the role, and
-- $3 the condition that holds for the gateway's roles alone. A domain counts as the type below all domains. The views of the app's
-- workspaces may have any owner.
with recursive need as (
  select n.* from rows from (jsonb_to_recordset($1) as (code text, object text, file text, ok text, views text[], plain text[], columns jsonb))
    with ordinality n (code, object, file, ok, views, plain, columns, place)
), there as (
  select n.place, n.code, c.oid, c.relkind, c.relowner, c.reloptions, v.name, case when v.name <> n.object then v.name || ': ' else '' end as prefix
  from need n cross join unnest(n.plain) v (name) join pg_class c on c.oid = to_regclass(v.name)
), ground (of, type) as ( -- each domain with the types below it
  select oid, oid from pg_type
  union
  select g.of, t.typbasetype from ground g join pg_type t on t.oid = g.type and t.typtype = 'd'
), below (view, relation, reader) as (
  select oid, oid, relowner from there
  union
  -- Views below a view read as their own owners.
  select below.view, t.oid, case when t.relkind = 'v' then t.relowner else below.reader end
  from below
    join pg_class w on w.oid = below.relation and w.relkind = 'v'
    join pg_rewrite r on r.ev_class = w.oid
    join pg_depend d on d.classid = 'pg_rewrite'::regclass and d.objid = r.oid and d.refclassid = 'pg_class'::regclass
    join pg_class t on t.oid = d.refobjid
), missing (place, name, is_dropped) as (
  select place, v.name, exists (select from gateway.applied_files where root = 'gateway' and 'view ' || v.name = any (objects))
  from need cross join unnest(views) v (name) where to_regclass(v.name) is null
), fault (place, rank, text) as ( -- of the columns in their order, below 10000; behind U+001F the remedy
  select place, 0, case when is_dropped then 'dropped since `migrate` made them: ' || string_agg(name, ', ') else string_agg(name, ', ') || ' is missing: run `migrate` with these definitions' end
  from missing group by place, is_dropped
  union all
  select place, 1, prefix || 'it is not a view' from there where relkind <> 'v'
  union all
  select n.place, 1 + c.number, prefix || case
      when a.attnum is null then 'column ' || c.name || ' is missing'
      when c.types <> '{}' and not t.type = any (c.types) then 'column ' || c.name || ' is ' || t.type || ', not ' || array_to_string(c.types, ' or ')
      else 'the role ' || case when c.may then 'cannot ' else 'may ' end || c.privilege || ' ' || c.name end || c.at
  from need n cross join rows from (jsonb_to_recordset(n.columns) as (view text, name text, types text[], at text, privilege text, may boolean))
      with ordinality c (view, name, types, at, privilege, may, number)
    join there v on v.place = n.place and v.name = c.view
    left join pg_attribute a on a.attrelid = v.oid and a.attname = c.name and a.attnum > 0
    left join lateral (
      select case when t.typtype = 'e' then 'enum' else trim('"' from t.oid::regtype::text) end as type
      from ground g join pg_type t on t.oid = g.type and t.typtype <> 'd' where g.of = a.atttypid) t on true
  where case when a.attnum is null then c.may else c.types <> '{}' and not t.type = any (c.types)
    or has_column_privilege(v.oid, a.attnum, c.privilege) <> c.may end
  union all
  select place, 10001, prefix || 'it has security_invoker, and the role may read no table' from there
  where array_to_string(reloptions, ',') ~ 'security_invoker=(true|on|1|yes)'
  union all
  select v.place, 10002, prefix || 'its owner ' || o.rolname || case when o.rolsuper then ' is a superuser' when o.rolbypassrls then ' has BYPASSRLS'
    else ' also owns ' || (
      select string_agg(distinct t.oid::regclass::text, ', ')
      from pg_rewrite r
        join pg_depend d on d.classid = 'pg_rewrite'::regclass and d.objid = r.oid and d.refclassid = 'pg_class'::regclass
        join pg_class t on t.oid = d.refobjid
      where r.ev_class = v.oid and t.oid not in (v.oid, to_regclass('gateway.verified_workspace')) and pg_has_role(v.relowner, t.relowner, 'member')) end
  from there v join pg_roles o on o.oid = v.relowner where v.code <> 'workspaces'
  union all
  -- Tables whose row-level security hides rows from the role that reads them (CREATE POLICY): no policy that permits is for that role, and
  -- none that is for every role is `true`; or one that restricts is for every role, and does not name the gateway's. A policy for the role
  -- itself is deliberate, unless it is `false`.
  select v.place, 10003, prefix || 'row-level security of ' || string_agg(distinct t.oid::regclass::text, ', ') || ' hides rows from ' || b.rolname || ', the role that reads them'
    || coalesce(', by the restrictive policy ' || string_agg(distinct s.restricting, ', '), '')
    || e'\x1f' || coalesce('Disable row-level security there, or create the policy, also in the file of the view: ' || string_agg(distinct format($2, t.oid::regclass, quote_ident(b.rolname)), ' ') filter (where not permits), '')
    || coalesce(' Let the roles of the app alone meet what restricts: ' || string_agg(distinct s.remedies, ' '), '')
  from there v join below on below.view = v.oid join pg_class t on t.oid = below.relation join pg_roles b on b.oid = below.reader
    cross join lateral (
      select coalesce(bool_or(p.polpermissive and shows), false) as permits,
        string_agg(distinct format('%I on %s', p.polname, t.oid::regclass), ', ') filter (where not p.polpermissive and not shows) as restricting,
        string_agg(distinct format('alter policy %I on %s %s;', p.polname, t.oid::regclass, coalesce('to ' || apps, format('using (%s or (%s))', $3::text, expression))), ' ')
          filter (where not p.polpermissive and not shows) as remedies
      from pg_policy p cross join unnest(p.polroles) role cross join pg_get_expr(p.polqual, t.oid) expression
        cross join lateral (select case when role <> 0 then expression <> 'false' else expression = 'true' or not p.polpermissive and expression ~ 'gateway_reader' end) e (shows)
        cross join lateral (select string_agg(distinct quote_ident(o.rolname), ', ') from aclexplode(coalesce(t.relacl, acldefault('r', t.relowner))) join pg_roles o on o.oid = grantee
          where o.rolname !~ '^gateway_' and not o.rolsuper and not o.rolbypassrls and not pg_has_role(b.oid, grantee, 'usage')) a (apps)
      where p.polrelid = t.oid and p.polcmd in ('r', '*') and (role = 0 or pg_has_role(b.oid, role, 'usage'))) s
  where t.relrowsecurity and not b.rolsuper and not b.rolbypassrls
    and (t.relforcerowsecurity or not pg_has_role(b.oid, t.relowner, 'usage')) and (not permits or restricting is not null)
  group by v.place, prefix, b.rolname
  union all
  -- A policy that looks neither at the row nor at who asks lifts the app's isolation for each login that has its role. Policies for every
  -- role, and for a role that bypasses row-level security anyway, are the app's own matter.
  select v.place, case when pg_has_role(below.reader, role, 'usage') then 10006 else 10007 end, prefix || 'the policy ' || quote_ident(p.polname) || ' on ' || t.oid::regclass
    || ' lifts row-level security for ' || string_agg(distinct l.rolname, ', ' order by l.rolname) || ', which can log in'
  from there v join below on below.view = v.oid join pg_class t on t.oid = below.relation and t.relrowsecurity
    join pg_policy p on p.polrelid = t.oid and p.polpermissive cross join unnest(p.polroles) role
    join pg_roles l on l.rolcanlogin and not l.rolsuper and not l.rolbypassrls and pg_has_role(l.oid, nullif(role, 0), 'usage')
      and (t.relforcerowsecurity or not pg_has_role(l.oid, t.relowner, 'usage'))
  where coalesce(p.polqual, p.polwithcheck)::text !~ '[{](VAR|FUNCEXPR|SQLVALUEFUNCTION|SUBLINK) ' and pg_get_expr(coalesce(p.polqual, p.polwithcheck), t.oid) <> 'false'
    and (p.polcmd <> 'a' or pg_has_role(below.reader, role, 'usage'))
  group by v.place, prefix, t.oid, p.oid, p.polname, below.reader, role
  union all
  select v.place, 10005, prefix || 'the role ' || b.rolname || ' cannot select ' || string_agg(distinct concat_ws('.', t.oid::regclass, case when has_any_column_privilege(b.oid, t.oid, 'select') then quote_ident(a.attname) end), ', ')
    || ': grant it'
  from there v join below on below.view = v.oid join pg_class w on w.oid = below.relation and w.relkind = 'v' join pg_roles b on b.oid = below.reader
    join pg_rewrite r on r.ev_class = w.oid
    join pg_depend d on d.classid = 'pg_rewrite'::regclass and d.objid = r.oid and d.refclassid = 'pg_class'::regclass and d.refobjid <> w.oid
    join pg_class t on t.oid = d.refobjid left join pg_attribute a on a.attrelid = t.oid and a.attnum = d.refobjsubid and a.attnum > 0
  where r.rulename = '_RETURN' and not case when a.attnum is null then has_any_column_privilege(b.oid, t.oid, 'select') else has_column_privilege(b.oid, t.oid, a.attnum, 'select') end
  group by v.place, prefix, b.rolname
  union all
  -- A replica refuses every statement that reads such a table.
  select v.place, 10004, prefix || string_agg(distinct t.oid::regclass::text, ', ') || ' is UNLOGGED, so replicas do not have its rows'
  from there v join below on below.view = v.oid
    cross join lateral (select below.relation as id union select relid from pg_partition_tree(below.relation)) r
    join pg_class t on t.oid = r.id and t.relpersistence = 'u'
  group by v.place, prefix
)
select case when count(f.text) = 0 then 'ok' when n.code = 'workspaces' or min(f.rank) in (10004, 10007) or bool_and(d.is_so) then 'failed' else 'refused' end as level,
  case when bool_and(d.is_so) then 'dropped' else n.code end as code, n.object,
  coalesce(string_agg(split_part(f.text, e'\x1f', 1), '; ' order by f.rank) || coalesce('; the definition is ' || n.file, '') || '.', n.ok) as detail,
  case min(f.rank) when 10003 then trim(string_agg(split_part(f.text, e'\x1f', 2), ' ') filter (where f.rank = 10003))
    when 10006 then 'Drop the policy; `migrate` creates the policies of the files again, which only the roles of the gateway meet.'
    when 10007 then 'Drop the policy, or name in its condition who may see all rows, such as using (current_user = ''reports'').'
    when 10004 then 'ALTER TABLE … SET LOGGED on the primary; it writes the table again, under a lock.'
    when 10005 then 'Grant it again to the role; nothing else is to be done.' end as advice
from need n cross join lateral (select bool_and(is_dropped) from missing m where m.place = n.place) d (is_so)
  left join fault f on f.place = n.place and f.text is not null
  and (f.rank = 0 or not exists (select from fault m where m.place = n.place and m.rank = 0))
group by n.place, n.code, n.object, n.file, n.ok order by n.place
