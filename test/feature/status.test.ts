import { createHash } from 'node:crypto';
import type { Readiness } from '../../src/ops/readiness.js';
import type { StatusReport } from '../../src/ops/status.js';
import { eventually, gatewayTest } from '../support/workspace.js';

const test = gatewayTest({ authFailuresPerMinute: 5 });

const statusOf = async (opsUrl: string) => (await (await fetch(`${opsUrl}/status.json`)).json()) as StatusReport;
const countOf = (rows: readonly { readonly name: string; readonly lastMinute: number }[], name: string) =>
  rows.find((row) => row.name === name)?.lastMinute;

test.serial('the status of a gateway at rest is one good sentence', async (t) => {
  const report = await statusOf(t.context.gateway.opsUrl);
  t.like(report, { level: 'well', summary: 'All is well.', primary: { healthy: true }, redis: null, workers: null });
  t.deepEqual(report.faults, []);
  const { host, pathname } = new URL(t.context.database.settings.replicaUrls);
  t.like(report.replicas, [{ name: `${host}${pathname}`, state: 'used', reason: null }]);
});

test.serial('its numbers move with requests, rows, errors, writes and refusals', async (t) => {
  const { gateway, client } = t.context;
  for (let i = 0; i < 20; i++) await client.get('/installaties?perPage=50');
  await client.get('/werkbonnen?perPage=0');
  const [other] = (await client.get('/installaties?perPage=1')).json<{ data: { customerId: string }[] }>().data;
  const body = { customerId: other?.customerId, naam: 'Koelcel' };
  await client.request('POST', '/installaties', { headers: { 'idempotency-key': 'status-1' }, body });
  for (let i = 0; i < 8; i++) await client.get('/klanten', { token: `wdg_${'x'.repeat(49)}` });
  let report = await statusOf(gateway.opsUrl);
  await eventually(t, 'the last refusal', async () => {
    report = await statusOf(gateway.opsUrl);
    return countOf(report.limitHits, 'address') === 3;
  });
  const { traffic, errors, writes } = report;
  t.like(errors, [
    { status: 400, name: 'invalid_request', lastMinute: 1 },
    { status: 401, name: 'token_invalid', lastMinute: 5 },
    { status: 429, name: 'rate_limited', lastMinute: 3 },
  ]);
  t.is(countOf(writes, 'created'), 1);
  const rowsPerRequest = traffic.rowsPerSecond / traffic.requestsPerSecond; // 1001 rows, of 32 requests
  t.true(rowsPerRequest > 28 && rowsPerRequest < 34, JSON.stringify(traffic));
  t.true(traffic.bytesPerSecond > 20 * traffic.rowsPerSecond);
  const { p50Seconds, p99Seconds } = traffic;
  t.true(p50Seconds !== null && p99Seconds !== null && p50Seconds > 0 && p50Seconds < p99Seconds);
});

test.serial('the page reads the status, and allows only its own style and script', async (t) => {
  const reply = await fetch(`${t.context.gateway.opsUrl}/status`);
  t.is(reply.headers.get('content-type'), 'text/html; charset=utf-8');
  const page = await reply.text();
  const policy = reply.headers.get('content-security-policy') as string;
  const elements = [...page.matchAll(/<(style|script)>([\s\S]*?)<\/\1>/g)];
  t.is(elements.length, 2);
  for (const [, name, text] of elements) {
    const digest = createHash('sha256').update(String(text)).digest('base64');
    t.true(policy.includes(`; ${name}-src 'sha256-${digest}';`), policy);
  }
  t.regex(policy, /^default-src 'none'; .*connect-src 'self'/);
  t.notRegex(page, / style=| on\w+=|(?:src|href)="(?:https?:)?\/\//);
});

test.serial('without a replica the status names it and what fails', async (t) => {
  const nowhere = 'postgres://gateway_reader@127.0.0.1:1/nowhere';
  const { gateway, client } = await t.context.database.gateway({ replicaUrls: nowhere });
  t.is((await client.get('/klanten')).status, 503);
  const sentences = async () => (await statusOf(gateway.opsUrl)).faults.map(({ sentence }) => sentence);
  const failed = '1 request of the last minute failed: 503 replica_unavailable.';
  await eventually(t, 'the failed read', async () => (await sentences()).includes(failed));
  t.deepEqual(await sentences(), [
    'Reads fail: no replica can be used.',
    failed,
    '127.0.0.1:1/nowhere is not used: cannot connect: ECONNREFUSED.',
  ]);
  t.like(await statusOf(gateway.opsUrl), { level: 'failing', summary: '3 things are wrong.' });
});

test.serial('the status and /readyz say what the check of the start found', async (t) => {
  const { database } = t.context;
  const own = `alter role gateway_reader in database ${database.name}`;
  await database.primary.query(`${own} set statement_timeout = '2s'`);
  await database.caughtUp();
  const { gateway } = await database.gateway();
  await database.primary.query(`${own} reset statement_timeout`);
  const { unfit, status } = (await (await fetch(`${gateway.opsUrl}/readyz`)).json()) as Readiness;
  t.like({ status, unfit }, { status: 'ready', unfit: [{ item: 'role settings' }] });
  const { level, summary } = await statusOf(gateway.opsUrl);
  t.is(level, 'degraded');
  t.regex(summary, /^At the start replica 1 \(.*\) did not fit: role settings: statement_timeout is 2000/);
});
