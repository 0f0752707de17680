import { createHash } from 'node:crypto';
import type { Statement } from '../../src/postgres/statement.js';
import type { Resource } from '../../src/resource/definition/resource.js';
import { compileStatements } from '../../src/resource/statements/statements.js';
import type { ApiReply } from '../support/client.js';
import { definitionsWith, load } from '../support/definitions.js';
import { idsOf, page, pages, records } from '../support/lists.js';
import { analyzed, buffersIn } from '../support/plan-buffers.js';
import { customerOf } from '../support/primary-side.js';
import { replicaReader } from '../support/replica-reader.js';
import { makeWalls } from '../support/walls.js';
import { eventually, gatewayTest } from '../support/workspace.js';
import { newKey, post } from '../support/writes.js';

const test = gatewayTest().serial;

const notes = {
  name: 'notes',
  record: 'note',
  description: 'Notes.',
  view: 'records.notes',
  version: 'version',
  order: ['id'],
  auditEntity: 'note',
  write: {
    ids: 'database',
    audit: { created: 'made', changed: 'moved', actorType: 'token', view: 'records.note_log' },
    onChange: { version: 'increment' },
  },
  fields: {
    id: { column: 'id', type: 'text', description: 'Id.' },
    label: { column: 'label', type: 'text', nullable: true, description: 'Label.', write: {} },
    version: { column: 'version', type: 'integer', description: 'Version.' },
  },
};
const noteTables = `
  create table app.notes (workspace_id uuid not null, id text primary key default gen_random_uuid()::text, label text, version int default 1);
  create view records.notes as select * from app.notes;
  create table app.note_log (workspace_id uuid, entity text, entity_id uuid, action text, actor_type text, actor_id uuid, changes jsonb);
  create view records.note_log as select * from app.note_log;`;

test('the log may hold ids as another type than the database makes them', async (t) => {
  const { database } = t.context;
  const folder = definitionsWith(t, { notes });
  await database.primary.query(noteTables);
  await makeWalls(database.primary, folder);
  await database.caughtUp();
  t.teardown(() => database.primary.query('drop view records.notes, records.note_log cascade'));
  const { client } = await database.gateway({ resourcesDir: folder });
  const token = await database.token({ scopes: ['read:notes', 'write:notes'] });
  const write = (method: string, path: string, body: object, headers: object = {}): Promise<ApiReply> =>
    client.request(method, path, { token, body, headers: { 'idempotency-key': newKey(), ...headers } });
  const made = await write('POST', '/notes', { label: '' });
  t.is(made.status, 201, made.text);
  const { id } = made.json<{ id: string }>();
  t.is(made.json<{ label: string }>().label, '', 'an empty text is not NULL');
  t.is((await write('PATCH', `/notes/${id}`, { label: null }, { 'if-match': '"v1"' })).headers.etag, '"v2"');
  const { rows } = await database.primary.query('select entity_id, action from app.note_log order by action');
  t.deepEqual(rows, [
    { entity_id: id, action: 'made' },
    { entity_id: id, action: 'moved' },
  ]);
});

