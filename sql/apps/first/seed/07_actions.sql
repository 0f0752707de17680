-- The actions of work orders, with free-form measurements. One in twelve carries a signature somewhere in them, beside values that
-- must come through unharmed: 12.50 stays 12.50, a whole number beyond 2^53 keeps its last digit.
create temp table seed_actions (n serial, code text, omschrijving text, resultaten text[]) on commit drop;
insert into seed_actions (code, omschrijving, resultaten) values
  ('LEK-01', 'Lekdichtheidscontrole', '{Geen lekkage,"Lek bij flensverbinding, hersteld","Lek < 5 g/jaar"}'),
  ('LEK-02', 'Hercontrole na lekkage', '{Akkoord,"Nog lekkage; vervolgafspraak"}'),
  ('VUL-01', 'Vulling bijvullen', '{Uitgevoerd,"Bijgevuld tot volle kijkglas"}'),
  ('VUL-02', 'Koudemiddel afgezogen', '{Uitgevoerd,NULL}'),
  ('FIL-01', 'Filter gereinigd', '{Uitgevoerd,Akkoord}'),
  ('FIL-02', 'Filter vervangen', '{Uitgevoerd,NULL}'),
  ('CON-01', 'Condensor gereinigd', '{Uitgevoerd,"Sterk vervuild"}'),
  ('VER-01', 'Verdamper ontdooid en gereinigd', '{Uitgevoerd}'),
  ('EXP-01', 'Expansieventiel afgesteld', '{"Oververhitting 6 K",Akkoord}'),
  ('PRE-01', 'Pressostaat getest', '{Akkoord,"Afgesteld op 24 bar"}'),
  ('OLI-01', 'Oliepeil gecontroleerd', '{Goed,Bijgevuld}'),
  ('ELE-01', 'Elektrische aansluitingen nagetrokken', '{Akkoord}'),
  ('MET-01', 'Drukken en temperaturen gemeten', '{Akkoord,"Buiten bereik, zie opmerking"}'),
  ('STO-01', 'Storing opgelost', '{"Relais K3 vervangen","Ventilatormotor vervangen",Gereset}'),
  ('DOC-01', 'Logboek en F-gassenregistratie bijgewerkt', '{NULL}'),
  ('LMR-01', 'LMRA uitgevoerd', '{Akkoord,"Werk gestaakt: dak glad"}');

-- Where signatures hide. `initials` are PNG and `photo` JPEG, in base64.
create temp table seed_hidden_signatures on commit drop as
select (row_number() over (order by s.n, md5(hidden.gegevens::text)) - 1)::int as n, hidden.gegevens
from (select n, image as png, (select image from seed_signatures j where j.kind = 'photo' and j.n = p.n % 4) as jpeg
  from seed_signatures p where kind = 'initials') s
cross join lateral (values
  (jsonb_build_object('handtekening', png, 'bedrag', 12.50)),
  (jsonb_build_object('handtekeningKlant', 'data:image/png;base64,' || png, 'teller', 9007199254740993, 'akkoord', true)),
  (jsonb_build_object('akkoord', jsonb_build_object('door', 'mw. "Ans" \ receptie', 'paraaf', png, 'uur', 1.10))),
  (jsonb_build_object('bijlagen', jsonb_build_array('foto 1', 'data:image/png;base64,' || png, jsonb_build_object('naam', 'ok', 'maat', 0.10)))),
  (jsonb_build_object('controle', jsonb_build_object('stappen', jsonb_build_array(jsonb_build_object('stap', 1, 'ok', true),
    jsonb_build_object('stap', 2, 'velden', jsonb_build_object('laatste', jsonb_build_array(jsonb_build_object('waarde', png)))))))),
  (jsonb_build_object('afbeelding', jpeg, 'notitie', 'bare JPEG: Zoë – 7 °C')),
  (jsonb_build_object('formulier', jsonb_build_object('versie', 2, 'vulling', 3.250, 'paraaf', 'data:image/png;base64,' || png)::text)),
  (jsonb_build_object('formulier', jsonb_build_object('blad', jsonb_build_object('handtekening', jpeg)::text, 'som', 100.00)::text)),
  (jsonb_build_object('opmerking', 'Getekend door klant: data:image/jpeg;base64,' || jpeg || ' (zie archief)', 'kg', 0.500)),
  (jsonb_build_object('signature', jsonb_build_object('type', 'png', 'data', png), 'ruw', '12.50')),
  (jsonb_build_object('handtekening', regexp_replace(png, '(.{76})', E'\\1\r\n', 'g'), 'druk', 4.20)),
  (jsonb_build_array(jsonb_build_object('paraaf', png), jsonb_build_object('meting', 21.50), png, 'gewone tekst'))
) hidden (gegevens)
union all
-- The whole image of a work order, as large as in its own column.
select 10000 + n, jsonb_build_object('handtekening', image, 'klant', jsonb_build_object('akkoord', true))
from seed_signatures where kind = 'plain' and n < 2;
analyze seed_hidden_signatures;

