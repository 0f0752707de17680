-- Assets; every twentieth has a deleted copy.
create temp table seed_devices (n serial, name text, brand text, model text, refrigerant text, gwp int, kg numeric) on commit drop;
insert into seed_devices (name, brand, model, refrigerant, gwp, kg) values
  ('Airco kantoor', 'Daikin', 'FTXM35R / RXM35R', 'R32', 675, 0.9), ('VRV-systeem', 'Daikin', 'RXYQ12U', 'R410A', 2088, 12.5),
  ('Koelcel', 'Bitzer', 'LHV5E/4EES-6Y', 'R134a', 1430, 9.25), ('CO₂-centrale', 'Bitzer', '4x 4MTE-7K', 'R744', 1, 80.125),
  ('Vriescel', 'Copeland', 'ZXLE 040E', 'R448A', 1387, 7), ('Ammoniakinstallatie', 'GEA', 'Grasso M 510HS', 'R717', 0, 480),
  ('CV-ketel', 'Nefit', 'TrendLine HRC 30/CW5', null, null, null);

insert into fieldops.assets (id, tenant_id, customer_id, name, description, location, brand, model, serial_number, built_in,
  commissioned_on, refrigerant, refrigerant_gwp, charge_kg, internal_notes, needs_risk_analysis, lock_version, created_at, updated_at, deleted_at)
select pg_temp.seed_id(i.workspace, i.n + case when gone then 5000000 else 0 end), i.tenant_id,
  pg_temp.seed_id(i.workspace, 1 + pg_temp.draw(i.workspace, i.n, 20, 1 + (i.n - 1) * (i.customers - 1) / i.installations)),
  d.name || case when i.n % 3 = 0 then ' ' || (1 + i.n % 5) else '' end,
  (array[null, null, 'Werkt op dagbedrijf; nachtverlaging om 22:00.', E'Condensor op dak.\nToegang via ladder.', 'Regeling "AK-PC 551"', 'zie tekening 12\4 —'])[1 + pg_temp.draw(i.workspace, i.n, 11, 6)],
  (array['Dak', 'Kelder', 'Winkelvloer', null, 'Zolder (luik, 2,5 m)'])[1 + pg_temp.draw(i.workspace, i.n, 12, 5)],
  d.brand, d.model,
  case when i.n % 17 <> 0 then upper(left(d.brand, 2)) || lpad(pg_temp.draw(i.workspace, i.n, 13, 99999989)::text, 8, '0') end,
  case when i.n % 23 <> 0 then extract(year from i.created_at)::int - 1 end,
  case when i.n % 19 <> 0 then i.created_at::date - 30 end,
  d.refrigerant, d.gwp, d.kg,
  (array[null, null, 'Klant betaalt laat', E'Sleutel bij buren (nr. 14).\r\nHond!'])[1 + pg_temp.draw(i.workspace, i.n, 16, 4)],
  pg_temp.draw(i.workspace, i.n, 17, 5) = 0, i.changes, i.created_at,
  least(i.created_at + i.changes * interval '41.123457 days', (i.today - 1 + time '18:00') at time zone 'Europe/Amsterdam' + i.changes * interval '1 second'),
  case when gone then i.today - 1 + time '12:00' end
from (
  select w.workspace, w.id as tenant_id, w.today, w.customers, w.installations, n, pg_temp.draw(w.workspace, n, 18, 5) as changes,
    pg_temp.created_at(w.first_day, w.today, n, w.installations) + interval '2 hours' as created_at
  from seed_workspaces w cross join lateral pg_temp.numbers(w.installations) n
) i
join seed_devices d on d.n = 1 + pg_temp.draw(i.workspace, i.n, 10, 7)
cross join lateral (select false union all select true where i.n % 20 = 1) copies (gone)
order by i.workspace, i.n;
