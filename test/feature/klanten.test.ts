import { corruptCustomers } from '../../src/demo/seed/customers.js';
import { customerPlain } from '../../src/demo/seed/plain.js';
import { secondSizesOf, sizesOf } from '../../src/demo/seed/sizes.js';
import { records } from '../support/lists.js';
import { gatewayTest } from '../support/workspace.js';

const test = gatewayTest();

interface Klant {
  id: string;
  naam: string | null;
  adres: Record<string, string | null>;
  kvkNummer: string | null;
  createdAt: string;
  updatedAt: string;
  decodeErrors?: string[];
}

/** A seeded customer as the API shows it. */
function expected(workspace: number, n: number): Omit<Klant, 'createdAt' | 'updatedAt'> {
  const { id, naam, adres, kvkNummer } = customerPlain(workspace, n);
  const klant: Omit<Klant, 'createdAt' | 'updatedAt'> = { id, naam, adres: { ...adres }, kvkNummer };
  const damage = corruptCustomers.find((each) => workspace === 0 && each.n === n);
  if (damage === undefined) return klant;
  if (damage.pointer === '/kvkNummer') klant.kvkNummer = null;
  else klant.adres[damage.pointer.replace('/adres/', '')] = null;
  return { ...klant, decodeErrors: [damage.pointer] };
}

for (const workspace of [0, 1]) {
  test(`every customer of workspace ${workspace + 1} comes out readable and equal to what the seed put in`, async (t) => {
    const { client, database } = t.context;
    const token = await database.token({ workspace });
    const small = sizesOf('small');
    const count = (workspace === 0 ? small : secondSizesOf(small)).customers;
    const wanted = new Map(Array.from({ length: count }, (_, i) => expected(workspace, i + 1)).map((k) => [k.id, k]));
    const found = await records<Klant>(client, '/klanten?perPage=250', { token });
    t.is(found.length, count);
    for (const { createdAt: _, updatedAt: __, ...klant } of found)
      t.deepEqual(klant, wanted.get(klant.id) as typeof klant);
  });
}

test('the seed has values of every key and version, names beyond ASCII and numbers with a leading zero', async (t) => {
  const { client, database } = t.context;
  const { rows } = await database.primary.query<{ seal: string }>(
    `select distinct left(naam, 9) as seal from app.klanten where naam is not null order by 1`,
  );
  t.deepEqual(
    rows.map(({ seal }) => seal),
    ['enc:v1:k1', 'enc:v2:k1', 'enc:v2:k2', 'enc:v2:k3'],
  );
  const found = await records<Klant>(client, '/klanten?perPage=1000');
  t.true(found.some(({ naam }) => /[^\0-\x7f]/.test(naam ?? '')));
  t.true(found.some(({ kvkNummer }) => kvkNummer?.startsWith('0')));
  t.true(found.some(({ adres }) => adres.land === null));
});

test('no other value of a customer is shown: no e-mail, no telephone', async (t) => {
  const { text } = await t.context.client.get('/klanten?perPage=1000');
  t.false(/enc:v/i.test(text));
  for (let n = 1; n <= sizesOf('small').customers; n++) {
    const { email, telefoon } = customerPlain(0, n);
    t.false(text.includes(email ?? '@') || text.includes(telefoon ?? '@'), `customer ${n}`);
  }
});

test('a value that cannot be decoded is null in the detail as well, and fails nothing else', async (t) => {
  const { client } = t.context;
  for (const damage of corruptCustomers) {
    const reply = await client.get(`/klanten/${damage.id}`);
    t.is(reply.status, 200);
    const { createdAt: _, updatedAt: __, ...klant } = reply.json<Klant>();
    t.deepEqual(klant, expected(0, damage.n) as typeof klant);
    t.is(Object.keys(klant).at(-1), 'decodeErrors');
  }
});

test('a value that cannot be decoded is counted, and the log names row, field and reason but not the value', async (t) => {
  const { client, gateway, log } = await t.context.database.gateway();
  await client.get('/klanten?perPage=1000');
  const lines = log()
    .split('\n')
    .filter((line) => line.includes('decode_failed'))
    .map((line) => JSON.parse(line) as Record<string, unknown>);
  t.deepEqual(
    lines.map(({ row, pointer }) => `${row} ${pointer}`).sort(),
    corruptCustomers.map(({ id, pointer }) => `${id} ${pointer}`).sort(),
  );
  const { rows } = await t.context.database.primary.query<Record<string, string>>(
    'select straat, kvk_nummer, plaats from app.klanten where id = any ($1)',
    [corruptCustomers.map(({ id }) => id)],
  );
  for (const value of rows.flatMap((row) => Object.values(row))) if (value !== null) t.false(log().includes(value));
  const metrics = await (await fetch(`${gateway.opsUrl}/metrics`)).text();
  for (const { pointer } of corruptCustomers) {
    t.regex(
      metrics,
      new RegExp(`^gateway_decode_errors_total\\{resource="klanten",pointer="${pointer}",reason="\\w+"\\} 1$`, 'm'),
    );
  }
});

test.serial(
  'the value of one row, put in another row, another column or another workspace, is not decoded',
  async (t) => {
    const { client, database } = t.context;
    const { rows } = await database.primary.query<{ id: string }>(
      `with source as (select * from app.klanten where workspace_id = $1 and naam like 'enc:v2:k3:%' and straat like 'enc:v2:%' limit 1)
     insert into app.klanten (id, workspace_id, naam, straat, plaats, postcode)
     select gen_random_uuid(), w, naam, straat, straat, null from source, unnest($2::uuid[]) w returning id`,
      [database.workspaces[0]?.id, database.workspaces.map(({ id }) => id)],
    );
    await database.caughtUp();
    for (const [workspace, { id }] of rows.entries()) {
      const token = await database.token({ workspace });
      const klant = (await client.get(`/klanten/${id}`, { token })).json<Klant>();
      t.is(klant.naam, null);
      t.is(klant.adres.straat, null);
      t.deepEqual(klant.decodeErrors, ['/naam', '/adres/straat', '/adres/plaats']);
    }
    await database.primary.query('delete from app.klanten where id = any ($1)', [rows.map(({ id }) => id)]);
    await database.caughtUp();
  },
);

test.serial(
  'a key that the keyring lacks, plain text and damaged values all cost no more than their field',
  async (t) => {
    const { client, database } = t.context;
    const id = '0c0ffee0-0000-4000-8000-000000000001';
    const values = [
      'enc:v2:k9:AAAA',
      'Dorpsstraat',
      'enc:v3:k1:AAAA',
      'enc:v2:k1:',
      'enc:v1:k1:AAAA',
      'enc:v2',
      '',
      '%%%',
    ];
    await database.primary.query(
      `insert into app.klanten (id, workspace_id, naam, straat, huisnummer, toevoeging, postcode, plaats, kvk_nummer, land)
     values ($1, $2, $3, $4, $5, $6, $7, $8, $9, $10)`,
      [id, database.workspaces[0]?.id, ...values],
    );
    await database.caughtUp();
    const klant = (await client.get(`/klanten/${id}`)).json<Klant>();
    const pointers = [
      '/naam',
      ...['straat', 'huisnummer', 'toevoeging', 'postcode', 'plaats', 'land'].map((f) => `/adres/${f}`),
      '/kvkNummer',
    ];
    t.deepEqual(klant.decodeErrors, pointers);
    t.deepEqual(Object.values(klant.adres), [null, null, null, null, null, null]);
    await database.primary.query('delete from app.klanten where id = $1', [id]);
    await database.caughtUp();
  },
);
