-- Work orders with their actions and hours. The signature is not selected.
-- row_xid is xmin as it is stored: by it a sync pass finds the rows that changed (docs/understand/sync.md).
-- Relies on app.werkbonnen (workspace_id, datum, id) for lists, the primary key for details, and on
-- (werkbon_id, volgorde) and (werkbon_id, datum, van) for the parts of each row.
-- The parts are correlated subqueries on purpose: they run for the rows a page returns and no others, and not at all
-- where only keys are asked for, which leaves skips and counts index-only. A join with GROUP BY read all work orders.
create view records.werkbonnen as
  select w.workspace_id, w.id, w.installatie_id as installation_id, w.nummer, w.datum, w.status, w.omschrijving,
    (select coalesce(json_agg(h), '[]')
      from (select h.id, h.code, h.omschrijving, h.resultaat, h.gegevens
            from app.werkbon_handelingen h
            where h.werkbon_id = w.id and h.workspace_id = w.workspace_id
            order by h.volgorde, h.id) h) as handelingen,
    (select coalesce(json_agg(u), '[]')
      from (select u.id, u.medewerker, u.datum, left(u.van::text, 5) as van, left(u.tot::text, 5) as tot, u.uren
            from app.werkbon_uren u
            where u.werkbon_id = w.id and u.workspace_id = w.workspace_id
            order by u.datum, u.van, u.id) u) as uren,
    w.ondertekend_op, w.created_at, w.updated_at, w.xmin as row_xid
  from app.werkbonnen w;
