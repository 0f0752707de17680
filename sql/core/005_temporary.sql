-- 001 gives TEMPORARY by name to the roles that exist when it takes it from PUBLIC, so that the app keeps it. In a second database of
-- the cluster some of these are logins of the gateway: members of gateway_reader or gateway_writer, as deploy/login.sql makes them.
-- They must create nothing, so it is taken back. An admin who made the roles is a member, too, but does not inherit from them.
do $$
declare
  login text;
begin
  for login in
    select r.rolname from pg_database d cross join lateral aclexplode(d.datacl) a join pg_roles r on r.oid = a.grantee
    where d.datname = current_database() and a.privilege_type = 'TEMPORARY' and not r.rolsuper and r.oid <> d.datdba
      and (pg_has_role(r.oid, 'gateway_reader', 'usage') or pg_has_role(r.oid, 'gateway_writer', 'usage'))
  loop
    execute format('revoke temporary on database %I from %I', current_database(), login);
  end loop;
end $$;
