-- The ids of the data keys in use, over all workspaces, with the number of values seen: `check` and `serve` hold them
-- against the keyring. SECURITY DEFINER because the wall shows no customer without a workspace; all that comes out
-- are key ids, counts, and for each the hundred longest sealed values of the sample, without row and workspace, so the reader may execute
-- it. The samples show whether the keyring has the right key under an id. All rows up to about 20,000, of more a sample of as many, taken
-- by page: 35 ms for 300,000 rows. Before the first ANALYZE, which a table with partitions never has by itself, the size tells how many
-- rows there are. A key that only a handful of rows use can be missed; those rows then show decodeErrors. enc:v_: is the prefix of both
-- versions of the codec of these columns (config/codecs.json): another codec needs another pattern here.
grant usage on schema app to gateway_owner;
grant select (naam, straat, huisnummer, toevoeging, postcode, plaats, kvk_nummer) on app.klanten to gateway_owner;
create function gateway.key_ids() returns table (key_id text, seen bigint, samples text[])
  language sql stable security definer set search_path = ''
  as $$
    select split_part(v.value, ':', 3), count(*), (array_agg(v.value order by length(v.value) desc))[1:100]
    from app.klanten k tablesample system (
        (select least(100, 100 * 20000 / greatest(sum(case when l.reltuples < 0 then pg_relation_size(l.oid) / 100 else l.reltuples end), 1))
          from pg_class l where l.relkind = 'r'
            and (l.oid = 'app.klanten'::regclass or l.oid in (select relid from pg_partition_tree('app.klanten'::regclass)))))
      cross join lateral (values (k.naam), (k.straat), (k.huisnummer), (k.toevoeging), (k.postcode), (k.plaats), (k.kvk_nummer)) v (value)
    where v.value like 'enc:v_:%'
    group by 1
  $$;
alter function gateway.key_ids() owner to gateway_owner;
revoke all on function gateway.key_ids() from public;
grant execute on function gateway.key_ids() to gateway_reader;
