-- The log of all workspaces over eight years; 500 entries for each entity, of which eight in ten are changes. The changes are
-- as those of an app: most move a state with few values, others a date, a number or a text that hardly comes twice; some
-- entries have several; customers and signatures have fields that the gateway shields; now and then a text has an escape.
-- `dice` is the entry's own number at random, the same in every run.
insert into app.logboeken (id, workspace_id, tijdstip, entiteit, entiteit_id, actie, actor_type, actor_id, wijzigingen)
select row_number() over (), t.id, h.first_day + l.n * (h.days * interval '1 day' / t.log_entries),
  e.kind, 'e-' || l.n % t.entities, e.action,
  case when e.dice % 10 < 8 then 'gebruiker' else 'systeem' end,
  case when e.dice % 10 < 8 then bench.installation_id(t.n, e.dice % 23)::text end,
  (case
    when e.action = 'verwijderd' then '[]'
    when e.action = 'aangemaakt' then case e.kind
      when 'klant' then '[{"veld": "naam", "oud": null, "nieuw": "Bakkerij ' || d.word || '"}, {"veld": "status", "oud": null, "nieuw": "actief"}]'
      when 'installatie' then '[{"veld": "naam", "oud": null, "nieuw": "Koelcel ' || d.number || '"}, {"veld": "vulling_kg", "oud": null, "nieuw": '
        || round(d.number / 100.0, 2) || '}, {"veld": "bouwjaar", "oud": null, "nieuw": ' || 1990 + d.number % 35 || '}]'
      else '[{"veld": "nummer", "oud": null, "nieuw": "WB-' || l.n || '"}, {"veld": "datum", "oud": null, "nieuw": "' || d.day
        || '"}, {"veld": "status", "oud": null, "nieuw": "gepland"}]' end
    when e.kind = 'klant' then case
      when d.kind < 30 then '[{"veld": "status", "oud": "actief", "nieuw": "inactief"}]'
      when d.kind < 60 then '[{"veld": "telefoon", "oud": "06-' || 10000000 + e.dice % 8999999 || '", "nieuw": "06-' || 10000000 + e.dice / 7 % 8999999 || '"}]'
      when d.kind < 80 then '[{"veld": "straat", "oud": "' || d.word || 'straat", "nieuw": "Dorpsweg"}, {"veld": "huisnummer", "oud": "1", "nieuw": "' || d.number || '"}]'
      else '[{"veld": "email", "oud": null, "nieuw": "info' || d.number || '@example.com"}]' end
    when e.kind = 'installatie' then case
      when d.kind < 30 then '[{"veld": "vulling_kg", "oud": ' || round(d.number / 100.0, 2) || ', "nieuw": ' || round((d.number + 1 + e.dice % 40) / 100.0, 2) || '}]'
      when d.kind < 45 then '[{"veld": "koudemiddel", "oud": "R404A", "nieuw": "' || (array['R32', 'R290', 'R449A', 'R744'])[1 + e.dice % 4] || '"}]'
      when d.kind < 60 then '[{"veld": "locatie", "oud": null, "nieuw": "' || d.word || ', ruimte ' || d.number || '"}]'
      when d.kind < 70 then '[{"veld": "inbedrijfstelling", "oud": null, "nieuw": "' || d.day || '"}]'
      when d.kind < 80 then '[{"veld": "lmra_verplicht", "oud": false, "nieuw": true}]'
      else '[{"veld": "interne_notities", "oud": "' || d.remark || '", "nieuw": "' || d.remark || '; druk ' || round(d.number / 10.0, 1) || ' bar"}]' end
    else case
      when d.kind < 45 then '[{"veld": "status", "oud": "' || (array['gepland', 'onderweg', 'bezig', 'afgerond'])[1 + e.dice % 4]
        || '", "nieuw": "' || (array['onderweg', 'bezig', 'afgerond', 'gefactureerd'])[1 + e.dice % 4] || '"}]'
      when d.kind < 60 then '[{"veld": "datum", "oud": "' || d.day || '", "nieuw": "' || d.day + 1 + e.dice % 20 || '"}]'
      when d.kind < 72 then '[{"veld": "omschrijving", "oud": null, "nieuw": "' || d.remark || '"}]'
      when d.kind < 75 then '[{"veld": "omschrijving", "oud": "' || d.remark || '", "nieuw": "' || d.remark || '\nZie \"' || d.word || '\""}]'
      when d.kind < 88 then '[{"veld": "status", "oud": "bezig", "nieuw": "afgerond"}, {"veld": "ondertekend_op", "oud": null, "nieuw": "' || d.day
        || 'T10:' || 10 + e.dice % 50 || ':00Z"}, {"veld": "handtekening", "oud": null, "nieuw": "iVBORw0KGgo' || md5(d.remark) || '"}]'
      when d.kind < 95 then '[{"veld": "installation_id", "oud": "' || bench.installation_id(t.n, d.number) || '", "nieuw": "' || bench.installation_id(t.n, e.dice % 9973) || '"}]'
      else '[{"veld": "btwPercentage", "oud": 9, "nieuw": 21}]' end
  end)::jsonb
from bench.history h, bench.tenants t cross join lateral generate_series(0, t.log_entries - 1) l (n)
cross join lateral (
  select (array['werkbon', 'werkbon', 'installatie', 'klant'])[1 + l.n % t.entities % 4] as kind,
    case (l.n / t.entities + l.n % t.entities) % 10 when 0 then 'aangemaakt' when 9 then 'verwijderd' else 'gewijzigd' end as action,
    hashint4(l.n) & 2147483647 as dice
) e
cross join lateral (
  select e.dice / 10 % 100 as kind, e.dice / 1000 % 9000 as number, h.first_day + e.dice / 1000 % h.days as day,
    (array['Noord', 'Molen', 'Kelder', 'Zuid', 'Bakker', 'Café', 'Haven', 'Markt'])[1 + e.dice / 3 % 8] as word,
    (array['Compressor vervangen', 'Filter gereinigd', 'Ventiel lekt', 'Regelaar opnieuw ingesteld', 'Klant was niet aanwezig'])[1 + e.dice / 5 % 5]
      || ', ' || (array['daarna getest', 'onderdeel besteld', 'volgt bij de volgende beurt', 'geen bijzonderheden'])[1 + e.dice / 7 % 4]
      || ' (' || e.dice % 100000 || ')' as remark
) d
