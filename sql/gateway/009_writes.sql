-- The privileges of the writer, column by column. An installation's refrigerant, charge, notes and LMRA flag can be read back
-- through the view and never written: neither the writer nor the view's owner has the privilege, so PostgreSQL itself
-- refuses. The same view name with other SQL below it fits another app.

-- Automatically updatable (CREATE VIEW, "Updatable Views"); the check option keeps a row in its workspace on the way in.
-- Its columns are those of gateway.installaties, so that a write answers with the same record as a read.
grant insert (id, workspace_id, klant_id, naam, omschrijving, locatie, merk, type, serienummer, bouwjaar, inbedrijfstelling),
    update (klant_id, naam, omschrijving, locatie, merk, type, serienummer, bouwjaar, inbedrijfstelling)
  on app.installaties to gateway_owner;
create view gateway.installaties_write as
  select workspace_id, id, klant_id as customer_id, naam, omschrijving, locatie, merk, type, serienummer, bouwjaar,
    inbedrijfstelling, koudemiddel, koudemiddel_gwp, vulling_kg, interne_notities, lmra_verplicht, version, created_at,
    updated_at
  from app.installaties
  where workspace_id = gateway.workspace()
    and coalesce(workspace_id = any (array[(select gateway.workspace())]), false) -- the tenant wall, see 002
  with cascaded check option;
alter view gateway.installaties_write owner to gateway_owner;
grant select on gateway.installaties_write to gateway_writer;
grant insert (id, workspace_id, customer_id, naam, omschrijving, locatie, merk, type, serienummer, bouwjaar, inbedrijfstelling),
    update (customer_id, naam, omschrijving, locatie, merk, type, serienummer, bouwjaar, inbedrijfstelling)
  on gateway.installaties_write to gateway_writer;

-- The app's own audit log: entries are added, never changed and never read here.
grant insert (workspace_id, entiteit, entiteit_id, actie, actor_type, actor_id, wijzigingen) on app.logboeken to gateway_owner;
create view gateway.logboeken_write as
  select workspace_id, entiteit as entity, entiteit_id as entity_id, actie, actor_type, actor_id, wijzigingen
  from app.logboeken
  where workspace_id = gateway.workspace()
  with cascaded check option;
alter view gateway.logboeken_write owner to gateway_owner;
grant insert on gateway.logboeken_write to gateway_writer;
grant usage on sequence app.logboeken_id_seq to gateway_writer; -- a column default runs with the rights of the inserting role

-- A new owner of an installation must be a customer of the same workspace; for that the writer sees ids and nothing else.
grant select (workspace_id, id) on gateway.klanten to gateway_writer;
-- Reading one's own write while every replica is behind (capped).
grant select on gateway.installaties to gateway_writer;

-- Outcomes of writes by token and Idempotency-Key, stored in the transaction of the write itself. A row whose status is
-- null exists only inside a running transaction: the primary key makes others with the same key wait for its end.
create table gateway.idempotency (
  workspace_id uuid not null,
  token_id uuid not null,
  key text not null,
  fingerprint bytea not null,       -- SHA-256 of method, path, If-Match and canonical body
  status smallint,
  record_id text,
  version bigint,
  body text,
  created_at timestamptz not null default now(),
  primary key (token_id, key)
);
create index idempotency_age on gateway.idempotency (created_at); -- for the clean-up
alter table gateway.idempotency owner to gateway_owner;
grant select, insert (workspace_id, token_id, key, fingerprint), update (status, record_id, version, body)
  on gateway.idempotency to gateway_writer;

-- A stored answer is a record: it stands behind the tenant wall as the views do, and is never changed.
alter table gateway.idempotency enable row level security;
create policy own_workspace on gateway.idempotency to gateway_writer using (workspace_id = gateway.workspace());
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

-- A statement of a gateway that is gone stops within a second, also while it waits for a lock.
alter role gateway_writer set client_connection_check_interval = '1s';
