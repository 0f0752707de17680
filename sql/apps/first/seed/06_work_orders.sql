-- Work orders in order of their date, from eight years ago to three weeks ahead, on working days only, numbered per year.
create temp table seed_work_orders on commit drop as
select dated.workspace, dated.n, pg_temp.seed_id('werkbon', dated.workspace, dated.n) as id, dated.workspace_id, dated.datum,
  case
    when dated.datum > dated.today then 'gepland'
    when dated.datum = dated.today then 'in_uitvoering'
    when dated.datum < dated.today - 60 and dated.draw <> 0 or dated.draw < 6 then 'gefactureerd'
    else 'afgerond'
  end as status,
  1 + pg_temp.draw(dated.workspace, dated.n, 31, greatest(1, floor(dated.installations * 0.99 * (0.3 + 0.7 *
    least(1, greatest(0, dated.datum - dated.first_day - 30)::float8 / (dated.today - dated.first_day)))))::int) as installation,
  dated.datum < dated.today and pg_temp.draw(dated.workspace, dated.n, 32, 20) > 0 as signed,
  least(dated.datum - 2 - pg_temp.draw(dated.workspace, dated.n, 33, 10), dated.today - 1) as entered,
  case when dated.scanned then 'scan' else 'plain' end as image_kind,
  pg_temp.draw(dated.workspace, dated.n, 36, case when dated.scanned then 8 else 40 end) as image_n
from (
  select w.workspace, w.id as workspace_id, n, w.today, w.first_day, w.installations, pg_temp.draw(w.workspace, n, 30, 20) as draw,
    -- Scans do not compress: one in sixteen, and one in four hundred where there are many.
    pg_temp.draw(w.workspace, n, 35, case when w.work_orders > 50000 then 400 else 16 end) = 0 as scanned,
    -- Saturday's work is done on Friday, Sunday's on Monday.
    day + case extract(dow from day) when 6 then -1 when 0 then 1 else 0 end as datum
  from seed_workspaces w
  cross join lateral (
    select n, w.first_day + ((n - 1)::bigint * (w.today + 21 - w.first_day) / w.work_orders)::int as day
    from pg_temp.numbers(w.work_orders) n) spread
) dated;
analyze seed_work_orders;

-- An image read from seed_signatures is stored again as it was compressed there, so 200,000 of them cost little.
-- The clear texts hold characters that a JSON writer can get wrong: quotes, backslashes, line ends, control characters, U+2028, emoji.
insert into app.werkbonnen (id, workspace_id, installatie_id, nummer, datum, status, omschrijving, handtekening,
  ondertekend_op, created_at, updated_at)
select o.id, o.workspace_id, pg_temp.seed_id('installatie', o.workspace, o.installation),
  'WB-' || extract(year from o.datum) || '-' || lpad(o.number::text, 6, '0'), o.datum, o.status,
  (array['Periodiek onderhoud', 'Jaarlijkse lekdichtheidscontrole (F-gassen)', 'Storing: koelcel komt niet op temperatuur',
    'Storing hoge druk', E'Klant meldt: "het lekt".\nGraag vóór 12:00 uur langskomen.', 'Inbedrijfstelling', null,
    E'Vriescel −18 °C ❄️ / alarm 🚨 na stroomuitval', E'Let op:\u2028sleutel bij receptie\u2029kamer 3',
    E'Pad \\\\server\\foto''s\\2024\tzie ook "offerte"', E'Regel 1\r\nRegel 2\r\n', E'Scanner gaf stuurteken \u0001\u001f mee', '',
    'Condensor reinigen & filters vervangen <spoed>', 'Ombouw R404A → R449A', 'Servicebeurt warmtepomp'])[1 + pg_temp.draw(o.workspace, o.n, 34, 16)],
  s.image,
  case when o.signed then signed_at end,
  entered_at,
  case when o.signed then signed_at else entered_at end
from (select *, row_number() over (partition by workspace, extract(year from datum) order by n) as number from seed_work_orders) o
left join seed_signatures s on o.signed and s.kind = o.image_kind and s.n = o.image_n
cross join lateral (select
  (o.datum + time '11:00' + pg_temp.draw(o.workspace, o.n, 37, 25200) * interval '1 second'
    + pg_temp.draw(o.workspace, o.n, 38, 1000000) * interval '1 microsecond') at time zone 'Europe/Amsterdam' as signed_at,
  (o.entered + time '08:00' + pg_temp.draw(o.workspace, o.n, 39, 32400) * interval '1 second'
    + pg_temp.draw(o.workspace, o.n, 40, 1000000) * interval '1 microsecond') at time zone 'Europe/Amsterdam' as entered_at) moments
order by o.workspace, o.n;
