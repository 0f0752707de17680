import { randomUUID } from 'node:crypto';
import pg from 'pg';
import { urlAs } from '../../demo/cluster/passwords.js';
import { apps } from '../../demo/seed/apps.js';
import { runAsAdmin } from '../../src/postgres/admin.js';
import { loadResources } from '../../src/resource/definition/load.js';
import {
  type Field,
  getColumns,
  listLeaves,
  type Resource,
  type ResourceAudit,
  type ResourceWrite,
} from '../../src/resource/definition/resource.js';
import { hashToken } from '../../src/serve/http/token-format.js';
import { app, appName } from '../support/app.js';
import type { ApiReply } from '../support/client.js';
import { withInstallations } from '../support/definitions.js';
import { codeOf } from '../support/lists.js';
import { customerOf } from '../support/primary-side.js';
import { makeMac } from '../support/walls.js';
import { gatewayTest, shared, type TestContext } from '../support/workspace.js';
import { created, etagOf, type Installation, newKey, patch, post } from '../support/writes.js';

const test = gatewayTest();

const outcomeOf = ({ status, text, headers }: ApiReply): object => ({
  status,
  text,
  location: headers.location,
  etag: headers.etag,
});

test('a POST with a used key repeats status, body, Location and ETag, and does nothing', async (t) => {
  const { client, database } = t.context;
  const body = { naam: 'eenmaal', customerId: await customerOf(database) };
  const key = newKey();
  const first = await post(client, body, { key });
  for (const repeated of [await post(client, body, { key }), await post(client, body, { key })]) {
    t.deepEqual(outcomeOf(repeated), outcomeOf(first));
    t.is(repeated.headers['idempotent-replayed'], 'true');
  }
  t.is(first.headers['idempotent-replayed'], undefined);
  const { rows } = await database.primary.query("select id from probe.installaties where naam = 'eenmaal'");
  t.is(rows.length, 1);
});

test('a key is the same bare and as a quoted string', async (t) => {
  const { client, database } = t.context;
  const body = { naam: 'x', customerId: await customerOf(database) };
  const first = await post(client, body, { key: 'bare-or-quoted' });
  const quoted = await post(client, body, { key: '"bare-or-quoted"' });
  t.deepEqual(outcomeOf(quoted), outcomeOf(first));
  const escaped = await post(client, body, { key: '"a\\"b\\\\c"' });
  t.deepEqual(outcomeOf(await post(client, body, { key: 'a"b\\c' })), outcomeOf(escaped));
});

test('a PATCH is replayed although its If-Match is stale by then, and the record has moved on', async (t) => {
  const { client, database } = t.context;
  const record = await created(client, { naam: 'x', customerId: await customerOf(database) });
  const key = newKey();
  const first = await patch(client, record.id, etagOf(record), { naam: 'y' }, { key });
  t.is((await patch(client, record.id, etagOf(record, 1), { naam: 'z' })).status, 200);
  const repeated = await patch(client, record.id, etagOf(record), { naam: 'y' }, { key });
  t.deepEqual(outcomeOf(repeated), outcomeOf(first));
  t.is(repeated.headers['idempotent-replayed'], 'true');
  t.is((await client.get(`/installaties/${record.id}`)).headers.etag, etagOf(record, 2));
  t.is(codeOf(await patch(client, record.id, etagOf(record), { naam: 'y' })), 'precondition_failed');
});

test('an empty PATCH is an outcome that is replayed too', async (t) => {
  const { client, database } = t.context;
  const record = await created(client, { naam: 'x', customerId: await customerOf(database) });
  const key = newKey();
  const first = await patch(client, record.id, etagOf(record), {}, { key });
  await patch(client, record.id, etagOf(record), { naam: 'y' });
  t.deepEqual(outcomeOf(await patch(client, record.id, etagOf(record), {}, { key })), outcomeOf(first));
});

test('the order of the members and white space do not make another request', async (t) => {
  const { client, database } = t.context;
  const customerId = await customerOf(database);
  const key = newKey();
  const first = await post(client, `{"naam":"x","bouwjaar":2019,"customerId":"${customerId}"}`, { key });
  const other = ` {\n "customerId" : "${customerId}" ,"\\u006eaam":"\\u0078",\t"bouwjaar": 2.019e3 } `;
  t.deepEqual(outcomeOf(await post(client, other, { key })), outcomeOf(first));
});

