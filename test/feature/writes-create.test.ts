import { cpSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { app } from '../support/app.js';
import { codeOf, faultsOf } from '../support/lists.js';
import { customerOf } from '../support/primary-side.js';
import { gatewayTest } from '../support/workspace.js';
import { created, etagOf, type Installation, post } from '../support/writes.js';

const test = gatewayTest();

test('POST creates an installation and answers with the whole record, its URL and its version', async (t) => {
  const { client, database } = t.context;
  const customerId = await customerOf(database);
  const body = {
    customerId,
    naam: 'Koelcel “noord” ❄ 🧊',
    omschrijving: 'Twee "verdampers"\r\n\t\b\f\u0001\u001f\u007f\u2028 \\ / links',
    locatie: 'Kelder',
    merk: 'Daikin',
    type: 'ERQ125AV1',
    serienummer: 'J004321',
    bouwjaar: 2019,
    inbedrijfstelling: '2020-02-29',
  };
  const reply = await post(client, body);
  t.is(reply.status, 201);
  const record = reply.json<Installation>();
  const { id, version, createdAt, updatedAt, ...rest } = record;
  t.deepEqual(rest, {
    ...body,
    koudemiddel: null,
    koudemiddelGwp: null,
    vullingKg: null,
    interneNotities: null,
    lmraVerplicht: false,
  });
  t.is(version, app.firstVersion);
  t.is(createdAt, updatedAt);
  t.true(Math.abs(Date.now() - Date.parse(createdAt as string)) < 10_000);
  t.is(reply.headers.etag, etagOf(record));
  t.true((reply.headers.location as string).endsWith(`/api/v1/installaties/${id}`));
  t.regex(reply.headers.location as string, /^http:\/\/127\.0\.0\.1:\d+\//);
  t.is(reply.headers['idempotent-replayed'], undefined);
  t.regex(reply.headers['server-timing'] as string, /db;dur=/);
  t.is((await client.get(`/installaties/${id}`)).text, reply.text);
});

test('POST needs only a customer and a name; members that are left out are null', async (t) => {
  const { client, database } = t.context;
  const record = await created(client, { naam: 'x', customerId: await customerOf(database) });
  for (const member of ['omschrijving', 'locatie', 'merk', 'type', 'serienummer', 'bouwjaar', 'inbedrijfstelling']) {
    t.is(record[member], null, member);
  }
});

test('a new installation is in the list at once, and in that of its customer', async (t) => {
  const { client, database } = t.context;
  const customerId = await customerOf(database);
  const { id } = await created(client, { naam: 'nieuw', customerId });
  for (const path of ['/installaties?perPage=10000', `/installaties?perPage=10000&customerId=${customerId}`]) {
    const ids = (await client.get(path)).json<{ data: Installation[] }>().data.map((record) => record.id);
    t.true(ids.includes(id), path);
  }
});

test('the texts of a body are stored as they are, in their own form of Unicode and to their last allowed character', async (t) => {
  const { client, database } = t.context;
  const customerId = await customerOf(database);
  for (const naam of [
    'e\u0301',
    '\u00e9',
    ' spatie ',
    '\u202e',
    '🧊'.repeat(200),
    '"\\/\b\f\n\r\t',
    "'; drop table x; --",
  ]) {
    t.is((await created(client, { naam, customerId })).naam, naam);
  }
  t.is((await post(client, { naam: '🧊'.repeat(201), customerId })).status, 400);
});

test('an unknown customer and a customer of another workspace get the same answer', async (t) => {
  const { client, database } = t.context;
  const [unknown, foreign] = [app.unknownId, await customerOf(database, 1)];
  const replies = await Promise.all([unknown, foreign].map((customerId) => post(client, { naam: 'x', customerId })));
  const told = replies.map((reply) => {
    const { requestId: _, ...problem } = reply.json<Record<string, unknown>>();
    return problem;
  });
  t.deepEqual(told[0], told[1]);
  t.is(codeOf(replies[0] as never), 'invalid_request');
  t.deepEqual(faultsOf(replies[0] as never), ['/customerId unknown_reference']);
});

test('a refused POST leaves nothing behind: no record, no log entry, and its key can be used again', async (t) => {
  const { client, database } = t.context;
  const key = 'used-after-a-refusal';
  const count = async (): Promise<unknown> =>
    (
      await database.primary.query(`select (select count(*) from probe.installaties where naam = 'geweigerd') records,
        (select count(*) from probe.logboeken where wijzigingen::text like '%"geweigerd"%') entries,
        (select count(*) from gateway.idempotency where key = '${key}') keys`)
    ).rows[0];
  const body = { naam: 'geweigerd', customerId: await customerOf(database, 1) };
  t.is((await post(client, body, { key })).status, 400);
  t.deepEqual(await count(), { records: '0', entries: '0', keys: '0' });
  t.is((await post(client, { ...body, customerId: await customerOf(database) }, { key })).status, 201);
  t.deepEqual(await count(), { records: '1', entries: '1', keys: '1' });
});

test('records are created in the workspace of the token and no other', async (t) => {
  const { client, database } = t.context;
  const token = await database.token({ workspace: 1 });
  const { id } = await created(client, { naam: 'ander', customerId: await customerOf(database, 1) }, { token });
  t.is((await client.get(`/installaties/${id}`)).status, 404);
  t.is((await client.get(`/installaties/${id}`, { token })).status, 200);
});

test('a value that the API cleans is cleaned in the answer to a create, too, and in its replay', async (t) => {
  const { database } = t.context;
  const folder = mkdtempSync(join(tmpdir(), 'gateway-cleaned-'));
  t.teardown(() => rmSync(folder, { recursive: true }));
  cpSync(database.settings.resourcesDir || 'config/resources', folder, { recursive: true });
  const file = join(folder, 'installaties.json');
  const definition = JSON.parse(readFileSync(file, 'utf8'));
  definition.fields.omschrijving.clean = 'text-images';
  writeFileSync(file, JSON.stringify({ ...definition, $schema: undefined }));
  const { client } = await database.gateway({ resourcesDir: folder });
  const image =
    'data:image/png;base64,iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJAAAADUlEQVR42mNk+M9QDwADhgGAWjR9awAAAABJRU5ErkJggg==';
  const body = { naam: 'beeld', omschrijving: image, customerId: await customerOf(database) };
  const replies = [await post(client, body, { key: 'image' }), await post(client, body, { key: 'image' })];
  t.deepEqual(
    replies.map((reply) => [reply.status, reply.json<Installation>().omschrijving]),
    [
      [201, null],
      [201, null],
    ],
  );
  t.is(replies[0]?.text, replies[1]?.text);
});

test.serial('a create whose record the app drops is a 500 and leaves the key free', async (t) => {
  const { client, database } = t.context;
  const body = { naam: 'gedropt', customerId: await customerOf(database) };
  await database.primary.query(
    `create function app_drops() returns trigger language plpgsql as 'begin return null; end'`,
  );
  await database.primary.query(
    `create trigger a_drop before insert on ${app.installations} for each row execute function app_drops()`,
  );
  t.is((await post(client, body, { key: 'dropped' })).status, 500);
  const { rows } = await database.primary.query("select from gateway.idempotency where key = 'dropped'");
  t.is(rows.length, 0);
  await database.primary.query(`drop trigger a_drop on ${app.installations}`);
  t.is((await post(client, body, { key: 'dropped' })).status, 201);
});

test('a used key and an unknown customer are named before a value that its column cannot hold', async (t) => {
  const { database } = t.context;
  const folder = mkdtempSync(join(tmpdir(), 'gateway-unbounded-'));
  t.teardown(() => rmSync(folder, { recursive: true }));
  cpSync(database.settings.resourcesDir || 'config/resources', folder, { recursive: true });
  const file = join(folder, 'installaties.json');
  const definition = JSON.parse(readFileSync(file, 'utf8'));
  definition.fields.bouwjaar.write.schema.maximum = 4_000_000_000;
  writeFileSync(file, JSON.stringify({ ...definition, $schema: undefined }));
  const { client } = await database.gateway({ resourcesDir: folder });
  const body = { naam: 'x', bouwjaar: 3_000_000_000, customerId: await customerOf(database) };
  // Where ids of customers are integers, too, PostgreSQL does not say which of the two it refused.
  const refused = faultsOf(await post(client, body, { key: 'unbounded' })).map((fault) =>
    fault.replace('/bouwjaar', ''),
  );
  t.deepEqual(refused, [' out_of_range']);
  const unknown = { ...body, customerId: app.unknownId };
  t.deepEqual(faultsOf(await post(client, unknown, { key: 'unbounded' })), ['/customerId unknown_reference']);
  t.is((await post(client, { ...body, bouwjaar: 2019 }, { key: 'unbounded' })).status, 201);
  t.is(codeOf(await post(client, body, { key: 'unbounded' })), 'idempotency_key_reused');
});
