import { customerPlain } from '../../demo/seed/plain.js';
import { sizesOf } from '../../demo/seed/sizes.js';
import { imagesIn } from '../support/images.js';
import { pages, records } from '../support/lists.js';
import { clonedRows } from '../support/template.js';
import { gatewayTest } from '../support/workspace.js';

const test = gatewayTest();

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

/** Every string in a value, at any depth. */
function stringsIn(value: unknown): string[] {
  if (typeof value === 'string') return [value];
  return typeof value === 'object' && value !== null ? Object.values(value).flatMap(stringsIn) : [];
}

test.serial('no log entry shows a customer value, an encrypted value or an image', async (t) => {
  const { client, database } = t.context;
  const shown = new Set<string>();
  for await (const { data, reply } of pages<Entry>(client, '/logboeken?perPage=1000')) {
    t.deepEqual(imagesIn(reply.text), []);
    t.false(/enc:v/i.test(reply.text));
    for (const text of data.flatMap(({ wijzigingen }) => stringsIn(wijzigingen))) shown.add(text);
  }
  t.true(shown.size > 100);
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

test.serial(
  'a change to personal data or a signature shows the field and that it is shielded, nothing more',
  async (t) => {
    const all = await records<Entry>(t.context.client, '/logboeken?perPage=1000');
    const shielded = new Map<string, number>();
    for (const { entity, wijzigingen } of all) {
      for (const change of wijzigingen) {
        if (!('afgeschermd' in change)) continue;
        t.deepEqual(change, { veld: change.veld, afgeschermd: true });
        shielded.set(`${entity}.${change.veld}`, (shielded.get(`${entity}.${change.veld}`) ?? 0) + 1);
      }
    }
    for (const field of [
      'klant.naam',
      'klant.straat',
      'klant.kvk_nummer',
      'klant.telefoon',
      'klant.email',
      'klant.adres',
    ]) {
      t.true(shielded.has(field), field);
    }
    for (const field of ['werkbon.handtekening', 'werkbon.opmerking', 'installatie.klant_naam'])
      t.true(shielded.has(field), field);
    t.false(
      all.some(({ entity, wijzigingen }) => entity === 'klant' && wijzigingen.some(({ afgeschermd }) => !afgeschermd)),
    );
  },
);

test.serial('every other change is shown as it is stored', async (t) => {
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
    t.deepEqual(
      wijzigingen.map(({ veld }) => veld),
      was.map(({ veld }) => veld),
    );
    for (const [i, change] of wijzigingen.entries()) {
      if (change.afgeschermd) shielded++;
      else t.deepEqual(change, was[i] as Change);
      if (!change.afgeschermd) intact++;
      else t.regex(change.veld, /^(handtekening|opmerking|klant_naam|gegevens)$/);
    }
  }
  t.true(intact > 1500 && shielded > 50, `${intact} intact, ${shielded} shielded`);
});

test.serial('a logged object is shielded whole, whatever its members are', async (t) => {
  const all = await records<Entry>(t.context.client, '/logboeken?perPage=1000&entity=werkbon');
  const objects = all.flatMap(({ wijzigingen }) => wijzigingen.filter(({ veld }) => veld === 'gegevens'));
  t.true(objects.length > 10);
  for (const change of objects) t.deepEqual(change, { veld: 'gegevens', afgeschermd: true });
});

test.serial('the actor, the entity and the moment of an entry are those that are stored', async (t) => {
  const { client, database } = t.context;
  const { rows } = await database.primary.query<object>(
    `select l.id::text, entiteit as entity, entiteit_id as "entityId", actie,
       jsonb_build_object('type', actor_type, 'id', actor_id) as actor,
       to_char(tijdstip at time zone 'UTC', 'YYYY-MM-DD"T"HH24:MI:SS.MS"Z"') as tijdstip
     from app.logboeken l where workspace_id = $1 order by l.tijdstip, l.id`,
    [database.workspaces[0]?.id],
  );
  const shown = await records<{ wijzigingen?: unknown }>(client, '/logboeken?perPage=1000');
  t.deepEqual(
    shown.map(({ wijzigingen: _, ...entry }) => entry),
    rows,
  );
});

const person = { naam: 'GEHEIM', gsm: '0612345678' };
const json = JSON.stringify(person);
const hidden: readonly (readonly [entity: string, veld: string, value: unknown])[] = [
  ...[
    'contactgegevens',
    'naw',
    'gsm',
    'relatie',
    'adres.straat',
    '/adres/straat',
    'contacten/0/gsm',
    'gegevens',
  ].flatMap((veld) =>
    ['werkbon', 'installatie', 'klant', 'gebruiker'].map((entity) => [entity, veld, 'GEHEIM'] as const),
  ),
  ['factuur', 'status', 'GEHEIM'],
  ['werkbon', 'omschrijving', person],
  ['werkbon', 'status', [['GEHEIM']]],
  ['werkbon', 'handelingen', [{ omschrijving: 'GEHEIM' }]],
  ['werkbon', 'omschrijving', json],
  ['werkbon', 'omschrijving', ` \n${json}`],
  ['installatie', 'interne_notities', JSON.stringify(json)],
  ['installatie', 'locatie', encodeURIComponent(json)],
  ['installatie', 'naam', 'naam=GEHEIM&gsm=0612345678'],
  ['installatie', 'naam', '<naam>GEHEIM</naam>'],
  ['installatie', 'merk', 'GEHEIM;Kerkstraat 12;Utrecht'],
];
const shownFields: readonly (readonly [entity: string, veld: string, value: unknown])[] = [
  ...['nummer', 'status', 'omschrijving', 'datum', 'ondertekend_op', 'ondertekendOp', 'installatie_id'].map(
    (veld) => ['werkbon', veld, 'afgerond'] as const,
  ),
  ...['naam', 'merk', 'type', 'locatie', 'serienummer', 'koudemiddel', 'vulling_kg', 'vullingKg', 'klant_id'].map(
    (veld) => ['installatie', veld, 12.5] as const,
  ),
  ...['interne_notities', 'lmra_verplicht', 'customerId', 'omschrijving', 'bouwjaar', 'version', 'updated_at'].map(
    (veld) => ['installatie', veld, true] as const,
  ),
  ['klant', 'status', 'actief'],
  ['klant', 'updated_at', '2021-05-10T14:03:12.120Z'],
  ['gebruiker', 'rol', 'owner'],
];

test.serial('the values of listed fields are shown, and of every other field only its name', async (t) => {
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
  const values = ['jansen@bakkerij.nl', 'Jan Jansen', 'Jansen', '06-12345678', '1234 AB'];
  const { wijzigingen } = await logged(
    'werkbon',
    values.map((veld) => ({ veld, oud: null, nieuw: 1 })),
  );
  t.deepEqual(wijzigingen, Array(values.length).fill({ veld: '(afgeschermd)', afgeschermd: true }) as Change[]);
});