test('the same key with another body, method, path or If-Match is refused', async (t) => {
  const { client, database } = t.context;
  const customerId = await customerOf(database);
  const [one, two] = [
    await created(client, { naam: 'x', customerId }),
    await created(client, { naam: 'x', customerId }),
  ];
  const key = newKey();
  t.is((await patch(client, one.id, etagOf(one), { naam: 'y' }, { key })).status, 200);
  const others = [
    () => patch(client, one.id, etagOf(one), { naam: 'z' }, { key }),
    () => patch(client, one.id, etagOf(one), { naam: 'y', merk: null }, { key }),
    () => patch(client, one.id, etagOf(one, 1), { naam: 'y' }, { key }),
    () => patch(client, one.id, `W/${etagOf(one)}`, { naam: 'y' }, { key }),
    () => patch(client, two.id, etagOf(two), { naam: 'y' }, { key }),
    () => patch(client, app.unknownId, etagOf(one), { naam: 'y' }, { key }),
    () => post(client, { naam: 'y', customerId }, { key }),
  ];
  for (const send of others) {
    const reply = await send();
    t.is(reply.status, 422);
    t.is(codeOf(reply), 'idempotency_key_reused');
  }
  t.is((await patch(client, one.id, etagOf(one), { naam: 'y' }, { key })).headers['idempotent-replayed'], 'true');
});

test('a PATCH is replayed while the app holds its row locked', async (t) => {
  const { client, database } = t.context;
  const record = await created(client, { naam: 'x', customerId: await customerOf(database) });
  const key = newKey();
  const again = () => patch(client, record.id, etagOf(record), { naam: 'y' }, { key });
  t.is((await again()).status, 200);
  await runAsAdmin(urlAs(shared.primary, 'postgres', database.name), async (appClient) => {
    await appClient.query('begin');
    await appClient.query('select from probe.installaties where id = $1 for update', [record.id]);
    const replayed = await again();
    t.is(replayed.status, 200);
    t.is(replayed.headers['idempotent-replayed'], 'true');
  });
});

test('two tokens may use the same key, also in one workspace', async (t) => {
  const { client, database } = t.context;
  const body = { naam: 'x', customerId: await customerOf(database) };
  const other = { token: await database.token() };
  const foreign = { token: await database.token({ workspace: 1 }) };
  const replies = [
    await post(client, body, { key: 'shared' }),
    await post(client, body, { key: 'shared', ...other }),
    await post(client, { naam: 'x', customerId: await customerOf(database, 1) }, { key: 'shared', ...foreign }),
  ];
  const statuses = replies.map(({ status }) => status);
  t.deepEqual(statuses, [201, 201, 201]);
  t.is(new Set(replies.map((reply) => reply.json<{ id: string }>().id)).size, 3);
});

test('only successful answers are stored: after a 412 the key is free for the same request and for a different request', async (t) => {
  const { client, database } = t.context;
  const record = await created(client, { naam: 'x', customerId: await customerOf(database) });
  const key = newKey();
  t.is((await patch(client, record.id, '"v9"', { naam: 'y' }, { key })).status, 412);
  const reply = await patch(client, record.id, etagOf(record), { naam: 'z' }, { key });
  t.is(reply.status, 200);
  t.is(reply.headers['idempotent-replayed'], undefined);
});

test('a replay to a token that lost read:installaties shows the write scope only', async (t) => {
  const { client, database } = t.context;
  const token = await database.token();
  const body = { naam: 'x', customerId: await customerOf(database) };
  const [stored, cut] = [newKey(), newKey()];
  const whole = await post(client, body, { key: stored, token });
  const setScopes = async (...scopes: string[]): Promise<void> => {
    await database.primary.query('update gateway.api_tokens set scopes = $1 where token_hash = $2', [
      scopes,
      hashToken(token),
    ]);
    await database.caughtUp();
  };
  await setScopes('write:installaties');
  const { client: later } = await database.gateway();
  const replayed = await post(later, body, { key: stored, token });
  const own = await post(later, body, { key: cut, token });
  t.deepEqual([replayed.status, replayed.headers['idempotent-replayed']], [201, 'true']);
  t.is(replayed.headers.etag, whole.headers.etag);
  const shown = Object.keys(own.json<object>());
  t.false(shown.includes('koudemiddel'));
  const expected = Object.entries(whole.json<object>()).filter(([name]) => shown.includes(name));
  t.deepEqual(Object.entries(replayed.json<object>()), expected);

  await setScopes('write:installaties', 'read:installaties');
  const { client: again } = await database.gateway();
  t.is((await post(again, body, { key: stored, token })).text, whole.text);
  t.is((await post(again, body, { key: cut, token })).text, own.text);
});

