-- The tables of the second app as the tests read and fill them, behind the gateway's back: the same columns for every app.
create schema probe;
create view probe.klanten as
  select id, tenant_id as workspace_id, sealed, vault_key, created_at, updated_at from fieldops.customers where deleted_at is null;
create view probe.installaties as
  select id, tenant_id as workspace_id, customer_id as klant_id, name as naam, description as omschrijving, location as locatie, brand as merk,
    model as type, serial_number as serienummer, built_in as bouwjaar, commissioned_on as inbedrijfstelling, refrigerant as koudemiddel,
    refrigerant_gwp as koudemiddel_gwp, charge_kg as vulling_kg, internal_notes as interne_notities, needs_risk_analysis as lmra_verplicht,
    lock_version as version, created_at, updated_at
  from fieldops.assets where deleted_at is null;
create view probe.werkbonnen as
  select id, tenant_id as workspace_id, asset_id as installatie_id, number as nummer, planned_on as datum, status, notes as omschrijving,
    signature as handtekening, signed_at as ondertekend_op, created_at, updated_at
  from fieldops.work_orders where deleted_at is null;
create view probe.logboeken as
  select id, tenant_id as workspace_id, logged_at::timestamptz as tijdstip, subject as entiteit, subject_id as entiteit_id, verb as actie,
    actor_kind as actor_type, actor_ref as actor_id, diff as wijzigingen
  from fieldops.activity;
create function probe.log() returns trigger language plpgsql as $$
begin
  insert into fieldops.activity (tenant_id, logged_at, subject, subject_id, verb, actor_kind, actor_ref, diff)
  values (new.workspace_id, to_char(new.tijdstip at time zone 'UTC', 'YYYY-MM-DD"T"HH24:MI:SS.US"Z"'), new.entiteit, new.entiteit_id,
    new.actie, new.actor_type, new.actor_id, coalesce(new.wijzigingen, '{}'));
  return new;
end $$;
create trigger log instead of insert on probe.logboeken for each row execute function probe.log();
create sequence probe.ids start 700000000;
create function probe.new_id() returns bigint language sql as $$ select nextval('probe.ids') $$;
create function probe.add_actions(werkbon bigint) returns void language sql as $$
  update fieldops.work_orders set actions = '[{"id": "1", "code": "X"}, {"id": "2", "code": "X"}]' where id = werkbon
$$;
create function probe.add_hours(werkbon bigint) returns void language sql as $$
  insert into fieldops.time_entries (tenant_id, work_order_id, staff_id, starts_at, minutes)
  select w.tenant_id, w.id, (select min(s.id) from fieldops.staff s where s.tenant_id = w.tenant_id), '2026-01-01 08:00', 60
  from fieldops.work_orders w where w.id = werkbon
$$;
create view probe.uren as select id as part_id, work_order_id as id, tenant_id as workspace_id from fieldops.time_entries;