test('an id of type character(n) is found as it is shown, with its spaces', async (t) => {
  const { database } = t.context;
  const [id, version] = [notes.fields.id, notes.fields.version];
  const codes = {
    name: 'codes',
    record: 'code',
    description: 'Codes.',
    view: 'records.codes',
    version: 'version',
    order: ['id'],
    sync: {},
    filters: { label: { column: 'label', kind: 'equals', nearlyUnique: true, description: 'Label.' } },
    fields: { id, label: { ...notes.fields.label, write: undefined }, version },
  };
  const folder = definitionsWith(t, { codes });
  await database.primary.query(`
    create table app.codes (workspace_id uuid not null, id character(5) primary key, label character(4), version int default 1);
    create index on app.codes (workspace_id, id);
    create index on app.codes (workspace_id, label, id);
    insert into app.codes (workspace_id, id, label) values ('${database.workspaces[0]?.id}', 'ab', 'x'), ('${database.workspaces[0]?.id}', 'abcde', 'wxyz');
    create view records.codes as select workspace_id, id, label, version, xmin as row_xid from app.codes`);
  await makeWalls(database.primary, folder);
  await database.caughtUp();
  const { client } = await database.gateway({ resourcesDir: folder });
  const token = await database.token({ scopes: ['read:codes'] });
  const idsOf = async (path: string): Promise<string[]> =>
    (await client.get(path, { token })).json<{ data: { id: string }[] }>().data.map(({ id }) => id);
  const shown = await idsOf('/codes');
  t.deepEqual(shown, ['ab   ', 'abcde']);
  for (const id of shown) {
    const path = encodeURIComponent(id);
    t.is((await client.get(`/codes/${path}`, { token })).json<{ id: string }>().id, id);
    t.deepEqual(await idsOf(`/codes?ids=${path}`), [id]);
    t.deepEqual(await idsOf(`/codes?ids=${path},${path}&order=desc&label=${id === 'abcde' ? 'wxyz' : 'x%20%20%20'}`), [
      id,
    ]);
  }
  t.deepEqual(await idsOf('/codes?label=x%20%20%20'), ['ab   ']);
  const pass = (await client.get('/sync/codes', { token })).json<{ pagination: { since: string } }>();
  await database.primary.query('update app.codes set version = 2');
  await database.caughtUp();
  t.deepEqual(await idsOf(`/sync/codes?since=${pass.pagination.since}`), shown);
  const versions = (await client.get('/sync/codes/ids', { token })).json<{
    data: { id: string; syncVersion: string }[];
  }>();
  const [first = 0n, second = 0n] = versions.data.map(({ id: text, syncVersion }) =>
    createHash('sha256').update(`${text}\n${syncVersion}`).digest().readBigUInt64BE(),
  );
  t.deepEqual(versions.data.map(({ id: text }) => text).sort(), shown);
  const digest = (await client.get('/sync/codes/digest?depth=0', { token })).json<{ data: object[] }>().data;
  t.deepEqual(digest, [{ prefix: '', count: 2, hash: (first ^ second).toString(16).padStart(16, '0') }]);
  const prefix = createHash('sha256').update('ab   ').digest('hex').slice(0, 3);
  t.deepEqual(await idsOf(`/sync/codes/ids?prefix=${prefix}`), ['ab   ']);
  t.deepEqual(await idsOf(`/sync/codes?prefix=${prefix}`), ['ab   ']);
});

test('an id of any text type is found by its index, alone and in a list', async (t) => {
  const { database } = t.context;
  const workspace = database.workspaces[0]?.id as string;
  for (const [i, type] of ['character(26)', 'character varying(26)', 'text'].entries()) {
    const name = `keys_${i}`;
    await database.primary.query(`
      create table app.${name} (workspace_id uuid not null, id ${type} not null);
      insert into app.${name} select '${workspace}', md5(n::text)::char(26) from generate_series(1, 20000) n;
      create unique index on app.${name} (workspace_id, id);
      analyze app.${name};
      create view records.${name} as select workspace_id, id from app.${name}`);
    const [resource] = load({
      'keys.json': {
        ...{ name: 'keys', record: 'key', description: 'Keys.', view: `records.${name}`, order: ['id'] },
        fields: { id: notes.fields.id },
      },
    });
    await makeWalls(database.primary, [resource as Resource]);
    await database.caughtUp();
    const { detail, list } = compileStatements(resource as Resource);
    const client = await replicaReader(t);
    const { rows } = await client.query<{ id: string }>(`select id from gateway.${name} order by id desc limit 3`);
    const ids = rows.map(({ id }) => id);
    for (const statement of [detail as Statement, list(['ids']).rows.all, list(['ids'], 'desc').keys.all]) {
      await client.query(`prepare guarded as ${statement.text}`);
      const values = { workspace, id: ids[0] as string, ids: `{${ids}}`, limit: 10, skip: 0 };
      const buffers = buffersIn(await analyzed(client, statement, values));
      t.true(buffers < 60, `${statement.name} of ${type} reads ${buffers} buffers`);
      await client.query('deallocate guarded');
    }
  }
});

