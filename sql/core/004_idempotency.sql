-- Outcomes of writes by token and Idempotency-Key, stored in the transaction of the write itself. A row whose status is
-- null exists only inside a running transaction: the primary key makes others with the same key wait for its end.
create table gateway.idempotency (
  workspace_id text not null default gateway.workspace(),
  token_id uuid not null,
  key text not null,
  fingerprint bytea not null,       -- SHA-256 of method, path, If-Match and canonical body
  status smallint,
  record_id text,
  may_read boolean,                 -- whether the token had the read scope
  shape text,                       -- digest of the columns of `record`
  record text,                      -- the row that the write left: a JSON array of its values as PostgreSQL prints them
  created_at timestamptz not null default now(),
  primary key (token_id, key)
);
create index idempotency_age on gateway.idempotency (created_at); -- for the clean-up
alter table gateway.idempotency owner to gateway_owner;
grant select (token_id, key, fingerprint, status, record_id, may_read, shape, record), insert (token_id, key, fingerprint),
  update (status, record_id, may_read, shape, record) on gateway.idempotency to gateway_writer;
-- The estimates of EXPLAIN would tell what other workspaces wrote; the primary key needs no statistics.
alter table gateway.idempotency alter workspace_id set statistics 0, alter token_id set statistics 0, alter key set statistics 0,
  alter fingerprint set statistics 0, alter record_id set statistics 0, alter record set statistics 0;

-- A stored answer is a record: it stands behind the tenant wall as the views do, and is never changed.
alter table gateway.idempotency enable row level security;
create policy own_workspace on gateway.idempotency to gateway_writer using (workspace_id = (select gateway.workspace()));
create policy stored_once on gateway.idempotency as restrictive for update to gateway_writer using (status is null)
  with check (true);

-- The clean-up: keys are promised for 24 hours; an hour more keeps clocks and running retries out of it. The oldest first,
-- by idempotency_age, `rows_max` at most: 500 rows take some 10 ms. SECURITY DEFINER, because the writer itself may
-- delete nothing; all that comes out is how many rows went.
create function gateway.expire_idempotency_keys(rows_max integer) returns bigint
  language sql security definer set search_path = ''
  as $$
    with expired as (
      delete from gateway.idempotency where (token_id, key) in (
        select token_id, key from gateway.idempotency where created_at < pg_catalog.now() - interval '25 hours'
        order by created_at limit rows_max for update skip locked)
      returning true)
    select pg_catalog.count(*) from expired
  $$;
alter function gateway.expire_idempotency_keys(integer) owner to gateway_owner;
revoke all on function gateway.expire_idempotency_keys(integer) from public;
grant execute on function gateway.expire_idempotency_keys(integer) to gateway_writer;
