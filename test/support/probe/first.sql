-- The tables of the first app as the tests read and fill them, behind the gateway's back: the same columns for every app.
create schema probe;
create view probe.klanten as select * from app.klanten;
create view probe.installaties as select * from app.installaties;
create view probe.werkbonnen as select * from app.werkbonnen;
create view probe.logboeken as select * from app.logboeken;
create function probe.new_id() returns uuid language sql as 'select gen_random_uuid()';
