import { customerPlain } from '../../demo/seed/plain.js';
import { sizesOf } from '../../demo/seed/sizes.js';
import { newToken } from '../../src/http/token-format.js';
import { cursorContext, encodeCursor } from '../../src/read/page-ends.js';
import { app, appName } from '../support/app.js';
import { listNames, records } from '../support/lists.js';
import { clonedRows } from '../support/template.js';
import { eventually, gatewayTest } from '../support/workspace.js';

const test = gatewayTest({ logLevel: 'trace' });

test('the log of a run with every kind of read holds no token, name, address or KvK number', async (t) => {
  const { client, database, token, log, gateway } = t.context;
  const plain = Array.from({ length: sizesOf(clonedRows[appName]).customers }, (_, i) => customerPlain(0, i + 1));
  const [customer] = plain as [ReturnType<typeof customerPlain>];
  const others = [newToken(), await database.token({ expiresAt: new Date(0) }), await database.token({ scopes: [] })];
  for (const list of listNames) {
    await records(client, `/${list}?perPage=1000`);
    for (const other of others) await client.get(`/${list}`, { token: other });
    for (const query of [`access_token=${token}`, `q=${encodeURIComponent(customer.naam)}`, 'perPage=0', 'cursor=x']) {
      await client.get(`/${list}?${query}`);
      await client.get(`/${list}?${query}`, { token: null });
    }
    const forged = encodeCursor(cursorContext(database.workspaces[0]?.id as string, list, {}), {
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
    for (const value of [naam, kvkNummer, email, telefoon, adres.postcode, adres.straat]) {
      if (value !== null) t.false(told.includes(value) || told.includes(JSON.stringify(value).slice(1, -1)), value);
    }
    t.false(new RegExp(`[" ]${adres.plaats}[" ]`).test(told), adres.plaats);
  }
});

test('the log has an entry for every request: its id, route, status, duration and the id of its token', async (t) => {
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
    t.is(line.workspace, route === 'none' ? null : (database.workspaces[0]?.id as string));
    const isList = route === '/api/v1/klanten';
    t.like(line, { level: 'info', version: '1.0.0', rows: isList ? 1 : null, perPage: isList ? 1 : null });
    t.regex(String(line.time), /^\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d{3}Z$/);
    t.true(Number(line.bytes) > 500, `${line.bytes} bytes`);
    t.false('address' in line);
  }
});

test("the log has the clients' addresses where LOG_CLIENT_ADDRESS says so", async (t) => {
  const { client, log } = await t.context.database.gateway({ logClientAddress: true, trustedProxyHops: 1 });
  await client.get('/klanten?perPage=1', { headers: { 'x-forwarded-for': '192.0.2.7' } });
  await eventually(t, 'the line', () => log().includes('"address":"192.0.2.7"'));
  t.is(log().split('"address":"192.0.2.7"').length, 2, 'one request came from there');
});
