import { createServer } from 'node:http';
import { readProject } from '../../src/base/paths.js';
import { exposedHeaders } from '../../src/serve/http/cors.js';
import { listen } from '../../src/serve/http/listeners.js';
import { headerOf } from '../../src/serve/openapi/responses.js';
import { browserMissing, launchBrowser, openPage } from '../support/browser.js';
import type { ApiReply } from '../support/client.js';
import { idsOf, records } from '../support/lists.js';
import { words } from '../support/words.js';
import { gatewayTest } from '../support/workspace.js';

const addIn = 'https://addin.example.com';
const test = gatewayTest();
const allowing = gatewayTest({ corsOrigins: `${addIn}, http://localhost:3000`, publicRequestsPerMinute: 2 });
const granted = ({ headers }: ApiReply) => Object.keys(headers).filter((name) => name.startsWith('access-control-'));

test('without CORS_ORIGINS no response lets a page of another origin read it', async (t) => {
  const headers = { origin: addIn, 'access-control-request-method': 'GET' };
  for (const method of ['GET', 'OPTIONS']) {
    const reply = await t.context.client.request(method, '/klanten', { headers });
    t.deepEqual([...granted(reply), /Origin/.test(reply.headers.vary ?? '')], [false], method);
  }
});

allowing('a page of a listed origin reads pages, problems and their headers, without credentials', async (t) => {
  for (const path of ['/klanten?perPage=1', '/klanten?perPage=0', '/klanten/x'])
    for (const origin of [addIn, 'http://localhost:3000']) {
      const reply = await t.context.client.get(path, { headers: { origin } });
      t.is(reply.headers['access-control-allow-origin'], origin);
      t.is(reply.headers['access-control-expose-headers'], exposedHeaders);
      t.true((reply.headers.vary ?? '').split(', ').includes('Origin'));
      t.is(granted(reply).length, 2);
    }
});

const others = `http://addin.example.com ${addIn}:443 ${addIn}.evil.test https://ADDIN.example.com null ${addIn}/
  https://sub.addin.example.com http://localhost:3001 ${addIn},${addIn}`;

allowing('only the exact origin is allowed, and another gets the response that it cannot read', async (t) => {
  for (const origin of words(others)) {
    const reply = await t.context.client.get('/klanten?perPage=1', { headers: { origin } });
    t.is(reply.status, 200);
    t.deepEqual(granted(reply), [], origin);
    t.regex(reply.headers.vary as string, /Origin/);
  }
});

allowing('a preflight of a listed origin is answered without token and limit, of another as before', async (t) => {
  const ask = (path: string, origin = addIn) => {
    const headers = { origin, 'access-control-request-method': 'PATCH' };
    return t.context.client.request('OPTIONS', path, { headers, token: null, unchecked: true });
  };
  for (const path of ['/installaties/x', '/klanten?perPage=1', '/klanten?perPage=2', '/token']) {
    const { status, headers } = await ask(path);
    t.is(status, 204);
    t.is(headers['access-control-allow-origin'], addIn);
    t.is(headers['access-control-max-age'], '86400');
    t.regex(headers['access-control-allow-methods'] as string, /\bPATCH\b/);
    for (const name of ['Authorization', 'If-Match', 'Idempotency-Key', 'Content-Type'])
      t.true(headers['access-control-allow-headers']?.split(', ').includes(name));
  }
  // The description that the test's client reads counts against the limit of two.
  const replies = [await ask('/klanten', 'https://evil.test'), await ask('/klanten', 'https://evil.test')];
  const statuses = replies.map(({ status }) => status);
  t.deepEqual(statuses, [204, 429]);
  t.deepEqual(replies.flatMap(granted), []);
});

test('pages may read every header of a response that says something about its record, page or limit', (t) => {
  const { headers } = JSON.parse(readProject('config/openapi/components.json'));
  const hidden = ['Cache-Control', 'X-Content-Type-Options', 'Content-Security-Policy', 'Referrer-Policy', 'Vary'];
  const described = Object.keys(headers).filter(
    (name) => !(name in headerOf) && ![...hidden, 'Accept-Encoding'].includes(name),
  );
  t.deepEqual(exposedHeaders.split(', ').sort(), described.sort());
});

const inBrowser = browserMissing ? test.serial.skip : test.serial;
inBrowser(`a page in Chromium reads a record with its ETag and limit, and changes it${browserMissing}`, async (t) => {
  const site = createServer((_, response) => response.end('<!doctype html>'));
  const origin = await listen(site, '127.0.0.1', 0);
  const { gateway, token } = await t.context.database.gateway({ corsOrigins: origin });
  const browser = await launchBrowser();
  try {
    const { page } = await openPage(browser, origin);
    const [reader] = /(?<=```js\n).*?(?=^```)/ms.exec(readProject('docs/use/browser.md')) as RegExpExecArray;
    const program = (base: string) => `(async () => {
      ${reader.replace('perPage=1000', 'perPage=2')}
      const [base, token, found] = ['${base}/api/v1', '${token}', []];
      for await (const { id } of records(base, token, 'installaties')) found.push(id);
      const headers = { authorization: 'Bearer ' + token };
      const reply = await fetch(base + '/installaties/' + found[0], { headers });
      const change = { ...headers, 'if-match': reply.headers.get('etag'), 'idempotency-key': 'browser', 'content-type': 'application/json' };
      const options = { method: 'PATCH', headers: change, body: '{"locatie":"Zolder"}' };
      const changed = await fetch(base + '/installaties/' + found[0], options);
      return { found, limit: reply.headers.get('ratelimit'), status: changed.status, record: await changed.json() };
    })()`;
    const seen = await page.evaluate<{ found: string[]; limit: string; status: number; record: object }>(
      program(gateway.url),
    );
    t.deepEqual(seen.found, idsOf(await records(t.context.client, '/installaties')));
    t.regex(seen.limit, /^"default";r=\d+;t=\d+$/);
    t.is(seen.status, 200);
    t.like(seen.record, { id: seen.found[0], locatie: 'Zolder' });
    await t.throwsAsync(page.evaluate(program(t.context.gateway.url)), { message: /Failed to fetch/ });
  } finally {
    await browser.close();
    site.close();
  }
});
