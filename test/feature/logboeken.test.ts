import { customerPlain } from '../../demo/seed/plain.js';
import { sizesOf } from '../../demo/seed/sizes.js';
import { imagesIn } from '../support/images.js';
import { pages, records } from '../support/lists.js';
import { clonedRows } from '../support/template.js';
import { gatewayTest } from '../support/workspace.js';

const test = gatewayTest().serial;

interface Change {
  veld: string;
  oud?: unknown;
  nieuw?: unknown;
  afgeschermd?: true;
}
interface Entry {
  id: string;
  entity: string;
  wijzigingen: Change[];
}

function stringsIn(value: unknown): string[] {
  if (typeof value === 'string') return [value];
  return typeof value === 'object' && value !== null ? Object.values(value).flatMap(stringsIn) : [];
}

test('no log entry shows a customer value, an encrypted value or an image', async (t) => {
  const { client, database } = t.context;
  const shown = new Set<string>();
  for await (const { data, reply } of pages<Entry>(client, '/logboeken?perPage=1000')) {
    t.deepEqual(imagesIn(reply.text), []);
    t.false(/enc:v/i.test(reply.text));
    for (const text of data.flatMap(({ wijzigingen }) => stringsIn(wijzigingen))) shown.add(text);
  }
  t.true(shown.size > 40);
  const customers = Array.from({ length: sizesOf(clonedRows.first).customers }, (_, i) => customerPlain(0, i + 1));
  const plain = customers.flatMap(({ naam, kvkNummer, email, telefoon }) => [naam, kvkNummer, email, telefoon]);
  const { rows } = await database.primary.query<Record<string, string | null>>(
    'select naam, straat, kvk_nummer, telefoon, email from app.klanten',
  );
  const sealed = rows.flatMap((row) => Object.values(row)).map((value) => value?.slice(-24));
  const logged = ['06-12345678', '06-87654321', 'Kerkstraat', '(oud)'];
  const secrets = new Set([...plain, ...sealed, ...logged].filter((value) => value != null));
  for (const text of shown) for (const secret of secrets) if (text.includes(secret)) t.fail(`${text} has ${secret}`);
});

test('a change to personal data or a signature shows the field and that it is shielded, nothing more', async (t) => {
  const all = await records<Entry>(t.context.client, '/logboeken?perPage=1000');
  const shielded = new Map<string, number>();
  for (const { entity, wijzigingen } of all) {
    for (const change of wijzigingen) {
      if (!('afgeschermd' in change)) continue;
      t.deepEqual(change, { veld: change.veld, afgeschermd: true });
      shielded.set(`${entity}.${change.veld}`, (shielded.get(`${entity}.${change.veld}`) ?? 0) + 1);
    }
  }
  for (const field of 'klant.naam klant.straat klant.kvk_nummer klant.telefoon klant.email klant.adres'.split(' '))
    t.true(shielded.has(field), field);
  for (const field of ['werkbon.handtekening', 'werkbon.opmerking', 'installatie.klant_naam'])
    t.true(shielded.has(field), field);
  t.false(
    all.some(({ entity, wijzigingen }) => entity === 'klant' && wijzigingen.some(({ afgeschermd }) => !afgeschermd)),
  );
});

test('every other change is shown as it is stored, except of a text that the definitions do not show in the log', async (t) => {
  const { client, database } = t.context;
  const { rows } = await database.primary.query<{ id: string; wijzigingen: Change[] }>(
    `select id::text, wijzigingen from app.logboeken where workspace_id = $1 and entiteit <> 'klant'`,
    [database.workspaces[0]?.id],
  );
  const stored = new Map(rows.map(({ id, wijzigingen }) => [id, wijzigingen]));
  const all = await records<Entry>(client, '/logboeken?perPage=1000');
  let intact = 0;
  let shielded = 0;
  for (const { id, wijzigingen } of all.filter(({ entity }) => entity !== 'klant')) {
    const was = stored.get(id) as Change[];
    const names = wijzigingen.map(({ veld }) => veld);
    const before = was.map(({ veld }) => veld);
    t.deepEqual(names, before);
    for (const [i, change] of wijzigingen.entries()) {
      if (change.afgeschermd) shielded++;
      else t.deepEqual(change, was[i] as Change);
      if (!change.afgeschermd) intact++;
      else t.regex(change.veld, /^(handtekening|opmerking|klant_naam|gegevens|naam|locatie|omschrijving)$/);
    }
  }
  t.true(intact > 1500 && shielded > 50, `${intact} intact, ${shielded} shielded`);
});

