-- Whether the admin is a member of the role $1, and the statements that grant its privileges on other databases again.
select pg_has_role(current_user, $1, 'usage') as "isMember", array(
  select format('grant %s on database %I to %I%s', a.privilege_type, d.datname, $1, case when a.is_grantable then ' with grant option' end)
  from pg_database d, aclexplode(d.datacl) a where a.grantee = to_regrole($1) and d.datname <> current_database()) as others
