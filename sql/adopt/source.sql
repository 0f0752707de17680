-- The type of the id of the view $1, and the policies of the table $3 of the schema $2 that bind the owner of the view, who reads the
-- table.
select format_type(i.atttypid, null) as type, (
  select string_agg(distinct polname, ', ') from pg_policy p join pg_class t on t.oid = polrelid join pg_roles o on o.oid = v.relowner
  where t.oid = format('%I.%I', $2::text, $3::text)::regclass and t.relrowsecurity and not o.rolsuper and not o.rolbypassrls and polcmd in ('r', '*')
    and (t.relforcerowsecurity or not pg_has_role(o.oid, t.relowner, 'usage'))) as policies
from pg_class v join pg_attribute i on i.attrelid = v.oid and i.attname = 'id' where v.oid = $1::regclass
