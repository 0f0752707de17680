-- Work orders with their hours, and their actions, which the app keeps in one jsonb. The signature is not selected.
-- row_xid is xmin as it is stored: by it a sync pass finds the rows that changed (docs/understand/sync.md).
-- Relies on fieldops.work_orders (tenant_id, planned_on, id) where deleted_at is null for lists, the primary key for details,
-- and (work_order_id, starts_at) for the hours of each row. The subqueries run for the rows of a page and no others.
-- jsonb_array_elements() of anything but an array is an error, which would fail the page: such a cell has no actions.
create view records.werkbonnen as
  select w.tenant_id as workspace_id, w.id, w.asset_id, w.number, w.planned_on, w.status, w.notes,
    (select coalesce(json_agg(json_build_object('id', a.action ->> 'id', 'code', a.action ->> 'code', 'omschrijving', a.action ->> 'title',
        'resultaat', a.action ->> 'result', 'gegevens', a.action -> 'data') order by a.place), '[]')
      from jsonb_array_elements(case jsonb_typeof(w.actions) when 'array' then w.actions else '[]' end)
        with ordinality as a (action, place)) as actions,
    (select coalesce(json_agg(json_build_object('id', t.id::text, 'medewerker', s.full_name, 'datum', t.starts_at::date,
        'van', to_char(t.starts_at, 'HH24:MI'), 'tot', to_char(t.starts_at + t.minutes * interval '1 minute', 'HH24:MI'),
        'uren', round(t.minutes / 60.0, 2)) order by t.starts_at, t.id), '[]')
      from fieldops.time_entries t join fieldops.staff s on s.id = t.staff_id and s.tenant_id = t.tenant_id
      where t.work_order_id = w.id and t.tenant_id = w.tenant_id) as hours,
    w.signed_at, w.created_at, w.updated_at, w.xmin as row_xid
  from fieldops.work_orders w
  where w.deleted_at is null;
