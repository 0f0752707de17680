import { customerPlain } from '../../demo/seed/plain.js';
import { secondSizesOf, sizesOf } from '../../demo/seed/sizes.js';
import { makeToken } from '../../src/serve/http/token-format.js';
import { encodeCursor, makeCursorContext } from '../../src/serve/read/cursor.js';
import { app, appName, type Customer, customerOf, undecodable } from '../support/app.js';
import type { ApiClient } from '../support/client.js';
import { codeOf, type ListName, listNames, type Page, records } from '../support/lists.js';
import { clonedRows } from '../support/template.js';
import { eventually, gatewayTest } from '../support/workspace.js';

const test = gatewayTest();
// One at a time: the client reads and checks large pages in the process that serves them.
type Json = Record<string, unknown>;

const members: Readonly<Record<ListName, string>> = {
  klanten: 'id naam adres kvkNummer createdAt updatedAt',
  installaties:
    'id customerId naam omschrijving locatie merk type serienummer bouwjaar inbedrijfstelling koudemiddel koudemiddelGwp vullingKg interneNotities lmraVerplicht version createdAt updatedAt',
  werkbonnen: 'id installationId nummer datum status omschrijving handelingen uren ondertekendOp createdAt updatedAt',
  logboeken: 'id entity entityId actie actor tijdstip wijzigingen',
};
const timestamp = /^\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d{3}Z$/;

for (const [list, names] of Object.entries(members)) {
  test.serial(`${list}: every record has all its members, null where there is no value, and no other`, async (t) => {
    const all = await records<Json>(t.context.client, `/${list}?perPage=1000`);
    for (const { decodeErrors: _, ...record } of all) t.is(Object.keys(record).join(' '), names);
    for (const record of all) {
      for (const [name, value] of Object.entries(record)) {
        if (/At$|Op$|tijdstip/.test(name) && value !== null) t.regex(value as string, timestamp);
        if (/^(datum|inbedrijfstelling)$/.test(name) && value !== null) t.regex(value as string, /^\d{4}-\d\d-\d\d$/);
        if (/^id$|Id$/.test(name)) t.is(typeof value, 'string');
      }
    }
  });
}

test.serial('the parts of a record have all their members as well', async (t) => {
  const { client } = t.context;
  const partsOf = (all: Json[], name: string) =>
    new Set(all.flatMap((r) => [r[name]].flat()).map((p) => Object.keys(p as Json).join(' ')));
  const [klanten, werkbonnen, logboeken] = [
    await records<Json>(client, '/klanten?perPage=1000'),
    await records<Json>(client, '/werkbonnen?perPage=1000'),
    await records<Json>(client, '/logboeken?perPage=1000'),
  ];
  t.deepEqual([...partsOf(klanten, 'adres')], ['straat huisnummer toevoeging postcode plaats land']);
  t.deepEqual([...partsOf(werkbonnen, 'handelingen')], ['id code omschrijving resultaat gegevens']);
  t.deepEqual([...partsOf(werkbonnen, 'uren')], ['id medewerker datum van tot uren']);
  t.deepEqual([...partsOf(logboeken, 'actor')], ['type id']);
  t.deepEqual([...partsOf(logboeken, 'wijzigingen')].sort(), ['veld afgeschermd', 'veld oud nieuw']);
});

test.serial('installations are those of the table, value by value', async (t) => {
  const { client, database } = t.context;
  const { rows } = await database.primary.query<Json>(
    `select id, klant_id as "customerId", naam, omschrijving, locatie, merk, type, serienummer, bouwjaar,
       inbedrijfstelling::text, koudemiddel, koudemiddel_gwp as "koudemiddelGwp", vulling_kg::float8 as "vullingKg",
       interne_notities as "interneNotities", lmra_verplicht as "lmraVerplicht", version::int,
       to_char(created_at at time zone 'UTC', 'YYYY-MM-DD"T"HH24:MI:SS.MS"Z"') as "createdAt",
       to_char(updated_at at time zone 'UTC', 'YYYY-MM-DD"T"HH24:MI:SS.MS"Z"') as "updatedAt"
     from probe.installaties i where workspace_id = $1 order by i.created_at, i.id`,
    [database.workspaces[0]?.id],
  );
  t.deepEqual(await records(client, '/installaties?perPage=1000'), rows);
});