test('reads and writes have the same times whatever zone and style the roles, or the database, are set to', async (t) => {
  const { database, client } = t.context;
  const { name, primary, replica } = database;
  const path = '/installaties?perPage=3';
  const shown = async (): Promise<unknown> => (await page(client, path)).data;
  const before = await shown();
  const roles = ['gateway_reader', 'gateway_writer'];
  const change = async (setting: string): Promise<void> => {
    for (const role of roles) await primary.query(`alter role ${role} in database ${name} ${setting}`);
  };
  t.teardown(() => change('reset all'));
  await change("set timezone = 'Europe/Amsterdam'");
  await change("set datestyle = 'SQL, DMY'");
  await database.caughtUp();
  for (const node of [primary, replica])
    await node.query(
      `select pg_terminate_backend(pid) from pg_stat_activity where datname = '${name}' and usename = any ('{${roles}}')`,
    );
  await eventually(t, 'a read', async () => (await client.get(path)).status === 200);
  t.deepEqual(await shown(), before);
  const { status, text } = await post(client, { naam: 'x', customerId: await customerOf(database) });
  t.is(status, 201, text);
  t.true(Math.abs(Date.parse(JSON.parse(text).createdAt) - Date.now()) < 600_000, text);
});

// PostgreSQL takes dates that JSON does not show; a list may be in their order all the same.

const chunked = gatewayTest({ chunkRowsMax: 40, chunkBytes: 16_384 }).serial;

chunked(
  'a walk goes on behind infinite dates and those beyond the years 1 to 9999, which are shown as null',
  async (t) => {
    const { client, database } = t.context;
    const odd = ['infinity', 'infinity', '5874897-12-31', '20226-01-05', '0044-03-15 BC', '-infinity'];
    const { rows } = await database.primary.query<{ id: string; datum: string }>(
      'select id, datum::text from app.werkbonnen where workspace_id = $1 order by id limit $2',
      [database.workspaces[0]?.id, odd.length],
    );
    const dated = (days: readonly string[]): Promise<unknown> =>
      Promise.all(
        rows.map(({ id }, i) =>
          database.primary.query('update app.werkbonnen set datum = $1 where id = $2', [days[i], id]),
        ),
      );
    await dated(odd);
    t.teardown(() => dated(rows.map(({ datum }) => datum)));
    await database.caughtUp();
    const all = idsOf(await records(client, '/werkbonnen?perPage=1000'));
    const { pagination } = await page(client, '/werkbonnen?order=desc&perPage=1');
    t.is(
      (await page<{ datum: string | null }>(client, `/werkbonnen?order=desc&perPage=1&cursor=${pagination.nextCursor}`))
        .data[0]?.datum,
      null,
    );
    for (const [order, expected] of [
      ['asc', all],
      ['desc', [...all].reverse()],
    ] as const) {
      const walked: string[] = [];
      for await (const { data } of pages(client, `/werkbonnen?order=${order}&perPage=1`, 'cursor')) {
        walked.push(...idsOf(data));
        if (walked.length === 8) break;
      }
      t.deepEqual(walked, expected.slice(0, 8), order);
    }
    const copied: string[] = [];
    for (let cursor = ''; ; ) {
      const { data, pagination: at } = await page(client, `/sync/werkbonnen?perPage=70${cursor}`);
      copied.push(...idsOf(data));
      if (at.nextCursor === null) break;
      cursor = `&cursor=${at.nextCursor}`;
    }
    t.deepEqual(copied, all, 'a pass of sync');
  },
);
