-- The log of all workspaces over eight years; 500 entries for each entity, of which eight in ten are changes.
insert into app.logboeken (id, workspace_id, tijdstip, entiteit, entiteit_id, actie, actor_type, wijzigingen)
select row_number() over (), t.id, h.first_day + l.n * (h.days * interval '1 day' / t.log_entries),
  (array['werkbon', 'werkbon', 'installatie', 'klant'])[1 + l.n % t.entities % 4], 'e-' || l.n % t.entities,
  case (l.n / t.entities + l.n % t.entities) % 10 when 0 then 'aangemaakt' when 9 then 'verwijderd' else 'gewijzigd' end, 'systeem',
  '[{"veld": "status", "oud": "gepland", "nieuw": "afgerond"}]'
from bench.history h, bench.tenants t cross join lateral generate_series(0, t.log_entries - 1) l (n);