test.serial('work orders are those of the table, but for their signature, to the last control character', async (t) => {
  const { client, database } = t.context;
  const { rows } = await database.primary.query<Json>(
    `select id, installatie_id as "installationId", nummer, datum::text, status, omschrijving,
       to_char(ondertekend_op at time zone 'UTC', 'YYYY-MM-DD"T"HH24:MI:SS.MS"Z"') as "ondertekendOp",
       to_char(created_at at time zone 'UTC', 'YYYY-MM-DD"T"HH24:MI:SS.MS"Z"') as "createdAt",
       to_char(updated_at at time zone 'UTC', 'YYYY-MM-DD"T"HH24:MI:SS.MS"Z"') as "updatedAt"
     from probe.werkbonnen w where workspace_id = $1 order by w.datum, w.id`,
    [database.workspaces[0]?.id],
  );
  const shown = await records<Json>(client, '/werkbonnen?perPage=1000');
  const orders = shown.map(({ handelingen: _, uren: __, ...order }) => order);
  t.deepEqual(orders, rows);
});

test.serial('amounts are JSON numbers that lose nothing, however many digits they have', async (t) => {
  const { client, database } = t.context;
  const { rows } = await database.primary.query<{ id: string; kg: string }>(
    `with picked as (select id, row_number() over () as n from probe.installaties where workspace_id = $1 limit 4)
     update probe.installaties i set vulling_kg = (array[9999999.999, 0, 0.001, 1234567.100])[picked.n]
     from picked where i.id = picked.id returning i.id, vulling_kg::text as kg`,
    [database.workspaces[1]?.id],
  );
  const token = await database.token({ workspace: 1 });
  t.is(rows.length, 4);
  await database.caughtUp();
  for (const { id, kg } of rows) {
    const { text } = await client.get(`/installaties/${id}`, { token });
    t.is(/"vullingKg":([^,]+),/.exec(text)?.[1], kg);
  }
  const { text } = await client.get('/installaties?perPage=100', { token });
  const all = await database.primary.query<{ kg: string | null }>(
    'select vulling_kg::text as kg from probe.installaties i where workspace_id = $1 order by i.created_at, i.id',
    [database.workspaces[1]?.id],
  );
  const amounts = [...text.matchAll(/"vullingKg":([^,]+),/g)].map(([, kg]) => kg);
  const stored = all.rows.map(({ kg }) => kg ?? 'null');
  t.deepEqual(amounts, stored);
});

test('microseconds are cut, not rounded, and an infinite moment does not break the record', async (t) => {
  const { client, database } = t.context;
  const { rows } = await database.primary.query<{ id: string }>(
    `insert into probe.klanten (id, workspace_id, created_at, updated_at) values
       (probe.new_id(), $1, '2026-03-29 00:59:59.999999+00', '2026-03-29 02:00:00+02'),
       (probe.new_id(), $1, '2026-03-29 01:00:00.0001+00', 'infinity') returning id`,
    [database.workspaces[1]?.id],
  );
  await database.caughtUp();
  const token = await database.token({ workspace: 1 });
  const read = async (i: number) =>
    (await client.get(`/klanten/${rows[i]?.id}`, { token, unchecked: true })).json<Json>();
  t.like(await read(0), { createdAt: '2026-03-29T00:59:59.999Z', updatedAt: '2026-03-29T00:00:00.000Z' });
  t.like(await read(1), { createdAt: '2026-03-29T01:00:00.000Z', updatedAt: null });
});

type Klant = Customer & { readonly createdAt: string; readonly updatedAt: string };

