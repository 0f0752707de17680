-- The ids of the data keys in use, over all workspaces, with the number of values seen: `check` and `serve` compare them with
-- the keyring. SECURITY DEFINER because the wall shows no row without a workspace; all that comes out are key ids, counts and a few sealed
-- values without their rows. Columns, prefixes and key ids must match the codecs in the definitions: change both together. Of a large table
-- a sample of some 20,000 rows: a key that only a handful of rows use can be missed.
{grants}create function gateway.key_ids() returns table (key_id text, seen bigint, samples text[])
  language sql stable security definer set search_path = ''
  as {body};
alter function gateway.key_ids() owner to gateway_owner;
revoke all on function gateway.key_ids() from public;
grant execute on function gateway.key_ids() to gateway_reader;