test('a replay under another definition shows the record as it is now, with the members that the definition has', async (t) => {
  const { client, database } = t.context;
  const changed = withInstallations(t, (definition) => {
    definition.fields.locatie = undefined;
  });
  const body = { naam: 'x', omschrijving: 'first', customerId: await customerOf(database) };
  const token = await database.token();
  const [key, early] = [newKey(), newKey()];
  const [first, other] = [await post(client, body, { key, token }), await post(client, body, { key: early, token })];
  const record = first.json<Installation>();
  t.is((await patch(client, record.id, etagOf(record), { naam: 'y', locatie: 'hidden' })).status, 200);

  const { client: narrower } = await database.gateway(changed);
  const replayed = await post(narrower, body, { key, token });
  t.deepEqual([replayed.status, replayed.headers['idempotent-replayed']], [201, 'true']);
  t.is(replayed.text, (await narrower.get(`/installaties/${record.id}`)).text);
  t.false(replayed.text.includes('locatie'));
  t.is(replayed.json<Installation>().naam, 'y');
  t.is(replayed.headers.etag, etagOf(record, 1));
  t.is(replayed.headers.location?.split('/').at(-1), record.id);
  t.is((await post(narrower, { ...body, naam: 'z' }, { key, token })).status, 422);
  t.deepEqual(outcomeOf(await post(client, body, { key, token })), outcomeOf(first), 'under its own definition');

  await database.primary.query(`delete from ${app.installations} where id = $1`, [other.json<Installation>().id]);
  t.is((await post(narrower, body, { key: early, token })).status, 422, 'the record is gone');
  t.deepEqual(outcomeOf(await post(client, body, { key: early, token })), outcomeOf(other));
});

// PostgreSQL itself refuses these to the gateway's writer, whatever the gateway sends. Every statement runs as that role.
const denied = '42501'; // insufficient_privilege; also what a view's or policy's check gives
/** The columns of the write view by their roles, from the definition. */
const columns = columnsByRole();

function columnsByRole() {
  const resource = loadResources(apps[appName].resourcesDir).find(({ name }) => name === 'installaties') as Resource;
  const { audit, ids, onChange } = resource.write as ResourceWrite;
  const log = (audit as ResourceAudit).columns;
  const writable = listLeaves(resource).flatMap(({ field }) => (field.write ? [field.column] : []));
  const moved = Object.keys(onChange);
  return {
    log,
    moved,
    readOnly: ['workspace_id', ...getColumns(resource)].filter((column) => ![...writable, ...moved].includes(column)),
    nameColumn: (resource.fields.naam as Field).column,
    /** The list of inserted columns has the id if the gateway makes it. */
    made: ids === 'gateway' ? 'id, ' : '',
  };
}

async function asWriter({ database }: TestContext, statements: readonly string[]): Promise<(string | number)[]> {
  const client = new pg.Client(urlAs(shared.primary, 'gateway_writer', database.name));
  await client.connect();
  const results: (string | number)[] = [];
  await client.query("select set_config('gateway.workspace_id', $1, false)", [
    makeMac(database.workspaces[0]?.id as string),
  ]);
  for (const statement of statements) {
    await client.query('begin');
    results.push(
      await client.query(statement).then(
        ({ rowCount }) => rowCount ?? 0,
        ({ code }: { code: string }) => code,
      ),
    );
    await client.query('rollback');
  }
  await client.end();
  return results;
}

test('it can update no column outside the write scope, through the view or past it', async (t) => {
  const { client, database } = t.context;
  const { id } = await created(client, { naam: 'x', customerId: await customerOf(database) });
  const { readOnly, moved, nameColumn } = columns;
  t.true(readOnly.length > 5);
  const updates = readOnly.flatMap((column) =>
    ['gateway.installaties_write', 'gateway.installaties', app.installations].map(
      (relation) => `update ${relation} set ${column} = default where id = '${id}'`,
    ),
  );
  const elsewhere = ['gateway.installaties', app.installations].map(
    (relation) => `update ${relation} set ${nameColumn} = default where id = '${id}'`,
  );
  const outcomes = await asWriter(t.context, [...updates, ...elsewhere]);
  // 42703: the table has the column under another name. 0A000: the view shows it by an expression, which cannot be written.
  const refusals: unknown[] = [denied, '42703', '0A000'];
  const allowed = [...updates, ...elsewhere].filter((_, i) => !refusals.includes(outcomes[i]));
  t.deepEqual(allowed, []);
  const permitted = [nameColumn, ...moved].map(
    (column) => `update gateway.installaties_write set ${column} = ${column} where id = '${id}'`,
  );
  t.deepEqual(new Set(await asWriter(t.context, permitted)), new Set([1]));
});

