import { once } from 'node:events';
import { cpSync, mkdtempSync, rmSync, symlinkSync } from 'node:fs';
import { createServer } from 'node:http';
import { type AddressInfo, connect } from 'node:net';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { json, text } from 'node:stream/consumers';
import { urlAs } from '../../demo/cluster/passwords.js';
import { projectRoot } from '../../src/base/paths.js';
import { limitMs } from '../support/patience.js';
import { serveProcess } from '../support/serve-process.js';
import { eventually, gatewayTest, shared, type TestDatabase } from '../support/workspace.js';

const test = gatewayTest();

test('/livez says that the process is alive', async (t) => {
  const reply = await fetch(`${t.context.gateway.opsUrl}/livez`);
  t.is(reply.status, 200);
  t.deepEqual(await reply.json(), { status: 'alive' });
});

test('/readyz says that reads can be answered, and how each replica is', async (t) => {
  const reply = await fetch(`${t.context.gateway.opsUrl}/readyz`);
  t.is(reply.status, 200);
  const { replicas, ...rest } = (await reply.json()) as { replicas: { lagSeconds: number }[] };
  t.like(rest, { status: 'ready', reasons: [] });
  t.like(replicas[0], { name: replica(t.context).replaceAll('\\', ''), state: 'used' });
  t.true((replicas[0]?.lagSeconds ?? -1) >= 0);
});

test('without a replica /readyz says no and why, /livez still yes, and reads are 503 with Retry-After', async (t) => {
  const { database } = t.context;
  const nowhere = 'postgres://gateway_reader@127.0.0.1:1/nowhere';
  const { gateway, client } = await database.gateway({ replicaUrls: nowhere });
  const reply = await fetch(`${gateway.opsUrl}/readyz`);
  t.is(reply.status, 503);
  t.like(await reply.json(), { status: 'not ready', reasons: ['no healthy replica'] });
  t.is((await fetch(`${gateway.opsUrl}/readyz/writes`)).status, 200);
  const { gateway: reading } = await database.gateway({ primaryUrls: '' });
  t.is((await fetch(`${reading.opsUrl}/readyz`)).status, 200);
  t.is((await fetch(`${reading.opsUrl}/readyz/writes`)).status, 503);
  t.is((await fetch(`${gateway.opsUrl}/livez`)).status, 200);
  const read = await client.get('/klanten');
  t.is(read.status, 503);
  t.is(read.json<{ code: string }>().code, 'replica_unavailable');
  t.regex(read.headers['retry-after'] as string, /^\d+$/);
  t.is((await client.get('/openapi.json')).status, 200);
});

const named = (url: string, { name }: TestDatabase): string => `${new URL(url).host.replaceAll('.', '\\.')}/${name}`;
const replica = ({ database }: { database: TestDatabase }): string => named(shared.replicas[0] as string, database);
const primary = ({ database }: { database: TestDatabase }): string => named(shared.primary, database);

const everyServer = ({ settings, name }: TestDatabase): string =>
  `${settings.replicaUrls} ${urlAs(shared.primary, 'gateway_reader', name)}`;

