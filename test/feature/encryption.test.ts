import { createCipheriv, type KeyObject, randomBytes } from 'node:crypto';
import { cpSync, mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import type { ExecutionContext } from 'ava';
import { projectRoot } from '../../src/base/paths.js';
import { parseKeyring } from '../../src/resource/projection/keyring.js';
import type { Customer } from '../support/app.js';
import { records } from '../support/lists.js';
import { makeWalls } from '../support/walls.js';
import { eventually, gatewayTest, type TestContext, type TestDatabase } from '../support/workspace.js';

// The encryption of the first app: a value per column, with its key in a prefix.
const test = gatewayTest();

test('the seed has values of every key and version, names beyond ASCII and numbers with a leading zero', async (t) => {
  const { client, database } = t.context;
  const { rows } = await database.primary.query<{ seal: string }>(
    `select distinct left(naam, 9) as seal from app.klanten where naam is not null order by 1`,
  );
  const seals = rows.map(({ seal }) => seal);
  t.deepEqual(seals, ['enc:v1:k1', 'enc:v2:k1', 'enc:v2:k2', 'enc:v2:k3']);
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
      ...['enc:v2:k9:AAAA', 'Dorpsstraat', 'enc:v3:k1:AAAA', 'enc:v2:k1:', 'enc:v1:k1:AAAA', 'enc:v2', '', '%%%'],
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

test.serial('a page of damaged values is a few log lines, which tell the number of values', async (t) => {
  const { database } = t.context;
  const { client, gateway, log } = await database.gateway();
  await database.primary.query('create table app.whole as select id, straat from app.klanten');
  // The value of another row opens nowhere else.
  await database.primary.query(
    'update app.klanten set straat = (select straat from app.klanten where straat is not null order by id limit 1)',
  );
  await database.caughtUp();
  await client.get('/klanten?perPage=1000');
  await database.primary.query('update app.klanten k set straat = w.straat from app.whole w where w.id = k.id');
  await database.primary.query('drop table app.whole');
  await database.caughtUp();
  const metrics = await (await fetch(`${gateway.opsUrl}/metrics`)).text();
  const counted = [...metrics.matchAll(/^gateway_decode_errors_total\{.*\} (\d+)$/gm)].map(([, n]) => Number(n));
  await gateway.stop();
  const lines = log()
    .split('\n')
    .filter((line) => line.includes('decode_failed'))
    .map((line) => JSON.parse(line) as { repeated?: number });
  const sum = (numbers: number[]): number => numbers.reduce((a, b) => a + b, 0);
  t.true(sum(counted) > 200, `${sum(counted)} values`);
  t.is(sum(lines.map(({ repeated = 1 }) => repeated)), sum(counted));
  t.true(lines.length <= 2 * counted.filter((n) => n > 0).length, `${lines.length} lines`);
});

const guests = {
  name: 'guests',
  record: 'guest',
  description: 'Guests.',
  view: 'records.guests',
  order: ['region', 'id'],
  codecs: {
    vault: {
      cipher: 'aes-256-gcm',
      layout: ['tag16', 'nonce12', 'data'],
      encoding: 'base64',
      keyId: { column: 'vault_key' },
      aad: 'customer:{id}',
    },
    raw: {
      cipher: 'aes-256-gcm',
      layout: ['nonce12', 'data', 'tag16'],
      encoding: 'bytea',
      keyId: { column: 'vault_key' },
      aad: '{region}/{column}/{id}',
    },
    own: { cipher: 'module', encoding: 'text' },
  },
  fields: {
    id: { column: 'id', type: 'bigint', description: 'Number.' },
    region: { column: 'region', type: 'text', description: 'Region.' },
    name: sealed('/name', 'text'),
    address: { description: 'Address.', group: { town: sealed('/address/town', 'text') } },
    age: sealed('/age', 'integer'),
    note: { column: 'note', codec: 'raw', type: 'text', nullable: true, description: 'Note.' },
    motto: { column: 'motto', codec: 'own', type: 'text', nullable: true, description: 'Motto.' },
  },
};

function sealed(pointer: string, type: string): object {
  return { column: 'sealed', codec: 'vault', pointer, type, nullable: true, description: 'Sealed.' };
}

const tables = `
  create table app.guests (id integer primary key, workspace_id uuid not null, region text not null, sealed text,
    vault_key text, note bytea, motto text);
  create view records.guests as select * from app.guests;`;

function seal(key: KeyObject, aad: string, text: string): Record<'nonce' | 'data' | 'tag', Buffer> {
  const nonce = randomBytes(12);
  const cipher = createCipheriv('aes-256-gcm', key, nonce).setAAD(Buffer.from(aad));
  const data = Buffer.concat([cipher.update(text), cipher.final()]);
  return { nonce, data, tag: cipher.getAuthTag() };
}

const reversing = `export default (stored, { column, id }) => {
  if (stored === 'broken') throw new Error('the motto of ' + id + ' is secret');
  return column + ' ' + [...stored].reverse().join('');
};`;

/** Guest 1 is whole, guest 2 is sealed for another, and guest 3 under an unknown key id, with a broken motto. */
async function insertGuests(database: TestDatabase): Promise<void> {
  const keyring = parseKeyring(database.settings.dataKeys);
  const [keyId] = keyring.ids as [string];
  const key = keyring.get(keyId) as KeyObject;
  const insert = async (id: number, sealedAs: number, usedId: string, motto: string | null): Promise<void> => {
    const guest = { name: `Guest ${id} é"`, address: { town: 'Utrecht' }, age: 40 + id };
    const vault = seal(key, `customer:${sealedAs}`, JSON.stringify(guest));
    const note = seal(key, `north/note/${id}`, `note ${id}`);
    const [stored, raw] = [Buffer.concat([vault.tag, vault.nonce, vault.data]), [note.nonce, note.data, note.tag]];
    const values = [
      id,
      database.workspaces[0]?.id,
      'north',
      stored.toString('base64'),
      usedId,
      Buffer.concat(raw),
      motto,
    ];
    await database.primary.query('insert into app.guests values ($1, $2, $3, $4, $5, $6, $7)', values);
  };
  await insert(1, 1, keyId, 'olleh');
  await insert(2, 1, keyId, null);
  await insert(3, 3, 'k-unknown', 'broken');
  await database.caughtUp();
}

test('values sealed in another layout, and those of a codec module, are shown; what cannot be read is told and not logged', async (t) => {
  const { database } = t.context;
  const folder = mkdtempSync(join(tmpdir(), 'definitions-'));
  const definition = join(folder, 'guests.json');
  const codecModule = join(folder, 'codec.mjs');
  try {
    cpSync(join(projectRoot, 'config/resources'), folder, { recursive: true });
    writeFileSync(definition, JSON.stringify(guests));
    writeFileSync(codecModule, reversing);
    await database.primary.query(tables);
    await makeWalls(database.primary, folder);
    await insertGuests(database);

    const settings = { resourcesDir: folder, codecModule };
    const { client, gateway, log } = await database.gateway(settings);
    const token = await database.token({ scopes: ['read:guests', 'read:klanten'] });
    const { data } = (await client.get('/guests', { token })).json<{ data: unknown[] }>();
    const unreadable = { name: null, address: { town: null }, age: null };
    const pointers = ['/name', '/address/town', '/age'];
    t.deepEqual(data, [
      {
        ...{ id: '1', region: 'north', name: 'Guest 1 é"', address: { town: 'Utrecht' }, age: 41 },
        ...{ note: 'note 1', motto: 'motto hello' },
      },
      { id: '2', region: 'north', ...unreadable, note: 'note 2', motto: null, decodeErrors: pointers },
      {
        ...{ id: '3', region: 'north', ...unreadable, note: null, motto: null },
        decodeErrors: [...pointers, '/note', '/motto'],
      },
    ]);
    t.deepEqual((await client.get('/guests/1', { token })).json(), data[0]);
    t.is((await client.get('/klanten?perPage=1', { token })).status, 200);
    await eventually(t, 'the log', () => log().includes('"reason":"module"'));
    t.false(/secret|Utrecht|Guest/.test(log()));
    const metrics = await (await fetch(`${gateway.opsUrl}/metrics`)).text();
    for (const [pointer, reason] of [
      ['/name', 'bad_tag'],
      ['/note', 'unknown_key'],
      ['/motto', 'module'],
    ]) {
      const counted = `gateway_decode_errors_total{resource="guests",pointer="${pointer}",reason="${reason}"} `;
      t.regex(metrics.split('\n').find((line) => line.startsWith(counted)) ?? '', / [1-9]\d*$/, counted);
    }

    await refusesToStart(t, folder, codecModule);
  } finally {
    rmSync(folder, { recursive: true });
  }
});

async function refusesToStart(t: ExecutionContext<TestContext>, folder: string, codecModule: string): Promise<void> {
  const refused = async (overrides: object): Promise<string> =>
    (await t.throwsAsync(t.context.database.gateway({ resourcesDir: folder, ...overrides }))).message;
  t.regex(await refused({}), /settings: codec module: CODEC_MODULE is not set, and codecs of guests need it\./);
  t.regex(
    await refused({ codecModule: `${codecModule}x` }),
    /codec module: CODEC_MODULE: .*cannot be loaded: Cannot find/,
  );
  const { vault } = guests.codecs;
  const changed = { ...guests.codecs, vault: { ...vault, keyId: { column: 'key' }, aad: '{id} {house}' } };
  writeFileSync(join(folder, 'guests.json'), JSON.stringify({ ...guests, codecs: changed }));
  t.regex(
    await refused({ codecModule }),
    /view gateway\.guests: column key is missing \(\/codecs\/[a-z0-9-]+\); column house is missing \(\/codecs\/[a-z0-9-]+\); the definition is \S+\.json/,
  );
}
