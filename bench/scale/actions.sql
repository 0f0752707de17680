-- An action for each work order.
insert into app.werkbon_handelingen (id, workspace_id, werkbon_id, volgorde, code, omschrijving)
select gen_random_uuid(), workspace_id, id, 1, 'LEK-01', 'Lekdichtheidscontrole' from app.werkbonnen;