test('a logged object is shielded whole, whatever its members are', async (t) => {
  const all = await records<Entry>(t.context.client, '/logboeken?perPage=1000&entity=werkbon');
  const objects = all.flatMap(({ wijzigingen }) => wijzigingen.filter(({ veld }) => veld === 'gegevens'));
  t.true(objects.length > 10);
  for (const change of objects) t.deepEqual(change, { veld: 'gegevens', afgeschermd: true });
});

test('the actor, the entity and the moment of an entry are those that are stored', async (t) => {
  const { client, database } = t.context;
  const { rows } = await database.primary.query<object>(
    `select l.id::text, entiteit as entity, entiteit_id as "entityId", actie,
       jsonb_build_object('type', actor_type, 'id', actor_id) as actor,
       to_char(tijdstip at time zone 'UTC', 'YYYY-MM-DD"T"HH24:MI:SS.MS"Z"') as tijdstip
     from app.logboeken l where workspace_id = $1 order by l.tijdstip, l.id`,
    [database.workspaces[0]?.id],
  );
  const shown = await records<{ wijzigingen?: unknown }>(client, '/logboeken?perPage=1000');
  const entries = shown.map(({ wijzigingen: _, ...entry }) => entry);
  t.deepEqual(entries, rows);
});

const uuid = '5f0d7c1e-8a43-4c52-9b1d-3f6e2a9c7d10';
const moment = '2021-05-10T14:03:12.120Z';
const picture = `data:image/png;base64,GEHEIM${'A'.repeat(300)}`;
const fieldsOf = (entity: string, names: string, value: unknown) =>
  names.split(' ').map((veld) => [entity, veld, value] as const);
const hidden: readonly (readonly [entity: string, veld: string, value: unknown])[] = [
  ...['werkbon', 'installatie', 'klant', 'gebruiker'].flatMap((entity) =>
    fieldsOf(entity, 'contactgegevens klant_naam e-mail telefoon adres handtekening gegevens', 'GEHEIM'),
  ),
  ...fieldsOf('factuur', 'status datum', 'GEHEIM'),
  // Prose that users type, whatever it holds, and a text in the place of another value.
  ...fieldsOf('werkbon', 'omschrijving datum ondertekend_op installatie_id installationId', 'Jan GEHEIM, Kerkstraat'),
  ...fieldsOf('installatie', 'naam omschrijving locatie interne_notities', '1234-56-782 GEHEIM'),
  ...fieldsOf('installatie', 'vulling_kg bouwjaar lmra_verplicht customerId version updated_at', '06-12345678 GEHEIM'),
  ['installatie', 'omschrijving', 612345678],
  ...[{ naam: 'GEHEIM' }, [['GEHEIM']], picture].map((value) => ['werkbon', 'status', value] as const),
];
const shownFields: typeof hidden = [
  ...fieldsOf('werkbon', 'nummer status', 'in_uitvoering'),
  ...fieldsOf('werkbon', 'datum', '2026-01-31'),
  ...fieldsOf('werkbon', 'ondertekend_op ondertekendOp updated_at', moment),
  ...fieldsOf('werkbon', 'installatie_id installationId installatieId', uuid),
  ...fieldsOf('installatie', 'merk type serienummer koudemiddel', 'ZB29KCE'),
  ...fieldsOf('installatie', 'vulling_kg vullingKg bouwjaar version', 12.5),
  ...fieldsOf('installatie', 'lmra_verplicht', true),
  ...fieldsOf('installatie', 'klant_id customerId workspaceId', uuid),
  ['klant', 'status', 'actief'],
  ['klant', 'updated_at', moment],
  ['gebruiker', 'rol', 'owner'],
];

