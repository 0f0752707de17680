import type pg from 'pg';

/**
 * The privileges of the gateway's roles outside its schema, each as the REVOKE that takes it away. The files of the views grant
 * them on the app's tables, where no DROP removes them.
 */
export async function appPrivileges(client: pg.Client): Promise<string[]> {
  const { rows } = await client.query<{ revoke: string }>(`
    select format('revoke %s%s on %s %s from %I', a.privilege_type, o.columns, o.kind, o.name, r.rolname) as revoke
    from (
      select case c.relkind when 'S' then 'sequence' else 'table' end as kind, c.oid::regclass::text as name, '' as columns,
        c.relacl as acl, c.relnamespace as schema from pg_class c
      union all
      select 'table', c.oid::regclass::text, format(' (%I)', t.attname), t.attacl, c.relnamespace
      from pg_attribute t join pg_class c on c.oid = t.attrelid where t.attacl is not null
      union all
      select 'schema', quote_ident(n.nspname), '', n.nspacl, n.oid from pg_namespace n
      union all
      select 'routine', p.oid::regprocedure::text, '', p.proacl, p.pronamespace from pg_proc p) o
      cross join lateral aclexplode(case when o.acl::text ~ 'gateway_' then o.acl end) a
      join pg_roles r on r.oid = a.grantee
    where r.rolname in ('gateway_owner', 'gateway_reader', 'gateway_writer')
      and o.schema not in (select oid from pg_namespace where nspname in ('gateway', 'records'))
    order by 1`);
  return rows.map(({ revoke }) => revoke);
}
