-- The tables of the schema $1 as `adopt` needs them: columns, keys, indexes and triggers. From the catalog alone, so that the
-- cost does not depend on the rows. Partitions and tables of extensions are left out. Names are quoted by PostgreSQL, which
-- knows its reserved words. `refers` holds for references to tables of any schema, `foreignKeys` for references inside $1 alone. A domain's
-- default is in pg_type: its columns have none of their own, and a domain copies the default of the domain below it when it is created.
-- `indexes` are those that can give rows in order: btree, valid and ready,
-- with their key columns, without columns of INCLUDE, which have no operator class. Null stands for a key that gives no order of a column
-- as ORDER BY takes it: an expression, another operator class or collation, NULLs at the other end (pg_index: indoption 0 and 3 are
-- ASC NULLS LAST and DESC NULLS FIRST). The indexes of a table do not hold the rows of those that inherit from it, which a query
-- of the table shows, too: it has none here. A constraint NOT NULL that is not validated (PostgreSQL 18) says nothing of older rows.
with recursive below (of, type, modifier, required) as (
  select oid, oid, -1, false from pg_type
  union all
  select b.of, t.typbasetype, t.typtypmod, b.required or t.typnotnull from below b join pg_type t on t.oid = b.type and t.typtype = 'd'
), ground as ( -- of each type the one below all domains, and whether one of them is NOT NULL
  select b.of, t.oid, t.typtype, t.typname, t.typnamespace, t.typelem, b.modifier, b.required from below b join pg_type t on t.oid = b.type and t.typtype <> 'd'
)
select c.relname::text as name, format('%I.%I', n.nspname, c.relname) as quoted,
  (select coalesce(sum(case when l.reltuples < 0 then pg_relation_size(l.oid) / 100 else l.reltuples end), 0)::float8 from pg_class l
    where l.relkind = 'r' and (l.oid = c.oid or l.oid in (select relid from pg_partition_tree(c.oid)))) as rows,
  obj_description(c.oid, 'pg_class') as comment,
  c.relkind = 'r' and exists (select from pg_inherits h where h.inhparent = c.oid) as "isInherited", c.relpersistence = 'u' as "isUnlogged", c.relrowsecurity as "hasRowSecurity",
  -- Policies of the app that hide rows from the role that asks, with the roles of the app that may read the table.
  (select coalesce(json_agg(json_build_object('name', quote_ident(p.polname), 'isRestrictive', not p.polpermissive, 'apps', apps) order by p.polname), '[]')
    from pg_policy p cross join (select string_agg(distinct quote_ident(o.rolname), ', ') as apps
      from aclexplode(coalesce(c.relacl, acldefault('r', c.relowner))) join pg_roles o on o.oid = grantee
      where o.rolname !~ '^gateway_' and not o.rolsuper and not o.rolbypassrls and not pg_has_role(grantee, 'usage')) a
    where p.polrelid = c.oid and p.polcmd in ('r', '*') and p.polname !~ '^gateway_' and row_security_active(c.oid)
      and exists (select from unnest(p.polroles) role where role = 0 or pg_has_role(role, 'usage'))) as policies,
  -- Functions of triggers that a write runs as the role of the gateway: other tables that they use, parameters that they must find.
  (select coalesce(json_agg(json_build_object('name', u.oid::regproc::text,
      'runsAsCaller', not u.prosecdef and u.prosrc ~* '\m(insert\s+into|delete\s+from|update|from|join)\s+[a-z"]',
      'parameters', array(select distinct m[1] from regexp_matches(u.prosrc, 'current_setting\s*\(\s*''([^'']+)''\s*\)', 'gi') m)) order by 1), '[]')
    from (select distinct g.tgfoid from pg_trigger g where g.tgrelid = c.oid and not g.tgisinternal and g.tgtype & 20 <> 0) g
      join pg_proc u on u.oid = g.tgfoid) as triggers,
  (select coalesce(json_agg(json_build_object(
      'name', a.attname, 'quoted', quote_ident(a.attname),
      'enumOfDomain', case when t.typtype = 'd' and base.typtype = 'e' then format('%I.%I', (select nspname from pg_namespace where oid = base.typnamespace), base.typname) end,
      'type', case when base.typtype = 'e' then 'enum' else format_type(base.oid, null) end,
      'length', case when base.typname in ('varchar', 'bpchar') and greatest(a.atttypmod, base.modifier) > 4 then greatest(a.atttypmod, base.modifier) - 4 end,
      'notNull', base.required or a.attnotnull and not exists (select from pg_constraint v
        where v.conrelid = c.oid and v.contype = 'n' and not v.convalidated and v.conkey = array[a.attnum]), 'isMade', a.atthasdef or a.attidentity <> '' or t.typdefault is not null,
      'isComputed', a.attgenerated <> '' or a.attidentity = 'a', 'isVirtual', a.attgenerated = 'v',
      'madeOf', case when a.attgenerated = '' then '{}' else array(select o.attname::text from pg_attrdef f
        join pg_depend d on d.classid = 'pg_attrdef'::regclass and d.objid = f.oid and d.refclassid = 'pg_class'::regclass and d.refobjid = c.oid
        join pg_attribute o on o.attrelid = c.oid and o.attnum = d.refobjsubid
        where f.adrelid = c.oid and f.adnum = a.attnum and o.attnum <> a.attnum order by 1) end,
      'refers', exists (select from pg_constraint p where p.conrelid = c.oid and p.contype = 'f' and a.attnum = any (p.conkey)),
      'isMoved', coalesce(set_by.moved, false), 'isFilled', coalesce(set_by.filled, false),
      'labels', coalesce((select json_agg(e.enumlabel order by e.enumsortorder) from pg_enum e where e.enumtypid in (base.oid, base.typelem)),
        (select json_agg(pg_get_constraintdef(k.oid)) from pg_constraint k -- CHECKs of this column alone, and of the domains above its type
          where k.contype = 'c' and (k.conrelid = c.oid and k.conkey = array[a.attnum] or k.contypid = t.oid)), '[]'),
      'sequence', case when a.attidentity = '' then pg_get_serial_sequence(format('%I.%I', n.nspname, c.relname), a.attname) end,
      'isArray', t.typcategory = 'A',
      'members', (select json_agg(json_build_object('name', m.attname, 'type', case when g.typtype = 'e' then 'enum' else format_type(g.oid, null) end,
          'isArray', y.typcategory = 'A', 'values', '{}'::text[]) order by m.attnum)
        from pg_type o join pg_attribute m on m.attrelid = o.typrelid and m.attnum > 0 and not m.attisdropped
          join pg_type y on y.oid = m.atttypid join ground g on g.of = y.oid
        where o.typtype = 'c' and o.oid in (base.oid, (select of.oid from ground of where of.of = base.typelem))),
      'comment', col_description(c.oid, a.attnum)) order by a.attnum), '[]')
    from pg_attribute a join pg_type t on t.oid = a.atttypid join ground base on base.of = t.oid
      cross join lateral ( -- by a trigger BEFORE INSERT (7) or UPDATE (19) FOR EACH ROW; a version is moved by one that names it
        select bool_or(g.tgtype & 19 = 19 and u.prosrc ~* ('\mnew\."?' || regexp_replace(a.attname, '(\W)', '\\\1', 'g') || '(?!\w)')) as moved,
          bool_or(g.tgtype & 7 = 7 and {fills}) as filled
        from pg_trigger g join pg_proc u on u.oid = g.tgfoid join pg_language l on l.oid = u.prolang
        where g.tgrelid = c.oid and not g.tgisinternal) set_by
    where a.attrelid = c.oid and a.attnum > 0 and not a.attisdropped) as columns,
  (select coalesce(json_agg(a.attname order by k.place), '[]')
    from pg_constraint p cross join unnest(p.conkey) with ordinality k (number, place)
      join pg_attribute a on a.attrelid = c.oid and a.attnum = k.number
    where p.conrelid = c.oid and p.contype = 'p') as "primaryKey",
  array(select a.attname::text from pg_partitioned_table p join pg_attribute a on a.attrelid = c.oid and a.attnum = any (p.partattrs::int2[])
    where p.partrelid = c.oid order by 1) as "partitionKey",
  (select coalesce(json_agg(json_build_object('table', r.relname, 'columns', f.columns, 'references', f.refs, 'cascades', f.cascades, 'survives', f.survives) order by f.name), '[]')
    from (
      select p.conname as name, p.confrelid, p.confdeltype = 'c' as cascades, p.confdeltype in ('n', 'd') as survives,
        array(select a.attname::text from unnest(p.conkey) with ordinality k (number, place)
          join pg_attribute a on a.attrelid = p.conrelid and a.attnum = k.number order by k.place) as columns,
        array(select a.attname::text from unnest(p.confkey) with ordinality k (number, place)
          join pg_attribute a on a.attrelid = p.confrelid and a.attnum = k.number order by k.place) as refs
      from pg_constraint p where p.conrelid = c.oid and p.contype = 'f') f
    join pg_class r on r.oid = f.confrelid and r.relnamespace = c.relnamespace) as "foreignKeys",
  (select coalesce(json_agg(json_build_object('columns', i.columns, 'descending', i.descending, 'isUnique', i.is_unique, 'condition', i.condition) order by i.name), '[]')
    from (
      select x.indexrelid::regclass::text as name, pg_get_expr(x.indpred, x.indrelid) as condition, x.indisunique as is_unique, keys.*
      from pg_index x
        join pg_class w on w.oid = x.indexrelid join pg_am m on m.oid = w.relam and m.amname = 'btree'
        cross join lateral (
          select array_agg(case when o.opcdefault and k.collated = a.attcollation and k.option in (0, 3) then a.attname::text end order by k.place) as columns,
            array_agg(k.option = 3 order by k.place) as descending
          from unnest(x.indkey::int2[], x.indclass::oid[], x.indcollation::oid[], x.indoption::int2[])
              with ordinality k (number, class, collated, option, place)
            join pg_opclass o on o.oid = k.class
            left join pg_attribute a on a.attrelid = c.oid and a.attnum = k.number and k.number > 0) keys
      where x.indrelid = c.oid and x.indisvalid and x.indisready
        and not (c.relkind = 'r' and exists (select from pg_inherits h where h.inhparent = c.oid))) i) as indexes
from pg_class c join pg_namespace n on n.oid = c.relnamespace
where n.nspname = $1 and c.relkind in ('r', 'p') and not c.relispartition
  and not exists (select from pg_depend d where d.classid = 'pg_class'::regclass and d.objid = c.oid and d.deptype = 'e')
order by c.relname
