-- Installations. GWP values are taken from regulation (EU) 517/2014 (IPCC AR4), by which F-gas records are still kept.
create temp table seed_devices (n serial, soort text, merk text, type text, koudemiddel text, gwp int, kg_from numeric, kg_to numeric)
on commit drop;
insert into seed_devices (soort, merk, type, koudemiddel, gwp, kg_from, kg_to) values
  ('Airco kantoor', 'Daikin', 'FTXM35R / RXM35R', 'R32', 675, 0.7, 1.4),
  ('Airco serverruimte', 'Daikin', 'FAA100B / RZAG100NV1', 'R32', 675, 2.6, 3.8),
  ('VRV-systeem', 'Daikin', 'RXYQ12U', 'R410A', 2088, 6.3, 18.5),
  ('Warmtepomp', 'Daikin', 'Altherma 3 H HT EPRA14DV', 'R32', 675, 3.2, 4.2),
  ('Airco winkel', 'Mitsubishi Electric', 'PLA-M71EA / PUZ-ZM71VHA', 'R32', 675, 2.1, 3.0),
  ('City Multi', 'Mitsubishi Electric', 'PUHY-P300YNW-A', 'R410A', 2088, 6.5, 22.4),
  ('Warmtepomp', 'Mitsubishi Electric', 'Ecodan PUZ-WZ80VAA', 'R290', 3, 0.6, 1.1),
  ('Koelmachine', 'Carrier', 'AquaSnap 30RB-080R', 'R32', 675, 8.0, 16.0),
  ('Koelmachine', 'Carrier', 'AquaForce 30XA-502', 'R134a', 1430, 48.0, 96.0),
  ('Koelaggregaat transport', 'Carrier', 'Supra 1150 MT', 'R452A', 2140, 3.5, 6.5),
  ('Koelcel', 'Bitzer', 'LHV5E/4EES-6Y', 'R134a', 1430, 4.0, 14.0),
  ('Koelcentrale', 'Bitzer', '4x 4FES-5Y', 'R449A', 1397, 35.0, 140.0),
  ('Vriescentrale', 'Bitzer', '3x 4NES-14Y', 'R404A', 3922, 40.0, 180.0),
  ('CO₂-centrale', 'Bitzer', '4x 4MTE-7K', 'R744', 1, 30.0, 120.0),
  ('Vriescel', 'Copeland', 'ZXLE 040E', 'R448A', 1387, 4.0, 11.5),
  ('Koelcel', 'Copeland', 'ZXME 030E', 'R454C', 148, 2.5, 7.0),
  ('Koelcel bakkerij', 'Copeland', 'ZB29KCE-TFD', 'R404A', 3922, 3.0, 9.5),
  ('Deegremkast', 'Copeland', 'ZSI11KQE', 'R452A', 2140, 1.8, 4.0),
  ('Proceskoeling', 'Copeland', 'ZR61KCE', 'R407C', 1774, 3.8, 8.8),
  ('Vriestunnel', 'GEA', 'Grasso V 450', 'R507A', 3985, 120.0, 480.0),
  ('Ammoniakinstallatie', 'GEA', 'Grasso M 510HS', 'R717', 0, 250.0, 900.0),
  ('Warmtepomp', 'Viessmann', 'Vitocal 250-A', 'R290', 3, 1.2, 2.0),
  ('Wandmeubel', 'Viessmann', 'TectoDeck MD4', 'R513A', 631, 2.0, 6.5),
  ('Koelmachine', 'Trane', 'RTSF 060', 'R1234ze', 7, 25.0, 60.0),
  ('CV-ketel', 'Nefit', 'TrendLine HRC 30/CW5', null, null, null, null),
  ('Hybride warmtepomp', 'Nefit', 'EnviLine 5 kW split', 'R410A', 2088, 1.2, 1.9),
  ('Luchtbehandelingskast', 'Systemair', 'Geniox 14', null, null, null, null),
  ('Toog', 'Epta', 'Bellini 2,5 m', 'R290', 3, 0.1, 0.15);

insert into app.installaties (id, workspace_id, klant_id, naam, omschrijving, locatie, merk, type, serienummer, bouwjaar,
  inbedrijfstelling, koudemiddel, koudemiddel_gwp, vulling_kg, interne_notities, lmra_verplicht, version, created_at, updated_at)
select pg_temp.seed_id('installatie', i.workspace, i.n), i.workspace_id, pg_temp.seed_id('klant', i.workspace, i.customer),
  d.soort || case when i.n % 3 = 0 then ' ' || (1 + i.n % 5) else '' end,
  (array[null, null, null, 'Werkt op dagbedrijf; nachtverlaging om 22:00.', E'Condensor op dak.\nToegang via ladder achterzijde.',
    'Regeling "AK-PC 551" met storingsmelding', 'Ontdooiing 4× per dag', 'Gedeelde buitenunit — zie tekening 12\4'])[1 + pg_temp.draw(i.workspace, i.n, 11, 8)],
  (array['Dakopstelling noordzijde', 'Technische ruimte begane grond', 'Koelcel 2, magazijn', 'Kelder', 'Winkelvloer',
    'Serverruimte 1e verdieping', 'Achtererf', 'Keuken', null, 'Zolder (luik, 2,5 m)'])[1 + pg_temp.draw(i.workspace, i.n, 12, 10)],
  d.merk, d.type,
  case when i.n % 17 <> 0 then upper(left(d.merk, 2)) || lpad(pg_temp.draw(i.workspace, i.n, 13, 99999989)::text, 8, '0') end,
  case when i.n % 23 <> 0 then extract(year from i.started)::int - pg_temp.draw(i.workspace, i.n, 14, 2) end,
  case when i.n % 19 <> 0 then i.started end,
  d.koudemiddel, d.gwp,
  round(d.kg_from + (d.kg_to - d.kg_from) * pg_temp.draw(i.workspace, i.n, 15, 1000) / 1000, 3),
  (array[null, null, null, null, 'Klant betaalt laat', E'Sleutel bij buren (nr. 14).\r\nHond!', 'Vraag naar dhr. "Ab"'])[1 + pg_temp.draw(i.workspace, i.n, 16, 7)],
  pg_temp.draw(i.workspace, i.n, 17, 5) = 0, i.version, i.created_at,
  case when i.version = 1 then i.created_at else least(i.created_at + i.version * interval '41.123457 days',
    (i.today - 1 + time '18:00') at time zone 'Europe/Amsterdam' + i.version * interval '1 second') end
from (
  select w.workspace, w.id as workspace_id, w.today, made.n, made.created_at,
    1 + pg_temp.draw(w.workspace, made.n, 18, 9) * (pg_temp.draw(w.workspace, made.n, 19, 3) / 2)::bigint as version,
    -- Every second installation is the next customer's; the others went to a customer of before.
    -- Four back, as rows that share a moment are set back by up to four.
    case when made.n % 2 = 0 then greatest(1, (made.n - 4)::bigint * w.customers / w.installations)
      else 1 + pg_temp.draw(w.workspace, made.n, 20, greatest(1, (made.n - 4)::bigint * w.customers / w.installations)::int) end::int as customer,
    made.created_at::date - pg_temp.draw(w.workspace, made.n, 21, case when made.n <= w.installations * 0.3 then 3000 else 60 end) as started
  from seed_workspaces w
  cross join lateral (select n, pg_temp.created_at(w.first_day, w.today, n, w.installations) + interval '2 hours' as created_at
    from pg_temp.numbers(w.installations) n) made
) i
join seed_devices d on d.n = 1 + pg_temp.draw(i.workspace, i.n, 10, 28)
order by i.workspace, i.n;
