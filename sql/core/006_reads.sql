-- The register of reads: who read which personal data when, and which tokens hold copies. It answers a data protection officer
-- (docs/understand/data-protection.md); nothing is judged by it. Only the command `register` reads it, as the admin.
-- The views of tokens are created after this file, so the bodies are checked when they run.
set local check_function_bodies = off;

-- A row per hour, token, resource and set of personal fields. The first columns of the key serve the register of a workspace.
create table gateway.reads (
  workspace_id text not null,
  hour timestamptz not null,
  token_id uuid not null,
  resource text not null,
  fields text not null,             -- personal fields of the answers, separated by commas
  requests bigint not null,
  records bigint not null,
  primary key (workspace_id, hour, token_id, resource, fields)
);
create index reads_age on gateway.reads (hour); -- for the clean-up
alter table gateway.reads owner to gateway_owner;

-- A row per token and resource of sync: a copy may hold what the token read.
create table gateway.copies (
  workspace_id text not null,
  token_id uuid not null,
  resource text not null,
  passed_at timestamptz,            -- end of the last pass over everything
  changed_at timestamptz,           -- end of the last pass over changes
  compared_at timestamptz,          -- last digest, by which a client finds records that were erased
  primary key (token_id, resource)
);
alter table gateway.copies owner to gateway_owner;

-- Adds what a gateway gathered: {"reads": [...], "copies": [...]}. The workspace is the token's; ids that are no token's are
-- left out. In the order of the keys, so that two gateways do not wait for each other in a circle. SECURITY DEFINER, because
-- the writer itself may write nothing here.
create function gateway.note_reads(noted jsonb) returns void
  language sql security definer set search_path = ''
  as $$
    insert into gateway.reads as known (workspace_id, hour, token_id, resource, fields, requests, records)
    select t.workspace_id::text, n.hour, t.id, n.resource, n.fields, n.requests, n.records
    from pg_catalog.jsonb_to_recordset(noted -> 'reads')
      as n (hour timestamptz, token uuid, resource text, fields text, requests bigint, records bigint)
    join gateway.api_tokens t on t.id = n.token
    where n.requests > 0 and n.records >= 0 -- a stolen login adds, and takes nothing away
    order by t.workspace_id::text, n.hour, t.id, n.resource, n.fields
    on conflict (workspace_id, hour, token_id, resource, fields) do update
      set requests = known.requests + excluded.requests, records = known.records + excluded.records;
    insert into gateway.copies as known (workspace_id, token_id, resource, passed_at, changed_at, compared_at)
    select t.workspace_id::text, t.id, n.resource, n.pass, n.changes, n.digest
    from pg_catalog.jsonb_to_recordset(noted -> 'copies')
      as n (token uuid, resource text, pass timestamptz, changes timestamptz, digest timestamptz)
    join gateway.api_tokens t on t.id = n.token
    order by t.id, n.resource
    on conflict (token_id, resource) do update set passed_at = greatest(known.passed_at, excluded.passed_at),
      changed_at = greatest(known.changed_at, excluded.changed_at), compared_at = greatest(known.compared_at, excluded.compared_at)
  $$;
alter function gateway.note_reads(jsonb) owner to gateway_owner;
revoke all on function gateway.note_reads(jsonb) from public;
grant execute on function gateway.note_reads(jsonb) to gateway_writer;

-- REGISTER_MONTHS as the last `migrate` had it. The gateway's logins cannot change it, so a stolen one deletes nothing before its time.
create table gateway.register_retention (months integer not null);
alter table gateway.register_retention owner to gateway_owner;
insert into gateway.register_retention values (24);

-- The clean-up of older rows, by reads_age, `rows_max` at most.
create function gateway.expire_reads(rows_max integer) returns bigint
  language sql security definer set search_path = ''
  as $$
    with expired as (
      delete from gateway.reads where (workspace_id, hour, token_id, resource, fields) in (
        select workspace_id, hour, token_id, resource, fields from gateway.reads
        where hour < pg_catalog.now() - (select pg_catalog.make_interval(months => months) from gateway.register_retention)
        order by hour limit rows_max for update skip locked)
      returning true)
    select pg_catalog.count(*) from expired
  $$;
alter function gateway.expire_reads(integer) owner to gateway_owner;
revoke all on function gateway.expire_reads(integer) from public;
grant execute on function gateway.expire_reads(integer) to gateway_writer;

-- For the command `register`, as the admin: the reads of a workspace in a period, and the copies of its tokens.
create function gateway.list_reads(workspace text, since timestamptz, until timestamptz)
  returns table (hour timestamptz, token_id uuid, token text, resource text, fields text, requests bigint, records bigint)
  language sql stable
  as $$
    select r.hour, r.token_id, t.name::text, r.resource, r.fields, r.requests, r.records
    from gateway.reads r left join gateway.api_tokens t on t.id = r.token_id
    where r.workspace_id = workspace and r.hour >= since and r.hour < until
    order by r.hour, t.name, r.token_id, r.resource, r.fields
  $$;
create function gateway.list_copies(workspace text)
  returns table (token_id uuid, token text, state text, resource text, passed_at timestamptz, changed_at timestamptz, compared_at timestamptz)
  language sql stable
  as $$
    select c.token_id, l.name, coalesce(l.state, 'deleted'), c.resource, c.passed_at, c.changed_at, c.compared_at
    from gateway.copies c left join gateway.list_tokens(workspace) l on l.id = c.token_id
    where c.workspace_id = workspace
    order by l.name, c.token_id, c.resource
  $$;
revoke all on function gateway.list_reads(text, timestamptz, timestamptz), gateway.list_copies(text) from public;
