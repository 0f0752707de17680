-- The tables of the first app as the tests read and fill them, behind the gateway's back: the same columns for every app.
create schema probe;
create view probe.klanten as select * from app.klanten;
create view probe.installaties as select * from app.installaties;
create view probe.werkbonnen as select * from app.werkbonnen;
create view probe.logboeken as select * from app.logboeken;
create function probe.new_id() returns uuid language sql as 'select gen_random_uuid()';
create function probe.add_actions(werkbon uuid) returns void language sql as $$
  insert into app.werkbon_handelingen (id, workspace_id, werkbon_id, volgorde, code)
  select gen_random_uuid(), w.workspace_id, w.id, 90 + g, 'X' from app.werkbonnen w, generate_series(1, 3) g where w.id = werkbon
$$;
create function probe.add_hours(werkbon uuid) returns void language sql as $$
  insert into app.werkbon_uren (id, workspace_id, werkbon_id, medewerker, datum, van, tot, uren)
  select gen_random_uuid(), w.workspace_id, w.id, 'Jan', '2026-01-01', '08:00', '09:00', 1 from app.werkbonnen w where w.id = werkbon
$$;
create view probe.uren as select id as part_id, werkbon_id as id, workspace_id from app.werkbon_uren;
