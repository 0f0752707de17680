-- Hours for every second work order.
insert into app.werkbon_uren (id, workspace_id, werkbon_id, medewerker, datum, van, tot, uren)
select gen_random_uuid(), workspace_id, id, 'Jan', datum, '08:00', '09:00', 1 from app.werkbonnen
where right(nummer, 1) in ('0', '2', '4', '6', '8');
