-- Makes a login that the gateway accepts in the place of gateway_reader or gateway_writer: a member of that role and of no
-- other, with its settings, because those of a role reach only logins of its own name. With two such logins a password is
-- changed without a gap. Without a password at first; run it again after an upgrade, for new settings.
--   PGOPTIONS='-c gateway.login=gateway_reader_b -c gateway.role=gateway_reader' psql "$ADMIN_URL" -f deploy/login.sql
--   psql "$ADMIN_URL" -c '\password gateway_reader_b'
do $$
declare
  login text := current_setting('gateway.login');
  role text := current_setting('gateway.role');
  setting text;
begin
  if role not in ('gateway_reader', 'gateway_writer') then
    raise exception 'gateway.role must be gateway_reader or gateway_writer, not %', role;
  end if;
  if to_regrole(quote_ident(login)) is null then execute format('create role %I login', login); end if;
  execute format('grant %I to %I', role, login);
  for setting in select unnest(setconfig) from pg_db_role_setting where setrole = to_regrole(role) and setdatabase = 0 loop
    execute format('alter role %I set %I = %L', login, split_part(setting, '=', 1), substr(setting, strpos(setting, '=') + 1));
  end loop;
end $$;
