import { eventually, gatewayTest } from '../support/workspace.js';

const test = gatewayTest();

test('/livez says that the process is alive', async (t) => {
  const reply = await fetch(`${t.context.gateway.opsUrl}/livez`);
  t.is(reply.status, 200);
  t.deepEqual(await reply.json(), { status: 'alive' });
});

test('/readyz says that reads can be answered, and how each replica is', async (t) => {
  const reply = await fetch(`${t.context.gateway.opsUrl}/readyz`);
  t.is(reply.status, 200);
  const { replicas, ...rest } = (await reply.json()) as { replicas: { lagMs: number }[] };
  t.like(rest, { status: 'ready', reasons: [] });
  t.like(replicas[0], { name: 'replica1', healthy: true });
  t.true((replicas[0]?.lagMs ?? -1) >= 0);
});

test('without a replica /readyz says no and why, /livez still yes, and reads are 503 with Retry-After', async (t) => {
  const { database } = t.context;
  const nowhere = 'postgres://gateway_reader@127.0.0.1:1/nowhere';
  const { gateway, client } = await database.gateway({ replicaUrls: nowhere });
  const reply = await fetch(`${gateway.opsUrl}/readyz`);
  t.is(reply.status, 503);
  t.like(await reply.json(), { status: 'not ready', reasons: ['no healthy replica'] });
  t.is((await fetch(`${gateway.opsUrl}/livez`)).status, 200);
  const read = await client.get('/klanten');
  t.is(read.status, 503);
  t.is(read.json<{ code: string }>().code, 'replica_unavailable');
  t.regex(read.headers['retry-after'] as string, /^\d+$/);
  t.is((await client.get('/openapi.json')).status, 200);
});

test('/metrics counts requests by route and status, problems by code, and shows the replicas', async (t) => {
  const { gateway, client } = await t.context.database.gateway();
  await client.get('/klanten?perPage=1');
  await client.get('/klanten/x');
  await client.get('/klanten?perPage=0');
  const metrics = async () => (await fetch(`${gateway.opsUrl}/metrics`)).text();
  await eventually(t, 'the last request', async () =>
    (await metrics()).includes('gateway_problems_total{code="invalid_request"} 1'),
  );
  const text = await metrics();
  t.regex(text, /^gateway_request_seconds_count\{method="GET",route="\/api\/v1\/klanten",status="200"\} 1$/m);
  t.regex(text, /^gateway_request_seconds_count\{method="GET",route="\/api\/v1\/klanten\/:id",status="404"\} 1$/m);
  t.regex(text, /^gateway_problems_total\{code="not_found"\} 1$/m);
  t.regex(text, /^gateway_replica_healthy\{replica="replica1"\} 1$/m);
  t.regex(text, /^process_cpu_seconds_total /m);
});

test('/docs is a page that needs nothing from elsewhere', async (t) => {
  const reply = await fetch(`${t.context.gateway.opsUrl}/docs`);
  t.is(reply.status, 200);
  t.is(reply.headers.get('content-type'), 'text/html; charset=utf-8');
  const html = await reply.text();
  t.regex(html, /<!doctype html>/i);
  for (const path of ['/klanten', '/installaties/{id}', '/werkbonnen', '/logboeken']) t.true(html.includes(path), path);
  t.notRegex(html, /<script|(?:src|href)="(?:https?:)?\/\//i);
});

test('the ops listener has nothing else, and the API none of this', async (t) => {
  const { gateway } = t.context;
  for (const path of ['/', '/api/v1/klanten', '/livez/', '/LIVEZ'])
    t.is((await fetch(gateway.opsUrl + path)).status, 404, path);
  for (const path of ['/livez', '/readyz', '/metrics', '/docs'])
    t.is((await fetch(gateway.url + path)).status, 404, path);
});