test('it can insert no column outside the write scope', async (t) => {
  const { database } = t.context;
  const customer = await customerOf(database);
  const { made, readOnly, moved, nameColumn } = columns;
  const insert = (more: string): string =>
    `insert into gateway.installaties_write (${made}customer_id, ${nameColumn}${more && `, ${more}`})
      values (${made && `'${randomUUID()}', `}'${customer}', 'x'${more && ', default'})`;
  const refused = [...readOnly, ...moved].filter((column) => column !== 'id');
  t.deepEqual(new Set(await asWriter(t.context, refused.map(insert))), new Set([denied]));
  t.deepEqual(await asWriter(t.context, [insert('')]), [1]);
});

test('it sees and changes nothing of another workspace, and can put nothing into one', async (t) => {
  const { client, database } = t.context;
  const token = await database.token({ workspace: 1 });
  const [theirs, customer] = [database.workspaces[1]?.id, await customerOf(database, 1)];
  const { id } = await created(client, { naam: 'x', customerId: customer }, { token });
  const results = await asWriter(t.context, [
    `select from gateway.installaties_write where id = '${id}'`,
    `select from gateway.klanten where id = '${customer}'`,
    `select from gateway.idempotency where record_id = '${id}'`,
    `update gateway.installaties_write set ${columns.nameColumn} = 'y' where id = '${id}'`,
    `update gateway.idempotency set record = 'y' where record_id = '${id}'`,
  ]);
  t.deepEqual(results, [0, 0, 0, 0, 0]);
  const insertions = await asWriter(t.context, [
    `insert into gateway.installaties_write (${columns.made}workspace_id, customer_id, ${columns.nameColumn})
      values (${columns.made && `'${randomUUID()}', `}'${theirs}', '${customer}', 'x')`,
    `update gateway.installaties_write set workspace_id = '${theirs}'`,
    `insert into gateway.logboeken_write (workspace_id, ${columns.log.entity}, ${columns.log.entityId}, ${columns.log.action}, ${columns.log.actorType}) values ('${theirs}', 'x', '1', 'x', 'token')`,
    `insert into gateway.idempotency (workspace_id, token_id, key, fingerprint) values ('${theirs}', '${randomUUID()}', 'x', 'x')`,
  ]);
  t.deepEqual(insertions, [denied, denied, denied, denied]);
});

test('it deletes nothing, and reads neither tokens, names of customers nor the log', async (t) => {
  const tables = [
    'gateway.installaties_write',
    'gateway.logboeken_write',
    'gateway.idempotency',
    'gateway.klanten',
    app.installations,
    'probe.logboeken',
  ];
  const refused = [
    ...tables.map((table) => `delete from ${table}`),
    'truncate gateway.idempotency',
    `truncate ${app.installations}`,
    'select created_at from gateway.klanten',
    'select * from gateway.klanten',
    'select id from probe.klanten',
    'select token_hash from gateway.api_tokens',
    'select * from gateway.key_ids()',
    'select * from gateway.sample_workspaces()',
    'select * from gateway.logboeken',
    `select ${columns.log.entity} from gateway.logboeken_write`,
    'select * from gateway.token_owners',
    `update gateway.logboeken_write set ${columns.log.action} = 'x'`,
    'create table gateway.t ()',
    'create table public.t ()',
    'set role gateway_owner',
    "copy gateway.idempotency to program 'true'",
  ];
  const results = await asWriter(t.context, refused);
  const allowed = refused.filter((_, i) => results[i] !== denied);
  t.deepEqual(allowed, []);
});

test('a stored answer stays as it is: neither its key nor its content can be changed', async (t) => {
  const { client, database } = t.context;
  const { id } = await created(client, { naam: 'x', customerId: await customerOf(database) });
  const columns = ['workspace_id', 'token_id', 'key', 'fingerprint', 'created_at'];
  const updates = columns.map(
    (column) => `update gateway.idempotency set ${column} = ${column} where record_id = '${id}'`,
  );
  t.deepEqual(new Set(await asWriter(t.context, updates)), new Set([denied]));
  t.deepEqual(
    await asWriter(t.context, [
      `select from gateway.idempotency where record_id = '${id}'`,
      `update gateway.idempotency set record = 'forged', status = 200 where record_id = '${id}'`,
      `insert into gateway.idempotency (workspace_id, token_id, key, fingerprint, status, record)
        values ('${database.workspaces[0]?.id}', '${randomUUID()}', 'x', 'x', 201, 'forged')`,
    ]),
    [1, 0, denied],
  );
});