-- One to three for each work order; the third of each workspace's work orders has none.
insert into app.werkbon_handelingen (id, workspace_id, werkbon_id, volgorde, code, omschrijving, resultaat, gegevens)
select pg_temp.seed_id('handeling', o.workspace, o.n * 4 + at), o.workspace_id, o.id, at, a.code, a.omschrijving,
  a.resultaten[1 + k % cardinality(a.resultaten)],
  case
    when h.gegevens is not null and jsonb_typeof(h.gegevens) = 'object' and k % 2 = 0
      then h.gegevens || jsonb_build_object('meting', jsonb_build_object('waarde', round(k / 40.0, 2), 'eenheid', 'bar'))
    when h.gegevens is not null then h.gegevens
    when k % 4 = 0 then null
    when k % 11 = 1 then jsonb_build_object('bijgevuld_kg', round(k / 1000.0, 3), 'cilinder', 'C-' || lpad(k::text, 4, '0'), 'restant', 12.50)
    when k % 11 = 2 then jsonb_build_object('opmerking', E'Klant zei: "mooi"\n\\o/ ' || U&'\2028' || '👍', 'checklist', '[true,null,false]'::jsonb)
    when k % 11 = 3 then '{}'
    when k % 11 = 4 then jsonb_build_array(jsonb_build_object('plaats', 'inlaat', 'waarden', jsonb_build_array(12.50, round(k / 100.0, 2), -1.0)),
      jsonb_build_object('plaats', 'uitlaat', 'waarden', '[]'::jsonb))
    when k % 11 = 5 then jsonb_build_object('lekdetectie', jsonb_build_object('methode', 'elektronisch', 'gevonden', k % 3 = 0, 'gevoeligheid_g_jaar', 5))
    else jsonb_build_object('druk', jsonb_build_object('hoog', round(12 + k / 90.0, 2), 'laag', round(2 + k / 400.0, 2), 'eenheid', 'bar'),
      'temperatuur', jsonb_build_object('zuig', round(k / 80.0, 1), 'buiten', round(k / 30.0 - 8, 1), 'eenheid', '°C'))
  end
from seed_work_orders o
cross join lateral generate_series(1, case when o.n = 3 then 0 else (array[1, 1, 1, 1, 1, 2, 2, 2, 3, 3])[1 + pg_temp.draw(o.workspace, o.n, 41, 10)] end) at
cross join lateral (select pg_temp.draw(o.workspace, o.n * 4 + at, 42, 1000) as k, pg_temp.draw(o.workspace, o.n * 4 + at, 43, 2304) as hidden) d
left join seed_hidden_signatures h on h.n = case when d.hidden < 192 then d.hidden when d.hidden < 194 then 9808 + d.hidden end
join seed_actions a on a.n = 1 + pg_temp.draw(o.workspace, o.n * 4 + at, 44, 16);
