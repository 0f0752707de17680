-- Makes the objects of core look as if they had just been made: their owner is the admin, and PUBLIC has what it has by default. `migrate`
-- fills in their names.
do $$
declare
  each record;
  taken text;
begin
  for each in
    select case when c.relkind = 'v' then 'view' else 'table' end as kind, c.oid::regclass::text as name
      from pg_class c where relnamespace = 'gateway'::regnamespace and relkind in ('r', 'v') and concat(case relkind when 'v' then 'view' else 'table' end, ' gateway.', quote_ident(relname)) = any (array[{objects}])
    union all
    select 'function', p.oid::regprocedure::text
      from pg_proc p where pronamespace = 'gateway'::regnamespace and (select concat(o.type, ' ', o.identity) from pg_identify_object('pg_proc'::regclass, p.oid, 0) o) = any (array[{objects}])
  loop
    execute format('alter %s %s owner to current_user', each.kind, each.name);
    for taken in
      select rolname::text from pg_roles where rolname ~ '^gateway_(owner|reader|writer|issuer)$' union select 'public'
    loop
      execute format('revoke all on %s %s from %s', replace(each.kind, 'view', 'table'), each.name, taken);
    end loop;
    if each.kind = 'function' then execute format('grant execute on function %s to public', each.name); end if;
  end loop;
end $$
