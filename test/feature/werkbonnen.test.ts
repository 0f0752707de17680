import { imagesIn } from '../support/images.js';
import { pages, records } from '../support/lists.js';
import { gatewayTest } from '../support/workspace.js';

const test = gatewayTest();
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
  test.serial(`no work order of workspace ${workspace + 1} holds an image, nowhere`, async (t) => {
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

test.serial('the detector that finds no image does find those that are in the tables', async (t) => {
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

test.serial('a detail has no image either', async (t) => {
  const { client, database } = t.context;
  const { rows } = await database.primary.query<{ id: string }>(
    `select distinct werkbon_id as id from app.werkbon_handelingen
     where workspace_id = $1 and gegevens::text ~ 'iVBORw0KGgo|/9j/' limit 60`,
    [database.workspaces[0]?.id],
  );
  t.true(rows.length > 40);
  for (const { id } of rows) t.deepEqual(imagesIn((await client.get(`/werkbonnen/${id}`)).text), []);
});

test.serial('actions are those of the tables, in their order, with what is measured unharmed', async (t) => {
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

test.serial('values beside a signature are shown to the last digit', async (t) => {
  const { text } = await t.context.client.get('/werkbonnen?perPage=3000');
  for (const number of [
    '"teller": 9007199254740993',
    '"bedrag": 12.50',
    '"kg": 0.500',
    '"uur": 1.10',
    '"meting": 21.50',
  ]) {
    t.true(text.includes(number), number);
  }
  const shown = text.match(/"(?:handtekening|handtekeningKlant|paraaf|signature)": ?[^,}\]]*/g) ?? [];
  t.true(shown.length > 20);
  for (const member of new Set(shown)) t.regex(member, /: ?null$/);
});

test.serial('hours are those of the table, in their order, as numbers without loss', async (t) => {
  const { client, database } = t.context;
  const { rows } = await database.primary.query<{ id: string; uren: Werkbon['uren'] }>(
    `select w.id::text, coalesce(jsonb_agg(jsonb_build_object('id', u.id, 'medewerker', u.medewerker, 'datum', u.datum,
         'van', to_char(u.van, 'HH24:MI'), 'tot', to_char(u.tot, 'HH24:MI'), 'uren', u.uren) order by u.datum, u.van, u.id)
         filter (where u.id is not null), '[]') as uren
     from app.werkbonnen w left join app.werkbon_uren u on u.werkbon_id = w.id where w.workspace_id = $1 group by 1`,
    [database.workspaces[0]?.id],
  );
  const stored = new Map(rows.map(({ id, uren }) => [id, uren]));
  for (const { id, uren } of await records<Werkbon>(client, '/werkbonnen?perPage=1000')) {
    t.deepEqual(uren, stored.get(id) as Werkbon['uren']);
  }
  const { rows: amounts } = await database.primary.query<{ uren: string }>(
    'select distinct uren::text from app.werkbon_uren',
  );
  const { text } = await client.get('/werkbonnen?perPage=3000');
  const shown = new Set([...text.matchAll(/"uren":([\d.]+)/g)].map(([, amount]) => amount));
  for (const { uren } of amounts) t.true(shown.has(uren), uren);
});

test.serial('an image put anywhere in a work order is not shown, and an ordinary long text is', async (t) => {
  const { client, database } = t.context;
  const { rows } = await database.primary.query<{ id: string; image: string }>(
    `select id, handtekening as image from app.werkbonnen where workspace_id = $1 and handtekening is not null limit 1`,
    [database.workspaces[0]?.id],
  );
  const [{ id, image } = { id: '', image: '' }] = rows;
  const long = 'Koelcel 3 op temperatuur gebracht; ventilator vervangen. '.repeat(80);
  const hidden = {
    lang: long,
    diep: [[[{ x: { y: [image.slice(0, 3000)] } }]]],
    tekst: `zie data:image/png;base64,${image}`,
  };
  await database.primary.query('update app.werkbonnen set omschrijving = $2 where id = $1', [id, `Foto: ${image}`]);
  await database.primary.query('update app.werkbon_handelingen set gegevens = $2 where werkbon_id = $1', [id, hidden]);
  await database.caughtUp();
  const reply = await client.get(`/werkbonnen/${id}`);
  t.deepEqual(imagesIn(reply.text), []);
  t.false(reply.text.includes(tellingPiece(image)));
  const [shown] = reply.json<Werkbon>().handelingen;
  t.deepEqual(shown?.gegevens, { lang: long, diep: [[[{ x: { y: [null] } }]]], tekst: null });
});
