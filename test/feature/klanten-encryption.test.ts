import type { Customer } from '../support/app.js';
import { records } from '../support/lists.js';
import { gatewayTest } from '../support/workspace.js';

// The encryption of the first app: a value per column, with its key in a prefix.
const test = gatewayTest();

test('the seed has values of every key and version, names beyond ASCII and numbers with a leading zero', async (t) => {
  const { client, database } = t.context;
  const { rows } = await database.primary.query<{ seal: string }>(
    `select distinct left(naam, 9) as seal from app.klanten where naam is not null order by 1`,
  );
  t.deepEqual(
    rows.map(({ seal }) => seal),
    ['enc:v1:k1', 'enc:v2:k1', 'enc:v2:k2', 'enc:v2:k3'],
  );
  const found = await records<Customer>(client, '/klanten?perPage=1000');
  t.true(found.some(({ naam }) => /[^\0-\x7f]/.test(naam ?? '')));
  t.true(found.some(({ kvkNummer }) => kvkNummer?.startsWith('0')));
  t.true(found.some(({ adres }) => adres.land === null));
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
      const klant = (await client.get(`/klanten/${id}`, { token })).json<Customer>();
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
    const klant = (await client.get(`/klanten/${id}`)).json<Customer>();
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