// Serial: before the others add customers.
for (const workspace of [0, 1]) {
  test.serial(
    `every customer of workspace ${workspace + 1} comes out readable and equal to what the seed put in`,
    async (t) => {
      const { client, database } = t.context;
      const token = await database.token({ workspace });
      const sizes = sizesOf(clonedRows[appName]);
      const count = (workspace === 0 ? sizes : secondSizesOf(sizes)).customers;
      const wanted = new Map(
        Array.from({ length: count }, (_, i) => customerOf(workspace, i + 1)).map((k) => [k.id, k]),
      );
      const found = await records<Klant>(client, '/klanten?perPage=250', { token });
      t.is(found.length, count);
      for (const { createdAt: _, updatedAt: __, ...klant } of found)
        t.deepEqual(klant, wanted.get(klant.id) as typeof klant);
    },
  );
}

test('no other value of a customer is shown: no e-mail, no telephone', async (t) => {
  const { text } = await t.context.client.get('/klanten?perPage=1000');
  t.false(/enc:v/i.test(text));
  for (let n = 1; n <= sizesOf(clonedRows[appName]).customers; n++) {
    const { email, telefoon } = customerPlain(0, n);
    t.false(text.includes(email ?? '@') || text.includes(telefoon ?? '@'), `customer ${n}`);
  }
});