test('lag that is not known is null in /readyz and absent from /metrics; the age of the data is there', async (t) => {
  const { database } = t.context;
  const { gateway } = await database.gateway({ replicaUrls: everyServer(database), primaryUrls: '' });
  const { replicas } = (await (await fetch(`${gateway.opsUrl}/readyz`)).json()) as { replicas: object[] };
  t.like(replicas[0], { state: 'used', lagSeconds: null });
  const metrics = await (await fetch(`${gateway.opsUrl}/metrics`)).text();
  t.notRegex(metrics, /^gateway_replica_lag_seconds\{/m);
  t.regex(metrics, new RegExp(`^gateway_data_age_seconds\\{replica="${replica(t.context)}"\\} \\d`, 'm'));
  const unknown = new RegExp(`^gateway_replica_healthy\\{replica="${primary(t.context)}"\\} 0$`, 'm');
  t.regex(metrics, unknown, 'a server out of recovery, of which nothing is known');
  const seen = await (await fetch(`${t.context.gateway.opsUrl}/metrics`)).text();
  t.regex(seen, new RegExp(`^gateway_replica_lag_seconds\\{replica="${replica(t.context)}"\\} \\d`, 'm'));
});

test('/metrics counts requests by route and status, problems by code, and shows the replicas', async (t) => {
  const { database } = t.context;
  const { gateway, client } = await database.gateway({ replicaUrls: everyServer(database) });
  await client.get('/klanten?perPage=1');
  await client.get('/klanten/x');
  await client.get('/klanten?perPage=0');
  const metrics = async () => (await fetch(`${gateway.opsUrl}/metrics`)).text();
  await eventually(t, 'the last request', async () =>
    (await metrics()).includes('gateway_problems_total{code="invalid_request"} 1'),
  );
  t.is(gateway.replicas[1]?.state.healthy, false);
  await eventually(
    t,
    'the primary known as such',
    async () => !new RegExp(`^gateway_replica_healthy\\{replica="${primary(t.context)}"`, 'm').test(await metrics()),
  );
  const scraped = await metrics();
  t.regex(scraped, /^gateway_request_seconds_count\{method="GET",route="\/api\/v1\/klanten",status="200"\} 1$/m);
  t.regex(scraped, /^gateway_request_seconds_count\{method="GET",route="\/api\/v1\/klanten\/:id",status="404"\} 1$/m);
  t.regex(scraped, /^gateway_problems_total\{code="not_found"\} 1$/m);
  t.regex(scraped, new RegExp(`^gateway_replica_healthy\\{replica="${replica(t.context)}"\\} 1$`, 'm'));
  t.regex(scraped, /^process_cpu_seconds_total /m);
  t.regex(scraped, /^gateway_rows_total\{route="\/api\/v1\/klanten"\} 1$/m);
  t.regex(scraped, /^gateway_response_bytes_total\{route="\/api\/v1\/klanten"\} [1-9]\d{2,}$/m);
  t.regex(scraped, /^gateway_requests_in_flight 0$/m);
  t.regex(scraped, /^gateway_primary_up 1$/m);
  t.regex(scraped, /^gateway_build_info\{version="1\.0\.0",node="v\d+\.\d+\.\d+"\} 1$/m);
});

/** Returns the status line that asks for the body, and leaves. */
async function leave({ gateway, token }: { gateway: { url: string }; token: string }): Promise<string> {
  const socket = connect(Number(new URL(gateway.url).port), '127.0.0.1');
  const head = `Host: a\r\nAuthorization: Bearer ${token}\r\nContent-Type: application/json\r\nContent-Length: 9`;
  socket.write(`POST /api/v1/installaties HTTP/1.1\r\n${head}\r\nExpect: 100-continue\r\n\r\n`);
  const [interim] = await once(socket, 'data');
  socket.destroy();
  return String(interim);
}

test('a request whose client disconnects before the response counts with status 499', async (t) => {
  t.regex(await leave(t.context), /^HTTP\/1\.1 100 /, 'the gateway waits for the body');
  const count = 'gateway_request_seconds_count{method="POST",route="/api/v1/installaties",status="499"} 1\n';
  const metrics = async () => (await fetch(`${t.context.gateway.opsUrl}/metrics`)).text();
  await eventually(t, 'the request', async () => (await metrics()).includes(count));
});

test('/docs is a page that needs nothing from elsewhere, and sends no requests', async (t) => {
  const reply = await fetch(`${t.context.gateway.opsUrl}/docs`);
  t.is(reply.status, 200);
  t.is(reply.headers.get('content-type'), 'text/html; charset=utf-8');
  const html = await reply.text();
  t.regex(html, /<!doctype html>/i);
  for (const path of ['/klanten', '/installaties/{id}', '/werkbonnen', '/logboeken']) t.true(html.includes(path), path);
  t.notRegex(html.replace(/<script>[\s\S]*?<\/script>/g, ''), /<[^>]* (?:src|href|action)="(?!#|data:)/i);
  t.true(html.includes(' hide-console '));
  t.notRegex(reply.headers.get('content-security-policy') as string, /connect-src|https?:/);
});

test('/docs comes compressed, and as 304 to a browser that has the page', async (t) => {
  const get = (headers: Record<string, string>) =>
    fetch(`${t.context.gateway.opsUrl}/docs`, {
      headers: { 'accept-encoding': 'gzip, deflate, br, zstd', ...headers },
    });
  const page = await get({});
  t.is(page.headers.get('content-encoding'), 'br');
  t.is(page.headers.get('vary'), 'Accept-Encoding');
  t.is(await page.text(), await (await get({ 'accept-encoding': 'identity' })).text());
  const etag = page.headers.get('etag');
  const again = await get({ 'if-none-match': etag as string });
  t.deepEqual([again.status, again.headers.get('etag'), await again.text()], [304, etag, '']);
  t.is((await get({ 'if-none-match': '"other"' })).status, 200);
});

test('the ops listener has nothing else, and the API none of this', async (t) => {
  const { gateway } = t.context;
  for (const path of ['/api/v1/klanten', '/livez/', '/LIVEZ'])
    t.is((await fetch(gateway.opsUrl + path)).status, 404, path);
  for (const path of ['/livez', '/readyz', '/metrics', '/status', '/status.json', '/docs'])
    t.is((await fetch(gateway.url + path)).status, 404, path);
});

/** Sends headers that fetch() does not send to the ops listener; `null` sends no Host, by HTTP/1.0. */
async function statusFor(opsUrl: string, hosts: readonly string[] | null): Promise<number> {
  const lines =
    hosts === null ? ['GET /metrics HTTP/1.0'] : ['GET /metrics HTTP/1.1', ...hosts.map((h) => `Host: ${h}`)];
  const { hostname, port } = new URL(opsUrl);
  const socket = connect(Number(port), hostname);
  socket.end([...lines, 'Connection: close', '', ''].join('\r\n'));
  return Number((await text(socket)).slice(9, 12));
}

test('the ops listener refuses names that DNS could rebind to it, and accepts those of its settings', async (t) => {
  const { gateway } = await t.context.database.gateway({ opsAllowedHosts: 'gateway.monitoring.svc, Other.internal' });
  const { port } = new URL(gateway.opsUrl);
  const allowed = '127.0.0.1 [::1] 10.1.2.3 localhost LOCALHOST gateway.monitoring.svc other.internal'.split(' ');
  for (const name of allowed) {
    t.is(await statusFor(gateway.opsUrl, [name]), 200, name);
    t.is(await statusFor(gateway.opsUrl, [`${name}:${port}`]), 200, name);
  }
  t.is(await statusFor(gateway.opsUrl, null), 200);
  const refused = 'evil.example 127.0.0.1.evil.example localhost.evil.example 127.0.0.1:1:2 x@127.0.0.1 []'.split(' ');
  for (const name of [...refused, 'svc', '[localhost]', ',']) t.is(await statusFor(gateway.opsUrl, [name]), 421, name);
  t.is(await statusFor(t.context.gateway.opsUrl, ['']), 421);
  t.is(await statusFor(t.context.gateway.opsUrl, ['other.internal']), 421);
  t.not(await statusFor(gateway.opsUrl, ['127.0.0.1', 'evil.example']), 200);
});

test('every answer of the ops listener has the headers of the API, and the page a policy of its own', async (t) => {
  const { opsUrl } = t.context.gateway;
  const common = (await t.context.client.get('/openapi.json')).headers;
  for (const path of ['/livez', '/readyz', '/metrics', '/status.json', '/docs', '/nothing']) {
    const { headers } = await fetch(opsUrl + path);
    t.is(headers.get('cache-control'), path === '/docs' ? 'no-cache' : 'no-store', path);
    for (const name of ['api-version', 'x-content-type-options', 'referrer-policy'])
      t.is(headers.get(name), common[name] as string, path);
    t.is(headers.get('content-security-policy') === common['content-security-policy'], path !== '/docs', path);
  }
});

test('the ops listener answers GET and HEAD only', async (t) => {
  const { opsUrl } = t.context.gateway;
  for (const method of ['POST', 'DELETE', 'OPTIONS']) {
    const reply = await fetch(`${opsUrl}/livez`, { method });
    t.is(reply.status, 405, method);
    t.is(reply.headers.get('allow'), 'GET, HEAD');
  }
  const head = await fetch(`${opsUrl}/livez`, { method: 'HEAD' });
  t.is(head.status, 200);
  t.is(await head.text(), '');
});

test('a page of the ops listener that fails is answered 500, and the log says why', async (t) => {
  const folder = mkdtempSync(join(tmpdir(), 'ops-'));
  t.teardown(() => rmSync(folder, { recursive: true }));
  for (const path of ['dist/src', 'config', 'sql', 'package.json'])
    cpSync(join(projectRoot, path), join(folder, path), { recursive: true });
  symlinkSync(join(projectRoot, 'node_modules'), join(folder, 'node_modules'));
  rmSync(join(folder, 'config/status/page.html'));
  const serving = await serveProcess(t.context.database.settings, { main: join(folder, 'dist/src/main.js') });
  t.is((await fetch(`${serving.opsUrl}/status?x`)).status, 500);
  await eventually(t, 'the line', () => /"path":"\/status",.*ENOENT.*page\.html.*"ops_failed"/.test(serving.log()));
  await serving.stop();
});

interface Span {
  readonly traceId: string;
  readonly spanId: string;
  readonly parentSpanId?: string;
  readonly name: string;
  readonly attributes: readonly { readonly key: string; readonly value: Readonly<Record<string, unknown>> }[];
}
interface Export {
  readonly resourceSpans: readonly { readonly scopeSpans: readonly { readonly spans: readonly Span[] }[] }[];
}

async function collector(): Promise<{ url: string; spans: Span[]; close(): void }> {
  const spans: Span[] = [];
  const server = createServer(async (request, response) => {
    const { resourceSpans } = (await json(request)) as Export;
    if (request.url === '/v1/traces')
      spans.push(...resourceSpans.flatMap(({ scopeSpans }) => scopeSpans.flatMap((scope) => scope.spans)));
    response.writeHead(200, { 'content-type': 'application/json' }).end('{}');
  }).listen(0, '127.0.0.1');
  await once(server, 'listening');
  const { port } = server.address() as AddressInfo;
  return { url: `http://127.0.0.1:${port}`, spans, close: () => server.close() };
}

const attribute = (span: Span, name: string): unknown =>
  Object.values(span.attributes.find(({ key }) => key === name)?.value ?? {})[0];

test.serial(
  'a request is a trace under its traceparent: a span per stage and statement, and its id in the log',
  async (t) => {
    const { url, spans, close } = await collector();
    t.teardown(close);
    const { gateway, client, log } = await t.context.database.gateway({ otelExporterOtlpEndpoint: url });
    const traceId = '0af7651916cd43dd8448eb211c80319c';
    const headers = { traceparent: `00-${traceId}-b7ad6b7169203331-01`, 'x-request-id': 'traced' };
    const { headers: answered, text } = await client.get('/klanten?perPage=3', { headers });
    t.is((await client.get('/klanten?perPage=3')).status, 200);
    await eventually(t, 'the line', () => log().includes('"requestId":"traced"'));
    await gateway.stop();
    const own = spans.filter((span) => span.traceId === traceId);
    const named = (name: string): Span | undefined => own.find((span) => span.name === name);
    const root = named('GET /api/v1/klanten') as Span;
    t.is(root.parentSpanId, 'b7ad6b7169203331');
    t.is(attribute(root, 'http.route'), '/api/v1/klanten');
    for (const stage of ['authenticate', 'read', 'respond']) t.is(named(stage)?.parentSpanId, root.spanId, stage);
    const statements = own.filter((span) => attribute(span, 'db.system.name') === 'postgresql');
    t.is(statements.length, 2, own.map(({ name }) => name).join());
    const parents = statements.map(({ parentSpanId }) => parentSpanId).sort();
    t.deepEqual(parents, [named('authenticate')?.spanId, named('read')?.spanId].sort());
    const line = /^.*"requestId":"traced".*$/m.exec(log())?.[0] as string;
    t.like(JSON.parse(line), { msg: 'request_finished', traceId, spanId: root.spanId });
    // Statements of other traces have the same text, so that they stay prepared; and no span has a value.
    const texts = spans.map((span) => attribute(span, 'db.query.text')).filter((sql) => sql !== undefined);
    t.true(new Set(texts).size < texts.length);
    t.false(JSON.stringify(spans).includes(JSON.parse(text).data[0].naam));
    t.is(answered['x-request-id'], 'traced');
  },
);

test.serial('the span of a request whose client disconnects before the response has no status', async (t) => {
  const { url, spans, close } = await collector();
  t.teardown(close);
  const { gateway, token } = await t.context.database.gateway({ otelExporterOtlpEndpoint: url });
  await leave({ gateway, token });
  await gateway.stop();
  const span = spans.find(({ name }) => name === 'POST /api/v1/installaties') as Span;
  t.is(attribute(span, 'http.response.status_code'), undefined);
});

test.serial('a collector that does not answer delays neither requests nor the end of the gateway', async (t) => {
  const silent = createServer(() => undefined).listen(0, '127.0.0.1');
  await once(silent, 'listening');
  t.teardown(() => {
    silent.closeAllConnections();
    silent.close();
  });
  const url = `http://127.0.0.1:${(silent.address() as AddressInfo).port}/`;
  const { gateway, client } = await t.context.database.gateway({ otelExporterOtlpEndpoint: url });
  t.is((await client.get('/klanten?perPage=3')).status, 200);
  const startedMs = performance.now();
  await gateway.stop();
  t.true(performance.now() - startedMs < limitMs(15_000), `${performance.now() - startedMs} ms`);
});
