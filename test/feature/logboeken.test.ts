import { customerPlain } from '../../src/demo/seed/plain.js';
import { sizesOf } from '../../src/demo/seed/sizes.js';
import { imagesIn } from '../support/images.js';
import { pages, records } from '../support/lists.js';
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
  const customers = Array.from({ length: sizesOf('small').customers }, (_, i) => customerPlain(0, i + 1));
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
      else if (change.veld !== 'gegevens') t.deepEqual(change, was[i] as Change);
      if (!change.afgeschermd) intact++;
      else t.regex(change.veld, /handtekening|opmerking|klant_naam|omschrijving|naam/);
    }
  }
  t.true(intact > 3000 && shielded > 50, `${intact} intact, ${shielded} shielded`);
});

test.serial(
  'a signature inside a logged value is taken out and the rest of the value stays, to the last digit',
  async (t) => {
    const { client } = t.context;
    const { text } = await client.get('/logboeken?perPage=10000&entity=werkbon');
    const diffs = text.match(/\{"veld":"gegevens"[^}]*\}[^}]*\}\}/g) ?? [];
    t.true(diffs.length > 10);
    for (const diff of diffs) {
      t.regex(diff, /"druk": 12\.50/);
      t.regex(diff, /"druk": 12\.75/);
      t.regex(diff, /"paraaf": null/);
      t.regex(diff, /"teller": 9007199254740993/);
    }
  },
);

test.serial('what an entry says of who, what and when is what is stored', async (t) => {
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
