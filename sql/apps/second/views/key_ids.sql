-- The ids of the data keys in use, over all tenants, with the number of values seen: `check` and `serve` hold them against the
-- keyring. SECURITY DEFINER because the wall shows no customer without a tenant; all that comes out are key ids, counts and a few sealed
-- values without their rows.
grant usage on schema fieldops to gateway_owner;
grant select (sealed, vault_key, deleted_at) on fieldops.customers to gateway_owner;
create function gateway.key_ids() returns table (key_id text, seen bigint, samples text[])
  language sql stable security definer set search_path = ''
  as $$
    select c.vault_key, count(*), (array_agg(c.sealed::text order by length(c.sealed) desc))[1:100] from fieldops.customers c
    where c.sealed is not null and c.deleted_at is null
    group by 1
  $$;
alter function gateway.key_ids() owner to gateway_owner;
revoke all on function gateway.key_ids() from public;
grant execute on function gateway.key_ids() to gateway_reader;
