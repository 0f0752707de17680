-- Takes back what default privileges of the app give its roles on the objects of both schemas: `records` shows all workspaces.
do $$
declare
  taken text;
begin
  for taken in
    select distinct format('revoke all on %s %s from %s', kind, name, case a.grantee when 0 then 'public' else quote_ident(pg_get_userbyid(a.grantee)) end)
    from (
      select 'schema', quote_ident(nspname), nspacl, nspowner from pg_namespace where nspname in ('gateway', 'records')
      union all
      select 'table', c.oid::regclass::text, relacl, relowner from pg_class c join pg_namespace n on n.oid = relnamespace where nspname in ('gateway', 'records')
      union all
      select 'function', p.oid::regprocedure::text, proacl, proowner from pg_proc p join pg_namespace n on n.oid = pronamespace where nspname in ('gateway', 'records')
    ) o (kind, name, acl, owner) cross join aclexplode(acl) a
    where a.grantee <> owner and pg_get_userbyid(a.grantee) !~ '^gateway_' and (a.grantee, kind) in (
      select g.grantee, case defaclobjtype when 'n' then 'schema' when 'f' then 'function' else 'table' end from pg_default_acl, aclexplode(defaclacl) g
      where g.grantee <> 0 or defaclobjtype <> 'f')
  loop
    execute taken;
  end loop;
end $$