test('the values of listed fields are shown, and of every other field only its name', async (t) => {
  const { client, database } = t.context;
  const logged = async (entity: string, changes: readonly object[]): Promise<Entry> => {
    const { rows } = await database.primary.query<{ id: string }>(
      `insert into app.logboeken (workspace_id, entiteit, entiteit_id, actie, actor_type, wijzigingen)
       values ($1, $2, gen_random_uuid()::text, 'gewijzigd', 'systeem', $3) returning entiteit_id as id`,
      [database.workspaces[0]?.id, entity, JSON.stringify(changes)],
    );
    await database.caughtUp();
    const [entry] = await records<Entry>(client, `/logboeken?entityId=${rows[0]?.id}`);
    return entry as Entry;
  };
  for (const entity of ['werkbon', 'installatie', 'klant', 'gebruiker', 'factuur']) {
    const of = (cases: typeof hidden) => cases.filter((each) => each[0] === entity);
    const stored = [...of(hidden), ...of(shownFields)].flatMap(([, veld, value]) => [
      { veld, oud: null, nieuw: value },
      { veld, oud: value, nieuw: null },
    ]);
    const shielded = of(hidden).flatMap(([, veld]) => [veld, veld].map((name) => ({ veld: name, afgeschermd: true })));
    const { wijzigingen } = await logged(entity, stored);
    t.deepEqual(wijzigingen as object[], [...shielded, ...stored.slice(shielded.length)], entity);
    t.false(JSON.stringify(wijzigingen).includes('GEHEIM'));
  }
  const values = ['jansen@bakkerij.nl', 'Jan Jansen', 'jan.jansen', 'jansen', '06-12345678', '1234 AB', 'naw'];
  const { wijzigingen } = await logged(
    'werkbon',
    values.map((veld) => ({ veld, oud: null, nieuw: 1 })),
  );
  t.deepEqual(wijzigingen, Array(values.length).fill({ veld: '(afgeschermd)', afgeschermd: true }) as Change[]);
});

// One at a time: the client reads and checks large pages in the process that serves them.

interface Werkbon {
  id: string;
  handelingen: { id: string; code: string; omschrijving: string | null; resultaat: string | null; gegevens: unknown }[];
  uren: { id: string; medewerker: string; datum: string; van: string; tot: string; uren: number }[];
}

/** Sixty characters of an image in base64 that are not just white paper. */
function tellingPiece(image: string): string {
  for (let at = 200; at < image.length; at += 60) {
    const piece = image.slice(at, at + 60);
    if (new Set(piece).size > 8) return piece;
  }
  throw new Error('the image is blank');
}

for (const workspace of [0, 1]) {
  test(`no work order of workspace ${workspace + 1} holds an image, nowhere`, async (t) => {
    const { client, database } = t.context;
    const { rows: signatures } = await database.primary.query<{ image: string }>(
      'select distinct handtekening as image from app.werkbonnen where handtekening is not null',
    );
    const pieces = signatures.map(({ image }) => tellingPiece(image));
    t.true(pieces.length >= 40);
    const token = await database.token({ workspace });
    for await (const { reply } of pages(client, '/werkbonnen?perPage=500', 'cursor', { token })) {
      t.deepEqual(imagesIn(reply.text), []);
      for (const piece of pieces) t.false(reply.text.includes(piece));
    }
  });
}

test('the detector that finds no image does find those that are in the tables', async (t) => {
  const { rows } = await t.context.database.primary.query<{ signed: string }>(
    `select handtekening as signed from app.werkbonnen where handtekening is not null limit 20`,
  );
  for (const { signed } of rows) t.true(imagesIn(JSON.stringify(signed)).length > 0);
  const { rows: nested } = await t.context.database.primary.query<{ gegevens: unknown }>(
    `select gegevens from app.werkbon_handelingen where gegevens::text ~ 'iVBORw0KGgo|/9j/'`,
  );
  t.true(nested.length > 100);
  for (const { gegevens } of nested) t.true(imagesIn(JSON.stringify(gegevens)).length > 0);
});

test('a detail has no image either', async (t) => {
  const { client, database } = t.context;
  const { rows } = await database.primary.query<{ id: string }>(
    `select distinct werkbon_id as id from app.werkbon_handelingen
     where workspace_id = $1 and gegevens::text ~ 'iVBORw0KGgo|/9j/' limit 60`,
    [database.workspaces[0]?.id],
  );
  t.true(rows.length > 40);
  for (const { id } of rows) t.deepEqual(imagesIn((await client.get(`/werkbonnen/${id}`)).text), []);
});

