import { createHash } from 'node:crypto';
import { mkdtempSync, readFileSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { pathToFileURL } from 'node:url';
import type { ApiResponse, OpenApiDocument } from '../../src/serve/openapi/document.js';
import { type Browser, browserMissing, launchBrowser, openPage, type Page } from '../support/browser.js';
import { output, programMissing, workFolder } from '../support/client-tools.js';
import { commandLine } from '../support/command-line.js';
import { codeOf, listNames } from '../support/lists.js';
import { samplesOf } from '../support/samples.js';
import { words } from '../support/words.js';
import { eventually, gatewayTest, type TestContext } from '../support/workspace.js';

const test = gatewayTest();

test('the API describes itself without a token, as OpenAPI 3.1', async (t) => {
  const reply = await t.context.client.get('/openapi.json', { token: null });
  t.is(reply.status, 200);
  t.is(reply.headers['content-type'], 'application/json');
  const document = reply.json<OpenApiDocument>();
  t.true(document.openapi.startsWith('3.1.'));
  t.is(reply.headers['api-version'], document.info.version);
});

test('GET /api/v1 is an index that needs no token, whose links lead to what they name', async (t) => {
  const { client, gateway, database } = t.context;
  const reply = await client.get('', { token: null });
  t.is(reply.status, 200);
  for (const path of ['/', '/api/v1/']) t.is(await (await fetch(gateway.url + path)).text(), reply.text, path); // where generated clients look for it
  t.true((await fetch(gateway.opsUrl, { redirect: 'follow' })).url.endsWith('/status'));
  const { links, ...rest } = reply.json<{ links: Record<string, string> }>();
  t.deepEqual(rest as object, { name: 'Workspace data API', version: reply.headers['api-version'] });
  t.deepEqual(Object.keys(links).sort(), ['openapi', 'self', ...listNames].sort());
  for (const link of Object.values(links)) {
    const headers = { authorization: `Bearer ${t.context.token}` };
    t.is((await fetch(gateway.url + link, { headers })).status, 200, link);
  }
  const known = await client.get('', { headers: { 'if-none-match': reply.headers.etag as string } });
  t.is(known.status, 304);
  const elsewhere = await database.gateway({ publicUrl: 'https://data.example.com' });
  const { self } = (await elsewhere.client.get('')).json<{ links: Record<string, string> }>().links;
  t.is(self, 'https://data.example.com/api/v1');
});

test('the document describes every endpoint, its scope and its parameters', async (t) => {
  const { paths, components } = (await t.context.client.get('/openapi.json')).json<OpenApiDocument>();
  const reads = listNames.flatMap((list) => (list === 'logboeken' ? [`/${list}`] : [`/${list}`, `/${list}/{id}`]));
  const sync = listNames.flatMap((list) => ['', '/digest', '/ids'].map((end) => `/sync/${list}${end}`));
  t.deepEqual(Object.keys(paths).sort(), [...reads, ...sync, '/openapi.json', '/token', '/'].sort());
  for (const path of reads) t.is(paths[path]?.get?.['x-required-scope'], `read:${path.split('/')[1]}`);
  const named = (path: string) =>
    paths[path]?.get?.parameters.map(({ $ref }) => components.parameters[$ref.split('/').at(-1) as string]?.name);
  t.deepEqual(
    named('/logboeken'),
    words(`
    perPage page cursor total order fields ids entity entityId from to actie X-Request-Id`),
  );
  t.deepEqual(
    named('/werkbonnen'),
    words(`
    perPage page cursor total order fields ids installationId from to updatedSince status nummer X-Request-Id`),
  );
});

test('the document follows the settings of its gateway', async (t) => {
  const { client } = await t.context.database.gateway({ perPageDefault: 25, perPageMax: 50 });
  const { components } = (await client.get('/openapi.json')).json<OpenApiDocument>();
  t.like(components.parameters.perPage?.schema, { default: 25, maximum: 50 });
});

const codings = ['br', 'gzip', 'identity'];

test('a client that has the compressed document gets 304 without a body, and the document after the ETag of another coding', async (t) => {
  const { client } = t.context;
  const get = (coding: string, ifNoneMatch?: string, method = 'GET') =>
    client.request(method, '/openapi.json', {
      headers: { 'accept-encoding': coding, ...(ifNoneMatch && { 'if-none-match': ifNoneMatch }) },
    });
  for (const coding of codings) {
    const { headers, text } = await get(coding);
    t.is(headers['content-encoding'], coding === 'identity' ? undefined : coding);
    t.is(headers.vary, 'Accept-Encoding');
    t.true(text.startsWith('{"openapi":'));
    const etag = headers.etag as string;
    for (const known of [etag, `W/${etag}`, `"other", ${etag}`, '*']) {
      for (const method of ['GET', 'HEAD']) {
        const reply = await get(coding, known, method);
        t.is(reply.status, 304, known);
        t.is(reply.bytes.length, 0);
        t.is(reply.headers.etag, etag);
        t.is(reply.headers.vary, 'Accept-Encoding');
      }
    }
    const others = codings.filter((each) => each !== coding);
    for (const other of others) t.is((await get(other, etag)).status, 200, `${coding} ${other}`);
    t.is((await get(coding, '"other"')).status, 200);
    t.is((await get(coding, 'no tag')).status, 200);
  }
});

test('requests for the document are limited per client address', async (t) => {
  const { client } = await t.context.database.gateway({ publicRequestsPerMinute: 3, trustedProxyHops: 1 });
  const get = (path = '/openapi.json', method = 'GET', address = '192.0.2.1') =>
    client.request(method, path, { token: null, headers: { 'x-forwarded-for': address } });
  t.is((await get()).status, 200);
  t.is((await get('/openapi.json', 'HEAD')).status, 200);
  t.is((await get('?x=1')).status, 400);
  const limited = await get();
  t.is(limited.status, 429);
  t.is(codeOf(limited), 'rate_limited');
  t.regex(limited.headers['retry-after'] as string, /^([1-9]|[1-5]\d|60)$/);
  t.is(limited.headers.ratelimit, undefined);
  t.is((await get('/openapi.json', 'OPTIONS')).status, 429);
  t.is((await get('/openapi.json', 'GET', '198.51.100.7')).status, 200);
});

const suiteDocsPage = gatewayTest({ docs: 'public' });
const publicly = browserMissing ? suiteDocsPage.skip : suiteDocsPage.serial;
const running: { browser?: Browser; open?: ReturnType<typeof openPage> } = {};

suiteDocsPage.before(async () => {
  if (!browserMissing) running.browser = await launchBrowser();
});
suiteDocsPage.after.always(() => running.browser?.close());

suiteDocsPage(
  'DOCS=public serves the page on the API listener without a token, with a policy of its own',
  async (t) => {
    const { gateway } = t.context;
    const reply = await fetch(`${gateway.url}/docs`, { headers: { 'accept-encoding': 'br' } });
    t.is(reply.status, 200);
    t.is(reply.headers.get('content-type'), 'text/html; charset=utf-8');
    t.is(reply.headers.get('content-encoding'), 'br');
    const html = await reply.text();
    const scripts = [...html.matchAll(/<script>([\s\S]*?)<\/script>/g)].map(
      ([, text]) => `'sha256-${createHash('sha256').update(String(text)).digest('base64')}'`,
    );
    t.is(scripts.length, 2);
    const policy = `default-src 'none'; style-src 'unsafe-inline'; script-src ${scripts.join(' ')}; img-src data:; base-uri 'none'; form-action 'none'; connect-src 'self'`;
    t.is(reply.headers.get('content-security-policy'), `${policy}; frame-ancestors 'none'`);
    t.true(html.includes(`<meta http-equiv="Content-Security-Policy" content="${policy}">`));
    const etag = reply.headers.get('etag') as string;
    t.is(
      (await fetch(`${gateway.url}/docs`, { headers: { 'accept-encoding': 'br', 'if-none-match': etag } })).status,
      304,
    );
    t.is((await fetch(`${gateway.url}/docs`, { method: 'POST' })).status, 405);
    t.is((await fetch(`${gateway.opsUrl}/docs`)).status, 404);
  },
);

suiteDocsPage('requests for the page count against the limit of a client address', async (t) => {
  const { gateway } = await t.context.database.gateway({ docs: 'public', publicRequestsPerMinute: 5 });
  const statuses: number[] = [];
  while (statuses.length < 6) statuses.push((await fetch(`${gateway.url}/docs`)).status);
  t.deepEqual([statuses[0], statuses[5]], [200, 429]);
});

suiteDocsPage('DOCS=off serves the page nowhere', async (t) => {
  const { gateway } = await t.context.database.gateway({ docs: 'off' });
  for (const url of [gateway.url, gateway.opsUrl]) t.is((await fetch(`${url}/docs`)).status, 404);
});

/** The page on the API listener, once for all tests: the browser takes a second to show it. */
const openedPage = ({ gateway }: TestContext) =>
  (running.open ??= openPage(running.browser as Browser, `${gateway.url}/docs`));

const shownText = (page: Page) =>
  page.evaluate<string>(`(function text(node) {
    return [...node.childNodes].map((each) =>
      each.nodeType === 3 ? each.data : /STYLE|SCRIPT/.test(each.tagName) ? '' : text(each.shadowRoot ?? each)).join('');
  })(document.body).replace(/\\s/g, '')`);

publicly(
  `the page shows each operation with its samples and an example of its response, and no fault${browserMissing}`,
  async (t) => {
    const { page, faults } = await openedPage(t.context);
    const { paths } = (await t.context.client.get('/openapi.json')).json<OpenApiDocument>();
    for (const [path, item] of Object.entries(paths))
      for (const [method, { 'x-codeSamples': samples, responses }] of Object.entries(item)) {
        await page.evaluate(`location.hash = '?route=${method}-${path.replace(/[{}]/g, '-')}'`);
        const [response] = Object.values(responses) as ApiResponse[];
        const example = JSON.stringify(response?.content?.['application/json']?.example) ?? '';
        const [member = ''] = /"syncVersion"|"naam"|"actie"|"nummer"|"version"/.exec(example) ?? [];
        const parts = [...samples.map(({ source }) => source.replace(/\s/g, '')), member];
        await eventually(t, `${method} ${path}`, async () => {
          const text = await shownText(page);
          return parts.every((part) => text.includes(part));
        });
      }
    t.deepEqual(faults, []);
  },
);

publicly(
  `Try it sends the request with the token of the reader, and shows the response${browserMissing}`,
  async (t) => {
    const { page, faults } = await openedPage(t.context);
    await page.click('text=Authentication');
    await page.fill('openapi-explorer .api-key-input', t.context.token);
    await page.click('openapi-explorer button:has-text("Set")');
    await page.click('text=List klanten');
    await page.click('openapi-explorer button:has-text("Execute")');
    const [{ naam } = { naam: '' }] = (await t.context.client.get('/klanten?perPage=1')).json<{
      data: { naam: string }[];
    }>().data;
    const wanted = naam.replace(/\s/g, '');
    await eventually(t, 'the first customer', async () => (await shownText(page)).includes(wanted));
    t.deepEqual(faults, []);
  },
);

publicly(`docs --out writes the page to a file, which opens without a fault from there${browserMissing}`, async (t) => {
  const folder = mkdtempSync(join(tmpdir(), 'gateway-docs-'));
  t.teardown(() => rmSync(folder, { recursive: true }));
  const file = join(folder, 'page.html');
  const settings = { publicUrl: 'https://data.example.com', primaryUrls: 'postgres://primary/app' };
  t.deepEqual(await commandLine(['docs', '--out', file], settings), {
    stdout: `wrote ${file}\n`,
    stderr: '',
    code: 0,
  });
  t.true(readFileSync(file, 'utf8').includes('(`https://data.example.com/api/v1`)'));
  const { page, faults } = await openPage(running.browser as Browser, pathToFileURL(file).href);
  await page.click('text=Create one installatie');
  await eventually(t, 'the operation', async () => (await shownText(page)).includes('-XPOST"$BASE/installaties"'));
  t.notRegex(await shownText(page), /EXECUTE|Execute/, 'no requests from another host');
  t.deepEqual(faults, []);
  t.is((await commandLine(['docs'])).code, 2);
  t.is((await commandLine(['docs', '--out', join(folder, 'none/page.html')])).code, 1);
});

async function samplesOn({ gateway, client, token }: TestContext, language: string) {
  const text = (await client.get('/openapi.json')).text.replaceAll('perPage=1000', 'perPage=400'); // several pages of each list
  const document = JSON.parse(text) as OpenApiDocument;
  const samples = samplesOf(document, language);
  const { paths } = document;
  const env = { BASE: `${gateway.url}/api/v1`, TOKEN: token };
  const envOf = async (operationId: string): Promise<Record<string, string>> => {
    const path = Object.keys(paths).find((each) => paths[each]?.get?.operationId === operationId);
    if (!path?.includes('{id}')) return env;
    const { data } = (await client.get(path.replace('/{id}', '?perPage=1'))).json<{ data: { id: string }[] }>();
    return { ...env, ID: data[0]?.id as string };
  };
  const countOf = async (operationId: string): Promise<number | undefined> => {
    const path = Object.keys(paths).find((each) => paths[each]?.get?.operationId === operationId) ?? '';
    const isPaged = JSON.stringify(paths[path]?.get?.parameters).includes('perPage');
    return isPaged
      ? (await client.get(`${path}?perPage=10000`, { unchecked: true })).json<{ data: object[] }>().data.length
      : undefined;
  };
  return { samples, envOf, countOf };
}

const curlMissing = programMissing('curl', '--version') || programMissing('jq', '--version');
(curlMissing ? suiteDocsPage.skip : suiteDocsPage.serial)(
  `every sample in curl that reads is answered 200, and that of a list has all records${curlMissing}`,
  async (t) => {
    const { samples, envOf, countOf } = await samplesOn(t.context, 'shell');
    const status = `curl() { command curl -s -o /dev/null -w '%{http_code}' "$@"; }`;
    const reads = [...samples].filter(([, sample]) => !sample.includes('-X '));
    t.is(reads.length, 22);
    const cwd = workFolder({});
    for (const [id, sample] of reads) {
      const [count, env] = [await countOf(id), await envOf(id)];
      if (count === undefined) t.is(await output('sh', ['-c', `${status}\n${sample}`], { env }), '200', id);
      else t.is((await output('sh', ['-c', sample], { env, cwd })).trim().split('\n').length, count, id);
    }
    const env = { ...(await envOf('listKlanten')), TOKEN: 'wdg_unknown' };
    const list = output('sh', ['-c', samples.get('listKlanten') as string], { env, cwd });
    await t.throwsAsync(list, { message: /token_invalid/ }, 'at once, and with the reason');
  },
);

const requestsMissing = programMissing('python3', '-c', 'import requests');
const programs: readonly (readonly [language: string, program: string, flags: readonly string[], lacks: string])[] = [
  ['javascript', process.execPath, ['--input-type=module', '-e'], ''],
  ['python', 'python3', ['-c'], requestsMissing],
];
for (const [language, program, flags, lacks] of programs) {
  (lacks ? suiteDocsPage.skip : suiteDocsPage)(
    `samples in ${language} read a list and a record, and create a record${lacks}`,
    async (t) => {
      const { samples, envOf, countOf } = await samplesOn(t.context, language);
      const { ID } = await envOf('getKlant');
      const create = samples.get('createInstallatie')?.replace(/("customerId": ").*?"/, `$1${ID}"`);
      const run = async (id: string, sample = samples.get(id) as string): Promise<string> =>
        output(program, [...flags, sample], { env: await envOf(id) });
      t.regex(await run('listKlanten'), new RegExp(`^${await countOf('listKlanten')} `));
      t.regex(await run('getKlant'), new RegExp(ID as string));
      t.regex(await run('createInstallatie', create), /Koelcel begane grond/);
      await t.throwsAsync(
        run('createInstallatie'),
        { message: /400/ },
        'its example names no customer of this workspace',
      );
    },
  );
}
