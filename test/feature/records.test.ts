import { type ListName, records } from '../support/lists.js';
import { gatewayTest } from '../support/workspace.js';

const test = gatewayTest();
// One at a time: the client reads and checks large pages in the process that serves them.
type Json = Record<string, unknown>;

/** The members of each record, in order. */
const members: Readonly<Record<ListName, string>> = {
  klanten: 'id naam adres kvkNummer createdAt updatedAt',
  installaties:
    'id customerId naam omschrijving locatie merk type serienummer bouwjaar inbedrijfstelling koudemiddel koudemiddelGwp vullingKg interneNotities lmraVerplicht version createdAt updatedAt',
  werkbonnen: 'id installationId nummer datum status omschrijving handelingen uren ondertekendOp createdAt updatedAt',
  logboeken: 'id entity entityId actie actor tijdstip wijzigingen',
};
const timestamp = /^\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d{3}Z$/;

for (const [list, names] of Object.entries(members)) {
  test.serial(`${list}: every record has all its members, null where there is no value, and no other`, async (t) => {
    const all = await records<Json>(t.context.client, `/${list}?perPage=1000`);
    for (const { decodeErrors: _, ...record } of all) t.is(Object.keys(record).join(' '), names);
    for (const record of all) {
      for (const [name, value] of Object.entries(record)) {
        if (/At$|Op$|tijdstip/.test(name) && value !== null) t.regex(value as string, timestamp);
        if (/^(datum|inbedrijfstelling)$/.test(name) && value !== null) t.regex(value as string, /^\d{4}-\d\d-\d\d$/);
        if (/^id$|Id$/.test(name)) t.is(typeof value, 'string');
      }
    }
  });
}

test.serial('the parts of a record have all their members as well', async (t) => {
  const { client } = t.context;
  const partsOf = (all: Json[], name: string) =>
    new Set(all.flatMap((r) => [r[name]].flat()).map((p) => Object.keys(p as Json).join(' ')));
  const [klanten, werkbonnen, logboeken] = [
    await records<Json>(client, '/klanten?perPage=1000'),
    await records<Json>(client, '/werkbonnen?perPage=1000'),
    await records<Json>(client, '/logboeken?perPage=1000'),
  ];
  t.deepEqual([...partsOf(klanten, 'adres')], ['straat huisnummer toevoeging postcode plaats land']);
  t.deepEqual([...partsOf(werkbonnen, 'handelingen')], ['id code omschrijving resultaat gegevens']);
  t.deepEqual([...partsOf(werkbonnen, 'uren')], ['id medewerker datum van tot uren']);
  t.deepEqual([...partsOf(logboeken, 'actor')], ['type id']);
  t.deepEqual([...partsOf(logboeken, 'wijzigingen')].sort(), ['veld afgeschermd', 'veld oud nieuw']);
});

test.serial('installations are those of the table, value by value', async (t) => {
  const { client, database } = t.context;
  const { rows } = await database.primary.query<Json>(
    `select id, klant_id as "customerId", naam, omschrijving, locatie, merk, type, serienummer, bouwjaar,
       inbedrijfstelling::text, koudemiddel, koudemiddel_gwp as "koudemiddelGwp", vulling_kg::float8 as "vullingKg",
       interne_notities as "interneNotities", lmra_verplicht as "lmraVerplicht", version::int,
       to_char(created_at at time zone 'UTC', 'YYYY-MM-DD"T"HH24:MI:SS.MS"Z"') as "createdAt",
       to_char(updated_at at time zone 'UTC', 'YYYY-MM-DD"T"HH24:MI:SS.MS"Z"') as "updatedAt"
     from probe.installaties i where workspace_id = $1 order by i.created_at, i.id`,
    [database.workspaces[0]?.id],
  );
  t.deepEqual(await records(client, '/installaties?perPage=1000'), rows);
});

test.serial('work orders are those of the table, but for their signature, to the last control character', async (t) => {
  const { client, database } = t.context;
  const { rows } = await database.primary.query<Json>(
    `select id, installatie_id as "installationId", nummer, datum::text, status, omschrijving,
       to_char(ondertekend_op at time zone 'UTC', 'YYYY-MM-DD"T"HH24:MI:SS.MS"Z"') as "ondertekendOp",
       to_char(created_at at time zone 'UTC', 'YYYY-MM-DD"T"HH24:MI:SS.MS"Z"') as "createdAt",
       to_char(updated_at at time zone 'UTC', 'YYYY-MM-DD"T"HH24:MI:SS.MS"Z"') as "updatedAt"
     from probe.werkbonnen w where workspace_id = $1 order by w.datum, w.id`,
    [database.workspaces[0]?.id],
  );
  const shown = await records<Json>(client, '/werkbonnen?perPage=1000');
  t.deepEqual(
    shown.map(({ handelingen: _, uren: __, ...order }) => order),
    rows,
  );
});

test.serial('amounts are JSON numbers that lose nothing, however many digits they have', async (t) => {
  const { client, database } = t.context;
  const { rows } = await database.primary.query<{ id: string; kg: string }>(
    `with picked as (select id, row_number() over () as n from probe.installaties where workspace_id = $1 limit 4)
     update probe.installaties i set vulling_kg = (array[9999999.999, 0, 0.001, 1234567.100])[picked.n]
     from picked where i.id = picked.id returning i.id, vulling_kg::text as kg`,
    [database.workspaces[1]?.id],
  );
  const token = await database.token({ workspace: 1 });
  t.is(rows.length, 4);
  await database.caughtUp();
  for (const { id, kg } of rows) {
    const { text } = await client.get(`/installaties/${id}`, { token });
    t.is(/"vullingKg":([^,]+),/.exec(text)?.[1], kg);
  }
  const { text } = await client.get('/installaties?perPage=100', { token });
  const all = await database.primary.query<{ kg: string | null }>(
    'select vulling_kg::text as kg from probe.installaties i where workspace_id = $1 order by i.created_at, i.id',
    [database.workspaces[1]?.id],
  );
  t.deepEqual(
    [...text.matchAll(/"vullingKg":([^,]+),/g)].map(([, kg]) => kg),
    all.rows.map(({ kg }) => kg ?? 'null'),
  );
});

test.serial('microseconds are cut, not rounded, and an infinite moment does not break the record', async (t) => {
  const { client, database } = t.context;
  const { rows } = await database.primary.query<{ id: string }>(
    `insert into probe.klanten (id, workspace_id, created_at, updated_at) values
       (probe.new_id(), $1, '2026-03-29 00:59:59.999999+00', '2026-03-29 02:00:00+02'),
       (probe.new_id(), $1, '2026-03-29 01:00:00.0001+00', 'infinity') returning id`,
    [database.workspaces[1]?.id],
  );
  await database.caughtUp();
  const token = await database.token({ workspace: 1 });
  const read = async (i: number) =>
    (await client.get(`/klanten/${rows[i]?.id}`, { token, unchecked: true })).json<Json>();
  t.like(await read(0), { createdAt: '2026-03-29T00:59:59.999Z', updatedAt: '2026-03-29T00:00:00.000Z' });
  t.like(await read(1), { createdAt: '2026-03-29T01:00:00.000Z', updatedAt: null });
});