test('actions are those of the tables, in their order, with what is measured unharmed', async (t) => {
  const { client, database } = t.context;
  const { rows } = await database.primary.query<{ id: string; handelingen: Werkbon['handelingen'] }>(
    `select w.id::text, coalesce(jsonb_agg(jsonb_build_object('id', h.id, 'code', h.code, 'omschrijving', h.omschrijving,
         'resultaat', h.resultaat, 'gegevens', h.gegevens) order by h.volgorde) filter (where h.id is not null), '[]') as handelingen
     from app.werkbonnen w left join app.werkbon_handelingen h on h.werkbon_id = w.id where w.workspace_id = $1 group by 1`,
    [database.workspaces[0]?.id],
  );
  const stored = new Map(rows.map(({ id, handelingen }) => [id, handelingen]));
  let empty = 0;
  let stripped = 0;
  for (const { id, handelingen } of await records<Werkbon>(client, '/werkbonnen?perPage=1000')) {
    const wanted = stored.get(id) as Werkbon['handelingen'];
    t.is(handelingen.length, wanted.length);
    if (handelingen.length === 0) empty++;
    for (const [i, shown] of handelingen.entries()) {
      const { gegevens, ...rest } = shown;
      const { gegevens: asStored, ...restStored } = wanted[i] as Werkbon['handelingen'][0];
      t.deepEqual(rest, restStored);
      if (/handtekening|paraaf|signature|iVBORw0KGgo|\/9j\//.test(JSON.stringify(asStored))) stripped++;
      else t.deepEqual(gegevens, asStored);
    }
  }
  t.true(empty > 0 && stripped > 100);
});

test('values beside a signature are shown to the last digit', async (t) => {
  const { text } = await t.context.client.get('/werkbonnen?perPage=3000');
  for (const number of ['"teller":9007199254740993', '"bedrag":12.50', '"kg":0.500', '"uur":1.10', '"meting":21.50'])
    t.true(text.includes(number), number);
  t.notRegex(text, /"(?:handtekening|handtekeningKlant|paraaf|signature)"/);
});

test('hours are those of the table, in their order, as numbers without loss', async (t) => {
  const { client, database } = t.context;
  const { rows } = await database.primary.query<{ id: string; uren: Werkbon['uren'] }>(
    `select w.id::text, coalesce(jsonb_agg(jsonb_build_object('id', u.id, 'medewerker', u.medewerker, 'datum', u.datum,
         'van', to_char(u.van, 'HH24:MI'), 'tot', to_char(u.tot, 'HH24:MI'), 'uren', u.uren) order by u.datum, u.van, u.id)
         filter (where u.id is not null), '[]') as uren
     from app.werkbonnen w left join app.werkbon_uren u on u.werkbon_id = w.id where w.workspace_id = $1 group by 1`,
    [database.workspaces[0]?.id],
  );
  const stored = new Map(rows.map(({ id, uren }) => [id, uren]));
  for (const { id, uren } of await records<Werkbon>(client, '/werkbonnen?perPage=1000'))
    t.deepEqual(uren, stored.get(id) as Werkbon['uren']);
  const { rows: amounts } = await database.primary.query<{ uren: string }>(
    'select distinct uren::text from app.werkbon_uren',
  );
  const { text } = await client.get('/werkbonnen?perPage=3000');
  const shown = new Set([...text.matchAll(/"uren":([\d.]+)/g)].map(([, amount]) => amount));
  for (const { uren } of amounts) t.true(shown.has(uren), uren);
});

test('an image put anywhere in a work order is not shown, nor a member that is not listed, and an ordinary long text is', async (t) => {
  const { client, database } = t.context;
  const { rows } = await database.primary.query<{ id: string; image: string }>(
    `select id, handtekening as image from app.werkbonnen where workspace_id = $1 and handtekening is not null limit 1`,
    [database.workspaces[0]?.id],
  );
  const [{ id, image } = { id: '', image: '' }] = rows;
  const long = 'Koelcel 3 op temperatuur gebracht; ventilator vervangen. '.repeat(80);
  const hidden = {
    opmerking: long,
    waarden: [[['x', image.slice(0, 3000)]]],
    notitie: `zie data:image/png;base64,${image}`,
    klantnaam: 'Jansen',
    druk: { punten: [1, 2] },
  };
  await database.primary.query('update app.werkbonnen set omschrijving = $2 where id = $1', [id, `Foto: ${image}`]);
  await database.primary.query('update app.werkbon_handelingen set gegevens = $2 where werkbon_id = $1', [id, hidden]);
  await database.caughtUp();
  const reply = await client.get(`/werkbonnen/${id}`);
  t.deepEqual(imagesIn(reply.text), []);
  t.false(reply.text.includes(tellingPiece(image)));
  const [shown] = reply.json<Werkbon>().handelingen;
  t.deepEqual(shown?.gegevens, { opmerking: long, waarden: [[['x', null]]], notitie: null, druk: {} });
});
