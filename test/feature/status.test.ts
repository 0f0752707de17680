import { createHash } from 'node:crypto';
import type { Readiness, StatusReport } from '../../src/serve/ops/status.js';
import { gatewayTest } from '../support/workspace.js';

const test = gatewayTest();
const statusOf = async (opsUrl: string) => (await (await fetch(`${opsUrl}/status.json`)).json()) as StatusReport;

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

test.serial('the status and /readyz say what the check of the start found', async (t) => {
  const { database } = t.context;
  const own = `alter database ${database.name} connection limit`;
  await database.primary.query(`${own} 6`);
  await database.caughtUp();
  const { gateway } = await database.gateway({ primaryUrls: '' });
  await database.primary.query(`${own} -1`);
  const { unfit, status } = (await (await fetch(`${gateway.opsUrl}/readyz`)).json()) as Readiness;
  t.like({ status, unfit }, { status: 'ready', unfit: [{ item: 'connections' }] });
  const { level, summary } = await statusOf(gateway.opsUrl);
  t.is(level, 'degraded');
  t.regex(summary, /^At start-up replica 1 \(.*\) did not pass: connections: 7 are needed/);
});
