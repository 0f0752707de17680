-- The diffs of the audit log, made once and drawn from. Those of customers hold the values of the row: encrypted ones
-- and, in the first years (variants 3 and 4), clear text.
create temp table seed_customer_changes on commit drop as
select c.workspace, c.n, v.variant, v.actie, v.wijzigingen
from seed_customers c
left join seed_customers before on before.workspace = c.workspace and before.n = c.n + 1
cross join lateral (values
  (0, 'aangemaakt', (select jsonb_agg(jsonb_build_object('veld', f.veld, 'oud', null, 'nieuw', f.waarde))
    from (values ('naam', c.naam), ('straat', c.straat), ('huisnummer', c.huisnummer), ('postcode', c.postcode),
      ('plaats', c.plaats), ('land', c.land), ('kvk_nummer', c.kvk_nummer), ('email', c.email)) f (veld, waarde))),
  (1, 'gewijzigd', jsonb_build_array(
    jsonb_build_object('veld', 'straat', 'oud', before.straat, 'nieuw', c.straat),
    jsonb_build_object('veld', 'huisnummer', 'oud', before.huisnummer, 'nieuw', c.huisnummer),
    jsonb_build_object('veld', 'toevoeging', 'oud', before.toevoeging, 'nieuw', c.toevoeging),
    jsonb_build_object('veld', 'postcode', 'oud', before.postcode, 'nieuw', c.postcode))),
  (2, 'gewijzigd', jsonb_build_array(
    jsonb_build_object('veld', 'kvk_nummer', 'oud', null, 'nieuw', c.kvk_nummer),
    jsonb_build_object('veld', 'telefoon', 'oud', before.telefoon, 'nieuw', c.telefoon))),
  (3, 'gewijzigd', jsonb_build_array(
    jsonb_build_object('veld', 'naam', 'oud', c.plain_name || ' (oud)', 'nieuw', c.plain_name),
    jsonb_build_object('veld', 'telefoon', 'oud', '06-12345678', 'nieuw', '06-87654321'))),
  (4, 'gewijzigd', jsonb_build_array(jsonb_build_object('veld', 'adres',
    'oud', jsonb_build_object('straat', 'Kerkstraat', 'huisnummer', '12', 'plaats', 'Utrecht'),
    'nieuw', jsonb_build_object('straat', c.straat, 'huisnummer', c.huisnummer, 'naam', c.plain_name))))
) v (variant, actie, wijzigingen);
analyze seed_customer_changes;

-- Those of the other things; `x` makes them differ. Variants 4 to 6 of a work order hold signatures, variant 7 of an
-- installation a customer's encrypted name.
create temp table seed_changes on commit drop as
select w.workspace, c.entiteit, x * 8 + c.variant as variant, c.actie, c.wijzigingen
from seed_workspaces w
cross join generate_series(0, 15) x
join seed_signatures s on s.kind = case x when 0 then 'plain' else 'initials' end and s.n = x
join seed_customers k on k.workspace = w.workspace and k.n = 1 + x
cross join lateral (values
  ('werkbon', 0, 'aangemaakt', jsonb_build_array(
    jsonb_build_object('veld', 'status', 'oud', null, 'nieuw', 'gepland'),
    jsonb_build_object('veld', 'omschrijving', 'oud', null, 'nieuw', E'Storing "hoge druk"\nkamer ' || x))),
  ('werkbon', 1, 'gewijzigd', jsonb_build_array(jsonb_build_object('veld', 'status', 'oud', 'gepland', 'nieuw', 'in_uitvoering'))),
  ('werkbon', 2, 'gewijzigd', jsonb_build_array(jsonb_build_object('veld', 'status', 'oud', 'in_uitvoering', 'nieuw', 'afgerond'))),
  ('werkbon', 3, 'gewijzigd', jsonb_build_array(jsonb_build_object('veld', 'datum', 'oud', '2019-03-' || 10 + x, 'nieuw', '2019-03-' || 11 + x))),
  ('werkbon', 4, 'gewijzigd', jsonb_build_array(jsonb_build_object('veld', 'handtekening', 'oud', null, 'nieuw', s.image),
    jsonb_build_object('veld', 'ondertekend_op', 'oud', null, 'nieuw', '2021-05-' || 10 + x || 'T14:03:12.120Z'))),
  ('werkbon', 5, 'gewijzigd', jsonb_build_array(jsonb_build_object('veld', 'gegevens', 'oud', jsonb_build_object('druk', 12.50, 'kg', x),
    'nieuw', jsonb_build_object('druk', 12.75, 'paraaf', s.image, 'teller', 9007199254740993)))),
  ('werkbon', 6, 'gewijzigd', jsonb_build_array(jsonb_build_object('veld', 'opmerking', 'oud', 'zie ' || x,
    'nieuw', 'data:image/png;base64,' || s.image))),
  ('werkbon', 7, 'gewijzigd', jsonb_build_array(jsonb_build_object('veld', 'status', 'oud', 'afgerond', 'nieuw', 'gefactureerd'))),
  ('installatie', 0, 'aangemaakt', jsonb_build_array(jsonb_build_object('veld', 'naam', 'oud', null, 'nieuw', 'Koelcel ' || x),
    jsonb_build_object('veld', 'merk', 'oud', null, 'nieuw', 'Bitzer'))),
  ('installatie', 1, 'gewijzigd', jsonb_build_array(jsonb_build_object('veld', 'vulling_kg', 'oud', 12.500 + x, 'nieuw', 13.250 + x))),
  ('installatie', 2, 'gewijzigd', jsonb_build_array(jsonb_build_object('veld', 'locatie', 'oud', 'Kelder', 'nieuw', E'Dak "noord"\\' || x))),
  ('installatie', 3, 'gewijzigd', jsonb_build_array(jsonb_build_object('veld', 'koudemiddel', 'oud', 'R404A', 'nieuw', 'R449A'),
    jsonb_build_object('veld', 'koudemiddel_gwp', 'oud', 3922, 'nieuw', 1397))),
  ('installatie', 4, 'gewijzigd', jsonb_build_array(jsonb_build_object('veld', 'bouwjaar', 'oud', null, 'nieuw', 2004 + x))),
  ('installatie', 5, 'gewijzigd', jsonb_build_array(jsonb_build_object('veld', 'lmra_verplicht', 'oud', false, 'nieuw', true))),
  ('installatie', 6, 'gewijzigd', jsonb_build_array(jsonb_build_object('veld', 'serienummer', 'oud', null, 'nieuw', 'BI' || 10240000 + x))),
  ('installatie', 7, 'gewijzigd', jsonb_build_array(jsonb_build_object('veld', 'klant_naam', 'oud', null, 'nieuw', k.naam),
    jsonb_build_object('veld', 'type', 'oud', 'ZB29', 'nieuw', 'ZB29KCE'))),
  ('gebruiker', 0, 'gewijzigd', jsonb_build_array(jsonb_build_object('veld', 'rol', 'oud', 'owner', 'nieuw', 'member'))),
  ('gebruiker', 1, 'gewijzigd', '[]'::jsonb)
) c (entiteit, variant, actie, wijzigingen);
analyze seed_changes;
