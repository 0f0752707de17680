import { app } from '../support/app.js';
import type { ApiReply } from '../support/client.js';
import { withInstallations } from '../support/definitions.js';
import { codeOf, faultsOf, records } from '../support/lists.js';
import { customerOf, logStatements, statementsOn } from '../support/primary-side.js';
import { words } from '../support/words.js';
import { gatewayTest, type TestContext } from '../support/workspace.js';
import { created, etagOf, type Installation, newKey, patch, post } from '../support/writes.js';

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
  for (const member of ['omschrijving', 'locatie', 'merk', 'type', 'serienummer', 'bouwjaar', 'inbedrijfstelling'])
    t.is(record[member], null, member);
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
  const names = ['e\u0301', '\u00e9', ' spatie ', '\u202e', '🧊'.repeat(200), '"\\/\b\f\n\r\t', "'; drop table x; --"];
  for (const naam of names) t.is((await created(client, { naam, customerId })).naam, naam);
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

test('an image that a client writes is null in the answer to a create, too, and in its replay', async (t) => {
  const { client, database } = t.context;
  const image = `data:image/png;base64,iVBORw0KGgo${'A'.repeat(300)}`;
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
  const changed = withInstallations(t, (definition) => {
    definition.fields.bouwjaar.write.schema.maximum = 4_000_000_000;
  });
  const { client } = await database.gateway(changed);
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

const full = {
  naam: 'Koelcel',
  omschrijving: 'oud',
  locatie: 'Kelder',
  merk: 'Daikin',
  type: 'X',
  serienummer: '1',
  bouwjaar: 2001,
  inbedrijfstelling: '2001-02-03',
};

test('PATCH changes the members given, leaves the others, and moves the version by one', async (t) => {
  const { client, database } = t.context;
  const before = await created(client, { ...full, customerId: await customerOf(database) });
  const reply = await patch(client, before.id, etagOf(before), { naam: 'Nieuw', bouwjaar: 2002 });
  t.is(reply.status, 200);
  const { updatedAt, ...after } = reply.json<Installation>();
  const { updatedAt: updatedBefore, ...rest } = before;
  t.deepEqual(after, { ...rest, naam: 'Nieuw', bouwjaar: 2002, version: before.version + 1 } as never);
  t.true((updatedAt as string) > (updatedBefore as string));
  t.is(reply.headers.etag, etagOf(before, 1));
  t.is(reply.headers.location, undefined);
});

test('null clears every nullable member, and only those', async (t) => {
  const { client, database } = t.context;
  const before = await created(client, { ...full, customerId: await customerOf(database) });
  const { naam: _, ...nullable } = full;
  const cleared = Object.fromEntries(Object.keys(nullable).map((name) => [name, null]));
  const reply = await patch(client, before.id, etagOf(before), cleared);
  t.like(reply.json<Installation>(), { ...cleared, naam: 'Koelcel', version: before.version + 1 });
  const refused = await patch(client, before.id, etagOf(before, 1), { naam: null, customerId: null });
  t.is(refused.status, 400);
});

test('an empty PATCH, and a PATCH with the stored values, change nothing and log nothing', async (t) => {
  const { client, database } = t.context;
  const before = await created(client, { ...full, customerId: await customerOf(database) });
  const { id, version, createdAt, updatedAt, customerId } = before;
  for (const body of [{}, { naam: full.naam }, { ...full, customerId }]) {
    const reply = await patch(client, id, etagOf(before), body);
    t.is(reply.status, 200);
    t.like(reply.json<Installation>(), { version, createdAt, updatedAt });
    t.is(reply.headers.etag, etagOf(before));
  }
  const { rows } = await database.primary.query('select actie from probe.logboeken where entiteit_id = $1', [id]);
  t.deepEqual(rows, [{ actie: app.log.created }]);
});

test('an installation can be given to another customer of the workspace, and to no other', async (t) => {
  const { client, database } = t.context;
  const before = await created(client, { ...full, customerId: await customerOf(database) });
  const { rows } = await database.primary.query('select max(id::text) id from probe.klanten where workspace_id = $1', [
    database.workspaces[0]?.id,
  ]);
  const reply = await patch(client, before.id, etagOf(before), { customerId: rows[0].id });
  t.is(reply.json<Installation>().customerId, rows[0].id);
  const refused = await patch(client, before.id, etagOf(before, 1), { customerId: await customerOf(database, 1) });
  t.is(codeOf(refused), 'invalid_request');
});

test('a PATCH leaves columns that only the app may change as they are', async (t) => {
  const { client, database } = t.context;
  const before = await created(client, { ...full, customerId: await customerOf(database) });
  const owned = {
    koudemiddel: 'R32',
    koudemiddelGwp: 675,
    vullingKg: 2.4,
    interneNotities: 'geheim',
    lmraVerplicht: true,
  };
  await database.primary.query(
    `update probe.installaties set koudemiddel = 'R32', koudemiddel_gwp = 675, vulling_kg = 2.4, interne_notities = 'geheim',
      lmra_verplicht = true${app.moves} where id = $1`,
    [before.id],
  );
  const reply = await patch(client, before.id, etagOf(before, 1), { naam: 'anders', locatie: null });
  t.like(reply.json<Installation>(), { ...owned, naam: 'anders', version: before.version + 2 });
});

test('an id of another workspace, an unknown id and a malformed id get the same 404', async (t) => {
  const { client, database } = t.context;
  const token = await database.token({ workspace: 1 });
  const foreign = await created(client, { naam: 'x', customerId: await customerOf(database, 1) }, { token });
  const ids = [foreign.id, app.unknownId, 'x', '%00', foreign.id.toUpperCase()];
  for (const id of ids) {
    const reply = await patch(client, id, '"v1"', { naam: 'gekaapt' });
    const { requestId: _, ...problem } = reply.json<Record<string, unknown>>();
    t.deepEqual(problem, {
      type: 'urn:workspace-data-api:problem:not_found',
      title: 'Not found',
      status: 404,
      detail: 'There is no such record.',
      code: 'not_found',
    });
    t.is(reply.headers.etag, undefined);
  }
  t.is((await client.get(`/installaties/${foreign.id}`, { token })).json<Installation>().naam, 'x');
});

interface Entry {
  readonly entity: string;
  readonly entityId: string;
  readonly actie: string;
  readonly actor: { readonly type: string; readonly id: string };
  readonly tijdstip: string;
  readonly wijzigingen: { readonly veld: string; readonly oud: unknown; readonly nieuw: unknown }[];
}

async function entriesOf({ client, database }: TestContext, id: string): Promise<Entry[]> {
  await database.caughtUp();
  return records<Entry>(client, `/logboeken?entity=${app.log.installation}&entityId=${id}`);
}

test('creating writes one entry: the token as actor, and each field given, with its value where the log shows it', async (t) => {
  const { client, database, token } = t.context;
  const customerId = await customerOf(database);
  const body = { naam: 'Koelcel', customerId, bouwjaar: 2019, inbedrijfstelling: '2020-02-29', merk: null };
  const { id } = await created(client, body);
  const { rows } = await database.primary.query<{ id: string }>(
    'select id from gateway.api_tokens where token_hash = sha256($1)',
    [Buffer.from(token)],
  );
  const [entry, ...others] = await entriesOf(t.context, id);
  t.deepEqual(others, []);
  const { tijdstip, wijzigingen, ...rest } = entry as Entry;
  t.like(rest, {
    entity: app.log.installation,
    entityId: id,
    actie: app.log.created,
    actor: { type: app.log.token, id: rows[0]?.id as string },
  });
  t.true(Math.abs(Date.now() - Date.parse(tijdstip)) < 10_000);
  t.deepEqual(
    Object.fromEntries(wijzigingen.map(({ veld, oud, nieuw }) => [veld, [oud, nieuw]])),
    Object.fromEntries<unknown[]>([
      [app.logged.bouwjaar, [null, 2019]],
      [app.logged.inbedrijfstelling, [null, '2020-02-29']],
      [app.logged.customerId, [null, customerId]],
      [app.logged.naam, [undefined, undefined]],
    ]),
  );
});

test('changing writes one entry with the old and the new values of the fields that the log shows, as JSON of their types', async (t) => {
  const { client, database } = t.context;
  const customerId = await customerOf(database);
  const record = await created(client, { naam: 'Koelcel', customerId, bouwjaar: 2019, locatie: 'Kelder' });
  await patch(client, record.id, etagOf(record), { naam: 'Koelcel', bouwjaar: 2020, locatie: null, merk: 'Daikin' });
  const [, changed, ...others] = await entriesOf(t.context, record.id);
  t.deepEqual(others, []);
  t.is(changed?.actie, app.log.changed);
  t.deepEqual(
    Object.fromEntries((changed?.wijzigingen ?? []).map(({ veld, oud, nieuw }) => [veld, [oud, nieuw]])),
    Object.fromEntries<unknown[]>([
      [app.logged.bouwjaar, [2019, 2020]],
      [app.logged.locatie, [undefined, undefined]],
      [app.logged.merk, [null, 'Daikin']],
    ]),
  );
});

test('a token without read:installaties gets back the writable members, the id, the version and the timestamps', async (t) => {
  const { client, database } = t.context;
  const token = await database.token({ scopes: ['write:installaties'] });
  const customerId = await customerOf(database);
  const shown = words(`
    id customerId naam omschrijving locatie merk type serienummer bouwjaar inbedrijfstelling version createdAt
    updatedAt`);
  const key = newKey();
  const replies = [
    await post(client, { naam: 'x', customerId }, { token, key }),
    await post(client, { naam: 'x', customerId }, { token, key }),
  ];
  const record = (replies[0] as ApiReply).json<Installation>();
  const { id } = record;
  await database.primary.query(
    `update probe.installaties set interne_notities = 'geheim', koudemiddel = 'R32'${app.moves} where id = $1`,
    [id],
  );
  replies.push(
    await patch(client, id, etagOf(record, 1), { naam: 'y' }, { token }),
    await patch(client, id, etagOf(record, 2), {}, { token }),
  );
  for (const reply of replies) {
    t.deepEqual(Object.keys(reply.json<object>()), shown);
    t.false(/geheim|R32/.test(reply.text));
  }
  t.is((await client.get(`/installaties/${id}`, { token })).status, 403);
});

// Each request has several things wrong with it; the answer tells which one is looked at first.

const unknown = app.unknownId;
const wrong = { accept: 'text/html', 'content-type': 'text/plain', 'idempotency-key': '' };
const huge = ' '.repeat(70_000);

test('the token comes first, then the limits, the scope, Accept, the media type and the size', async (t) => {
  const { client, database } = t.context;
  const path = '/installaties?x=1';
  const send = async (headers: object, token?: string): Promise<string> =>
    codeOf(await client.request('POST', path, { body: huge, headers: { ...headers }, ...(token && { token }) }));
  t.is(await send(wrong, 'x'), 'token_invalid');
  const limited = await database.gateway({ rateLimitPerMinute: 1 });
  const poor = await database.token({ scopes: ['read:installaties'] });
  const atLimit = { body: huge, headers: wrong, token: poor };
  t.is(codeOf(await limited.client.request('POST', path, atLimit)), 'insufficient_scope');
  t.is(codeOf(await limited.client.request('POST', path, atLimit)), 'rate_limited');
  const { client: fewWrites } = await database.gateway({ writesPerMinute: 1 });
  t.is(codeOf(await fewWrites.request('POST', path, { ...atLimit, token: 'x' })), 'token_invalid');
  t.is(codeOf(await fewWrites.request('POST', path, atLimit)), 'insufficient_scope');
  t.is(codeOf(await fewWrites.request('POST', path, atLimit)), 'rate_limited');
  t.is(await send(wrong, poor), 'insufficient_scope');
  t.is(await send(wrong), 'not_acceptable');
  t.is(await send({ ...wrong, accept: '*/*' }), 'unsupported_media_type');
  t.is(await send({ 'idempotency-key': '' }), 'payload_too_large');
});

test('then come parameters and headers, a missing If-Match, and the body', async (t) => {
  const { client } = t.context;
  const send = async (path: string, headers: object): Promise<string> =>
    codeOf(await client.request('PATCH', path, { body: '{', headers: { ...headers } }));
  t.is(await send('/installaties/x?x=1', {}), 'invalid_request');
  t.is(await send('/installaties/x', {}), 'idempotency_key_missing');
  t.is(await send('/installaties/x', { 'idempotency-key': 'a b' }), 'idempotency_key_invalid');
  t.is(await send('/installaties/x', { 'idempotency-key': 'a' }), 'precondition_required');
  t.is(await send('/installaties/x', { 'idempotency-key': 'a', 'if-match': '*' }), 'if_match_invalid');
  t.is(await send('/installaties/x', { 'idempotency-key': 'a', 'if-match': '"v1"' }), 'malformed_json');
});

test('then the key, whether the record is there, and its version', async (t) => {
  const { client, database } = t.context;
  const record = await created(client, { naam: 'x', customerId: await customerOf(database) });
  const key = newKey();
  t.is((await patch(client, record.id, etagOf(record), { naam: 'y' }, { key })).status, 200);
  t.is(codeOf(await patch(client, unknown, '"v9"', { naam: 'z' }, { key })), 'idempotency_key_reused');
  t.is(codeOf(await patch(client, unknown, '"v9"', { naam: 'z' })), 'not_found');
  t.is(codeOf(await patch(client, record.id, '"v9"', { naam: 'z' })), 'precondition_failed');
  t.is(codeOf(await patch(client, record.id, '"v9"', { customerId: unknown })), 'invalid_request');
});

test.serial('nothing reaches the primary before the request has been checked', async (t) => {
  const { database } = t.context;
  await logStatements(database);
  const { client } = await database.gateway();
  const checks = (await statementsOn(database)).length; // those of the start read the views under the gateway's name
  const since = async (): Promise<string[]> => (await statementsOn(database)).slice(checks);
  const customerId = await customerOf(database);
  const poor = await database.token({ scopes: ['read:installaties'] });
  const refused = [
    await post(client, { naam: 'x', customerId }, { token: poor }),
    await post(client, { naam: 'x', customerId }, { key: 'a b' }),
    await post(client, { naam: 'x', customerId }, { headers: { accept: 'text/html' } }),
    await post(client, { naam: 'x', customerId }, { headers: { 'content-type': 'text/plain' } }),
    await post(client, huge),
    await post(client, '{'),
    await post(client, { naam: 'x', customerId, koudemiddel: 'R32' }),
    await post(client, { naam: 'x' }),
    await patch(client, unknown, '*', {}),
    await patch(client, unknown, '"v1"', { bouwjaar: 1 }),
  ];
  t.true(refused.every(({ status }) => status >= 400 && status < 500));
  t.deepEqual(await since(), []);
  await created(client, { naam: 'x', customerId });
  t.is((await since()).filter((line) => /begin/.test(line)).length, 1);
});
