import { once } from 'node:events';
import { createServer } from 'node:http';
import { type AddressInfo, connect } from 'node:net';
import { json } from 'node:stream/consumers';
import { limitMs } from '../support/patience.js';
import { eventually, gatewayTest } from '../support/workspace.js';

const test = gatewayTest();

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

/** A collector of OTLP over HTTP; resolves with its URL and the spans that it has got. */
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
    t.deepEqual(
      statements.map(({ parentSpanId }) => parentSpanId).sort(),
      [named('authenticate')?.spanId, named('read')?.spanId].sort(),
    );
    const line = JSON.parse(
      log()
        .split('\n')
        .find((each) => each.includes('"requestId":"traced"')) as string,
    ) as object;
    t.like(line, { msg: 'request_finished', traceId, spanId: root.spanId });
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
  const socket = connect(Number(new URL(gateway.url).port), '127.0.0.1');
  const head = `Host: a\r\nAuthorization: Bearer ${token}\r\nContent-Type: application/json\r\nContent-Length: 9`;
  socket.write(`POST /api/v1/installaties HTTP/1.1\r\n${head}\r\nExpect: 100-continue\r\n\r\n`);
  await once(socket, 'data'); // the gateway waits for the body
  socket.destroy();
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