test('a value that cannot be decoded is null in the detail as well, and fails nothing else', async (t) => {
  const { client } = t.context;
  for (const { id, n } of undecodable) {
    const reply = await client.get(`/klanten/${id}`);
    t.is(reply.status, 200);
    const { createdAt: _, updatedAt: __, ...klant } = reply.json<Klant>();
    t.deepEqual(klant, customerOf(0, n));
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
  const failed = undecodable.flatMap(({ id, pointers }) => pointers.map((pointer) => `${id} ${pointer}`));
  const named = lines.map(({ row, pointer }) => `${row} ${pointer}`);
  const unnamed = named.filter((each) => !failed.includes(each));
  t.deepEqual(unnamed, []);
  const pointers = [...new Set(undecodable.flatMap((each) => each.pointers))].sort();
  t.deepEqual([...new Set(lines.map(({ pointer }) => pointer as string))].sort(), pointers);
  const { rows } = await t.context.database.primary.query<Record<string, unknown>>(
    'select to_jsonb(k) - array[$2, $3, $4] as stored from probe.klanten k where id = any ($1)',
    [undecodable.map(({ id }) => id), 'id', 'workspace_id', 'vault_key'],
  );
  t.is(rows.length, undecodable.length);
  for (const value of rows.flatMap(({ stored }) => Object.values(stored as object)))
    if (value !== null) t.false(log().includes(String(value)));
  const metrics = await (await fetch(`${gateway.opsUrl}/metrics`)).text();
  for (const pointer of pointers) {
    const count = undecodable.filter((each) => each.pointers.includes(pointer)).length;
    const counted = [
      ...metrics.matchAll(
        new RegExp(
          `^gateway_decode_errors_total\\{resource="klanten",pointer="${pointer}",reason="\\w+"\\} (\\d+)$`,
          'gm',
        ),
      ),
    ];
    const sum = counted.reduce((sum, [, value]) => sum + Number(value), 0);
    t.is(sum, count, pointer);
  }
});

const logged = gatewayTest({ logLevel: 'trace' });

logged('the log of a run with every kind of read holds no token, name, address or KvK number', async (t) => {
  const { client, database, token, log, gateway } = t.context;
  const plain = Array.from({ length: sizesOf(clonedRows[appName]).customers }, (_, i) => customerPlain(0, i + 1));
  const [customer] = plain as [ReturnType<typeof customerPlain>];
  const others = [makeToken(), await database.token({ expiresAt: new Date(0) }), await database.token({ scopes: [] })];
  for (const list of listNames) {
    await records(client, `/${list}?perPage=1000`);
    for (const other of others) await client.get(`/${list}`, { token: other });
    for (const query of [`access_token=${token}`, `q=${encodeURIComponent(customer.naam)}`, 'perPage=0', 'cursor=x']) {
      await client.get(`/${list}?${query}`);
      await client.get(`/${list}?${query}`, { token: null });
    }
    const forged = encodeCursor(makeCursorContext(database.workspaces[0]?.id as string, list, {}), {
      key: [token, customer.naam],
      asOfMs: null,
    });
    await client.get(`/${list}?cursor=${forged}`);
    await client.get(`/${list}/${encodeURIComponent(customer.naam)}/${token}`);
  }
  for (let n = 1; n <= 50; n++) await client.get(`/klanten/${app.customerId(0, n)}`);
  for (const name of [customer.naam, customer.adres.postcode, token]) {
    await client.get(`/klanten/${encodeURIComponent(name)}`);
    await client.get(`/logboeken?entityId=${encodeURIComponent(name)}`);
    await client.get(`/installaties?customerId=${encodeURIComponent(name)}`);
    await client.get('/klanten', {
      headers: { 'x-request-id': `x ${name}`, 'user-agent': name.replace(/[^ -~]/g, '?'), cookie: `t=${token}` },
    });
  }
  await eventually(t, 'the log', () => log().split('request_finished').length > 100);
  const told = log() + (await (await fetch(`${gateway.opsUrl}/metrics`)).text());
  for (const secret of [token, ...others]) t.false(told.includes(secret.slice(4, 40)));
  t.notRegex(told, /wdg_|enc:v|Bearer|postgres:\/\//);
  for (const { naam, adres, kvkNummer, email, telefoon } of plain) {
    for (const value of [naam, kvkNummer, email, telefoon, adres.postcode, adres.straat])
      if (value !== null) t.false(told.includes(value) || told.includes(JSON.stringify(value).slice(1, -1)), value);
    t.false(new RegExp(`[" ]${adres.plaats}[" ]`).test(told), adres.plaats);
  }
});

logged('the log has an entry for every request: its id, route, status, duration and the id of its token', async (t) => {
  const { client, log, database } = t.context;
  for (const [path, route, status] of [
    ['/klanten?perPage=1', '/api/v1/klanten', 200],
    ['/klanten/x', '/api/v1/klanten/:id', 404],
    ['/facturen', 'none', 404],
  ] as const) {
    const id = `log-${Math.random()}`;
    await client.get(path, { headers: { 'x-request-id': id } });
    await eventually(t, 'the line', () => log().includes(id));
    const line = JSON.parse(
      log()
        .split('\n')
        .find((each) => each.includes(id)) as string,
    ) as Record<string, unknown>;
    t.like(line, { requestId: id, method: 'GET', route, status });
    t.is(typeof line.durationMs, 'number');
    t.is(line.workspace, database.workspaces[0]?.id);
    const isList = route === '/api/v1/klanten';
    t.like(line, { level: 'info', version: '1.0.0', rows: isList ? 1 : null, perPage: isList ? 1 : null });
    t.regex(String(line.time), /^\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d{3}Z$/);
    t.true(Number(line.bytes) > 500, `${line.bytes} bytes`);
    t.false('address' in line);
  }
});

logged("the log has the clients' addresses where LOG_CLIENT_ADDRESS says so", async (t) => {
  const { client, log } = await t.context.database.gateway({ logClientAddress: true, trustedProxyHops: 1 });
  await client.get('/klanten?perPage=1', { headers: { 'x-forwarded-for': '192.0.2.7' } });
  await eventually(t, 'the line', () => log().includes('"address":"192.0.2.7"'));
  t.is(log().split('"address":"192.0.2.7"').length, 2, 'one request came from there');
});

async function anInstallation(client: ApiClient): Promise<{ path: string; etag: string }> {
  const [record] = (await client.get('/installaties?perPage=1')).json<Page<{ id: string; version: number }>>().data;
  return { path: `/installaties/${record?.id}`, etag: `"v${record?.version}"` };
}

test('the detail of an installation has a strong ETag that moves with its version when the app changes it', async (t) => {
  const { client, database } = t.context;
  const { rows } = await database.primary.query<{ id: string }>(
    'select id from probe.installaties where workspace_id = $1 order by id desc limit 1',
    [database.workspaces[0]?.id],
  );
  const path = `/installaties/${rows[0]?.id}`;
  const before = await client.get(path);
  t.regex(before.headers.etag as string, /^"[!#-~]+"$/);
  t.is((await client.get(path)).headers.etag, before.headers.etag);
  await database.primary.query(`update probe.installaties set interne_notities = 'x'${app.moves} where id = $1`, [
    rows[0]?.id,
  ]);
  await database.caughtUp();
  const after = await client.get(path, { headers: { 'if-none-match': before.headers.etag } });
  t.is(after.status, 200);
  t.not(after.headers.etag, before.headers.etag);
  t.is(after.json<{ version: number }>().version, before.json<{ version: number }>().version + 1);
});

test('If-None-Match that holds gives 304 without a body, also weakly, in a list, or as *', async (t) => {
  const { path, etag } = await anInstallation(t.context.client);
  for (const value of [etag, `W/${etag}`, `"x", ${etag}`, `"a,b" ,W/${etag},"c"`, `,, ${etag} ,`, '*', ' * ']) {
    const reply = await t.context.client.get(path, { headers: { 'if-none-match': value } });
    t.is(reply.status, 304, value);
    t.is(reply.text, '');
    t.is(reply.headers.etag, etag);
    t.is(reply.headers['content-type'], undefined);
    t.truthy(reply.headers['data-as-of']);
  }
});

test('If-None-Match that does not hold, or is no list of tags, gives the record', async (t) => {
  const { path, etag } = await anInstallation(t.context.client);
  const bare = etag.slice(1, -1);
  for (const value of [
    '"x"',
    'W/"x"',
    bare,
    `"${bare}x"`,
    `"${bare.toUpperCase()}"`,
    `'${bare}'`,
    `"${bare}`,
    'garbage',
    '',
    '**',
    `w/${etag}`,
  ]) {
    const reply = await t.context.client.get(path, { headers: { 'if-none-match': value } });
    t.is(reply.status, 200, value);
    t.is(reply.headers.etag, etag);
  }
});

test('an If-Match that matches gives the record, any other gives 412 with the current ETag, whatever If-None-Match says', async (t) => {
  const { path, etag } = await anInstallation(t.context.client);
  for (const value of [etag, `"x", ${etag}`, '*'])
    t.is((await t.context.client.get(path, { headers: { 'if-match': value } })).status, 200, value);
  for (const value of ['"x"', `W/${etag}`, `W/${etag}, "x"`, '""']) {
    const reply = await t.context.client.get(path, { headers: { 'if-match': value, 'if-none-match': etag } });
    t.is(reply.status, 412, value);
    t.is(codeOf(reply), 'precondition_failed');
    t.is(reply.headers.etag, etag);
  }
});

test('If-Match that is no list of tags is refused', async (t) => {
  const { path, etag } = await anInstallation(t.context.client);
  for (const value of [etag.slice(1, -1), `${etag} "x"`, `"x`, '*, "x"', 'W/*', '']) {
    const reply = await t.context.client.get(path, { headers: { 'if-match': value } });
    t.is(reply.status, 400, value);
    t.is(codeOf(reply), 'if_match_invalid');
  }
});

test('HEAD knows the same conditions', async (t) => {
  const { client } = t.context;
  const { path, etag } = await anInstallation(t.context.client);
  const head = (headers: Record<string, string>) => client.request('HEAD', path, { headers });
  t.is((await head({})).headers.etag, etag);
  t.is((await head({ 'if-none-match': etag })).status, 304);
  t.is((await head({ 'if-match': '"x"' })).status, 412);
});

test('lists, and details without a version, have no ETag and know no conditions', async (t) => {
  const { client } = t.context;
  const [klant] = (await client.get('/klanten?perPage=1')).json<Page>().data;
  for (const path of ['/installaties', `/klanten/${klant?.id}`]) {
    const reply = await client.get(path, { headers: { 'if-none-match': '*', 'if-match': '"x"' } });
    t.is(reply.status, 200);
    t.is(reply.headers.etag, undefined);
  }
});
