import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { runInNewContext } from 'node:vm';
import { Validator } from '@seriousme/openapi-schema-validator';
import test from 'ava';
import { projectRoot } from '../../src/base/paths.js';
import type { JsonSchema } from '../../src/resource/definition/field-types.js';
import { loadResources } from '../../src/resource/definition/load.js';
import { makeDocsPage } from '../../src/serve/openapi/docs-page.js';
import { type ApiResponse, resolve } from '../../src/serve/openapi/document.js';
import { makeOpenApi } from '../../src/serve/openapi/openapi.js';
import { loadSettings } from '../../src/settings.js';
import { output, toolsInstalled, toolsMissing, workFolder } from '../support/client-tools.js';
import { samplesOf } from '../support/samples.js';

const resources = loadResources('');
const defaults = { version: '1.0.0', ...loadSettings({}, { primaryUrls: 'postgres://primary/app' }) };
const document = makeOpenApi(resources, defaults);

test('the page keeps every text of the document inside its script, and its policy names both scripts', (t) => {
  const title = '</script><script>alert(1)</script>';
  const { html, policy } = makeDocsPage({ ...document, tags: [{ name: 'klanten', description: title }] });
  t.is(html.match(/<script/g)?.length, 2);
  t.is(html.match(/<\/script/g)?.length, 2);
  t.regex(policy, /; script-src 'sha256-\S+' 'sha256-\S+'; /);
  t.notRegex(policy, /connect-src|unsafe-eval|https?:/);
});

test('each operation has a sample in curl, Python and JavaScript, and each operation that reads in Power Query', (t) => {
  const operations = Object.values(document.paths).flatMap((item) => Object.entries(item));
  const all = operations.map(([, { operationId }]) => operationId);
  const reads = operations.filter(([method]) => method === 'get').map(([, { operationId }]) => operationId);
  for (const language of ['shell', 'python', 'javascript'])
    t.deepEqual([...samplesOf(document, language).keys()].sort(), all.sort());
  t.deepEqual([...samplesOf(document, 'powerquery').keys()].sort(), reads.sort());
});

test('the samples of a change have the key, the version and the body, in the words of each language', (t) => {
  const [curl, python, javaScript] = ['shell', 'python', 'javascript'].map((language) =>
    samplesOf(document, language).get('updateInstallatie'),
  ) as [string, string, string];
  for (const line of ['-X PATCH "$BASE/installaties/$ID"', '-H "Idempotency-Key: $KEY"', `-H 'If-Match: "v3"'`])
    t.true(curl.includes(line), line);
  t.true(curl.includes('"omschrijving": null'));
  for (const part of [
    'import os, requests, uuid',
    '"PATCH", f"',
    `"If-Match": '"v3"'`,
    'r"""{',
    '"omschrijving": null',
  ])
    t.true(python.includes(part), part);
  for (const part of ['method: "PATCH"', `"If-Match": '"v3"',`, '"omschrijving": null'])
    t.true(javaScript.includes(part), part);
});

(toolsInstalled ? test : test.skip)(
  `Microsoft's parser reads each sample in Power Query, and its address is the parameter BASE${toolsMissing}`,
  async (t) => {
    const samples = Object.fromEntries([...samplesOf(document, 'powerquery')].map(([id, text]) => [`${id}.pq`, text]));
    const folder = workFolder(samples);
    const files = Object.keys(samples).map((name) => join(folder, name));
    const calls = JSON.parse(await output(process.execPath, ['powerquery.mjs', ...files])) as {
      text: string;
      names: string[];
    }[];
    t.is(calls.length, files.length);
    for (const { text } of calls) t.is(text, 'BASE');
    t.deepEqual(calls[files.findIndex((file) => file.endsWith('/listKlanten.pq'))]?.names, [
      'RelativePath',
      'Query',
      'Headers',
    ]);
  },
);

// Airbyte, Grafana, n8n and dlt cannot be installed from a registry that the tests use: their recipes are compared with the API.

const read = (page: string): string => readFileSync(join(projectRoot, 'docs/use', page), 'utf8');
const resourcesClientRecipes = new Map(loadResources('').map((resource) => [resource.name, resource]));
const fieldsOf = (list: string): string[] => Object.keys(resourcesClientRecipes.get(list)?.fields ?? {});
const all = (text: string, pattern: RegExp): string[] =>
  [...text.matchAll(pattern)].map(([, found]) => found as string);

test("Airbyte's manifest has the members of a work order and the parameters of its list", (t) => {
  const manifest = read('airbyte.md');
  t.deepEqual(all(manifest, /^ {10}(\w+): \{ type: /gm), fieldsOf('werkbonnen'));
  t.deepEqual(all(manifest, /field_name: (\w+)/g), ['cursor', 'perPage']);
  t.true(all(manifest, /path: \/(\w+)/g).every((list) => resourcesClientRecipes.has(list)));
});

test("Grafana's query has members of a work order and parameters of its list", (t) => {
  const [query] = all(read('grafana.md'), /```json\n(.*?)```/gs).map((text) => JSON.parse(text));
  t.is(query.url, '/werkbonnen');
  for (const { selector } of query.columns) t.true(fieldsOf('werkbonnen').includes(selector), selector);
  for (const { key } of query.url_options.params)
    t.true(key in (resourcesClientRecipes.get('werkbonnen')?.filters ?? {}), key);
  t.is(query.pagination_param_cursor_extraction_path, 'pagination.nextCursor');
});

test('the workflow of n8n reads a list by its next URL, and sends each parameter once', (t) => {
  const [{ nodes, connections }] = all(read('n8n.md'), /```json\n(.*?)```/gs).map((text) => JSON.parse(text));
  const names = nodes.map(({ name }: { name: string }) => name);
  t.deepEqual(Object.keys(connections), names.slice(0, -1));
  const { url, options, ...others } = nodes[1].parameters;
  t.false('sendQuery' in others);
  const { pathname, searchParams } = new URL(url.slice(1));
  t.is(pathname, '/api/v1/werkbonnen');
  const { filters = {} } = resourcesClientRecipes.get('werkbonnen') ?? {};
  const unfiltered = [...searchParams.keys()].filter((name) => !(name in filters));
  t.deepEqual(unfiltered, ['perPage']);
  t.regex(options.pagination.pagination.nextURL, /\$response\.body\.pagination\.next\b/);
  t.is(nodes[2].parameters.fieldToSplitOut, 'data');
});

test("Postman's script follows the next address, and collects the records of all pages", (t) => {
  const [script = ''] = all(read('postman.md'), /```js\n(.*?)```/gs);
  const variables = new Map<string, string>();
  const next: (string | null)[] = [];
  for (const page of [
    { data: [1, 2], pagination: { next: 'https://host/2' } },
    { data: [3], pagination: { next: null } },
  ])
    runInNewContext(script, {
      data: {}, // which the sandbox of Postman declares
      console: { log: () => {} },
      pm: {
        response: { json: () => page },
        collectionVariables: variables,
        info: { requestName: 'All' },
        execution: { setNextRequest: (name: string | null) => next.push(name) },
      },
    });
  t.deepEqual(next, ['All', null]);
  t.is(variables.get('records'), '[1,2,3]');
});

test("dlt's full loads name the lists and the place of the next URL", (t) => {
  const [, full = ''] = all(read('python.md'), /^```python\n(.*?)^```/gms);
  t.deepEqual(
    JSON.parse(/"resources": (\[.*\])/.exec(full)?.[1] ?? '[]').sort(),
    [...resourcesClientRecipes.keys()].sort(),
  );
  t.true(full.includes('"next_url_path": "pagination.next"') && full.includes('"data_selector": "data"'));
});

test('every sentence that depends on a setting follows the setting', (t) => {
  const changed = {
    rateLimitPerMinute: 77,
    bodyBytesMax: 3_000,
    timeZone: 'Asia/Tokyo',
    perPageDefault: 25,
    perPageMax: 50,
    skipRowsMax: 500,
  };
  const text = JSON.stringify(makeOpenApi(resources, { ...defaults, ...changed, writesPerMinute: 20 }));
  t.true(text.includes('of which at most 20 writes'));
  t.false(JSON.stringify(document).includes('at most 0 writes'));
  for (const stale of ['60 requests', 'q=60;', '64 KiB', 'Europe/Amsterdam', '10000', '1000000 records']) {
    t.true(JSON.stringify(document).includes(stale), stale);
    t.false(text.includes(stale), stale);
  }
  for (const fresh of [
    ...['77 requests a minute', 'q=77;', 'at most 3000 bytes', 'Asia/Tokyo', '"default":25'],
    ...['more than 500 records'],
  ])
    t.true(text.includes(fresh), fresh);
});

test('the contact comes from a setting: a name, a URL and an e-mail address, and is absent without it', (t) => {
  const contact = (apiContact: string) => makeOpenApi(resources, { ...defaults, apiContact }).info;
  t.false('contact' in contact(''));
  t.like(contact('api@example.com'), { contact: { email: 'api@example.com' } });
  t.like(contact('https://example.com/help'), { contact: { url: 'https://example.com/help' } });
  const whole = 'Help desk, api@example.com, https://example.com/help';
  t.is(loadSettings({ API_CONTACT: whole }).apiContact, whole);
  t.deepEqual(Object.values(Object(contact(whole)).contact), whole.split(', '));
  for (const wrong of ['call us', 'a@b, ', 'a@b, c@d', 'a@b, help', `${whole}, more`, 'https://a b'])
    t.throws(() => loadSettings({ API_CONTACT: wrong }), { message: /API_CONTACT/ }, wrong);
});

test('a gateway without a primary describes no writes and nothing that only writes use', async (t) => {
  const readOnly = makeOpenApi(resources, { ...defaults, primaryUrls: '' });
  const methods = new Set(Object.values(readOnly.paths).flatMap((item) => Object.keys(item)));
  t.deepEqual([...methods], ['get']);
  t.notRegex(JSON.stringify(readOnly), /Idempoten|write:|primary_unavailable":\{|installatie\.create|guarded writes/);
  t.true((await new Validator().validate(JSON.parse(JSON.stringify(readOnly)))).valid);
});

test('Basic is a security scheme only where BASIC_AUTH is on, and then of every operation that needs a token', (t) => {
  t.deepEqual(Object.keys(document.components.securitySchemes), ['bearer']);
  const { components, paths } = makeOpenApi(resources, { ...defaults, basicAuth: true });
  t.deepEqual(Object.keys(components.securitySchemes), ['bearer', 'basic']);
  for (const item of Object.values(paths))
    for (const { security } of Object.values(item)) t.true(security.length === 0 || security.length === 2);
});

const withTools = toolsInstalled ? test : test.skip;

interface Finding {
  readonly code: string;
  readonly path: string;
  readonly message: string;
}

/** Findings that stay, each with its reason. */
const exceptions: Readonly<Record<string, string>> = {
  'oas3-operation-security-defined':
    'OpenAPI 3.1 lets an operation name the roles that a bearer token needs (§4.8.30); the rule knows scopes of OAuth only.',
};

const documentOpenapiLinters = makeOpenApi(loadResources(''), {
  version: '1.0.0',
  ...loadSettings({
    PUBLIC_URL: 'https://data.gateway.test',
    API_CONTACT: 'Help desk, api@example.com, https://example.com/help',
    PRIMARY_URLS: 'postgres://primary/app',
  }),
});

function withFaults(): object {
  const parameters = [{ in: 'query', name: 'per_page', schema: { type: 'string' } }];
  const problem = { description: 'a', content: { 'application/problem+json': { schema: { properties: {} } } } };
  const properties = { at: { type: 'string', format: 'time' }, startDate: { type: 'string', format: 'date-time' } };
  const responses = { 200: { description: 'a' }, 404: { description: 'a' }, 500: problem };
  return {
    openapi: '3.1',
    info: { title: 'a', version: '1', contact: { name: 'a' } },
    servers: [{ url: 'http://data.gateway.test/api' }],
    paths: { '/Klanten_all/': { get: { operationId: 'a', responses, parameters }, trace: { responses } } },
    components: { schemas: { lower_case: { type: 'object', properties } } },
  };
}

interface SpectralOutput {
  readonly rules: readonly string[];
  readonly findings: readonly [Finding[], Finding[]];
}

async function spectral(folder: string, files: readonly string[]): Promise<SpectralOutput> {
  const paths = files.map((name) => join(folder, name));
  return JSON.parse(await output(process.execPath, ['spectral.mjs', ...paths])) as SpectralOutput;
}

let folder = '';
test.before(() => {
  folder = workFolder({
    'openapi.json': JSON.stringify(documentOpenapiLinters),
    'faulty.json': JSON.stringify(withFaults()),
  });
});

withTools(
  `Spectral finds nothing by its own rules and the NLGov API Design Rules but the exceptions${toolsMissing}`,
  async (t) => {
    const { rules, findings } = await spectral(folder, ['openapi.json', 'faulty.json']);
    const [found, foundInFaulty] = findings.map((each) => new Set(each.map(({ code }) => code))) as [
      Set<string>,
      Set<string>,
    ];
    t.deepEqual([...found], Object.keys(exceptions), JSON.stringify(findings[0]));
    const idle = rules.filter((rule) => !foundInFaulty.has(rule));
    t.deepEqual(idle, [], 'each rule finds a planted fault');
  },
);

const text = readFileSync(join(projectRoot, 'docs/use/power-bi.md'), 'utf8');
const [workspaceFunction, versionFunction] = ['WorkspaceData.pq', 'WorkspaceVersion.pq'].map((name) =>
  readFileSync(join(projectRoot, 'docs/use', name), 'utf8'),
) as [string, string];
const queries = [...text.matchAll(/^ *```powerquery\n(.*?)```/gms)].map(([, block]) =>
  (block as string).replace(/^ *= /, ''),
);
const incremental = queries.find((query) => query.includes('RangeStart')) ?? '';
const whole = queries.find((query) => query.includes('List.Generate')) ?? '';

/** A call of Web.Contents: its first argument, and the names of the options in its second. */
interface Call {
  readonly kind: string;
  readonly literalKind: string;
  readonly text: string;
  readonly names: readonly string[];
}

withTools(
  `Microsoft's parser reads the function and every query, and each Web.Contents has an address that is not computed, RelativePath and Query${toolsMissing}`,
  async (t) => {
    const bad = 'let a = Web.Contents("https://" & Host, [Query = [perPage = "1"]]) in a';
    const programs = [workspaceFunction, versionFunction, ...queries, bad];
    const folder = workFolder(Object.fromEntries(programs.map((program, i) => [`${i}.pq`, program])));
    const files = programs.map((_, i) => join(folder, `${i}.pq`));
    const calls = JSON.parse(await output(process.execPath, ['powerquery.mjs', ...files])) as Call[];
    const names = ['RelativePath', 'Query', 'Headers'];
    t.like(calls[0], { kind: 'IdentifierExpression', text: 'base', names: [...names, 'ManualStatusHandling'] });
    t.like(calls[1], { kind: 'IdentifierExpression', text: 'base', names });
    t.deepEqual(calls[2], {
      kind: 'LiteralExpression',
      literalKind: 'Text',
      text: '"https://data.example.com"',
      names,
    });
    t.is(calls.length, 4);
    t.false(
      ['IdentifierExpression', 'LiteralExpression'].includes(calls[3]?.kind ?? ''),
      'a computed address is neither',
    );
  },
);

test('Power Query of work orders asks for the days of its range: RangeEnd is exclusive, `to` inclusive', (t) => {
  t.regex(incremental, /\[from = Day\(RangeStart\), to = Day\(RangeEnd - #duration\(0, 0, 0, 1\)\)\]/);
  t.regex(incremental, /\[datum\] >= Date\.From\(RangeStart\) and \[datum\] < Date\.From\(RangeEnd\)/);
});

test('the function finds the fields of each list where the OpenAPI document has them', (t) => {
  for (const { name } of resources) {
    const responses = (document.paths[`/${name}`]?.get?.responses ?? {}) as Record<string, ApiResponse>;
    const schema = responses['200']?.content?.['application/json']?.schema as JsonSchema;
    const page = resolve(document, schema) as { properties: { data: { items: JsonSchema } } };
    const row = resolve(document, page.properties.data.items) as { properties: object };
    t.true(Object.keys(row.properties).includes('id'), name);
  }
});

test('the columns of Power Query are the members of a work order, so that an empty list has them, too', (t) => {
  const columns = /Columns = \{(.*?)\}/s.exec(whole)?.[1]?.match(/(?<=")\w+(?=")/g);
  const workOrders = loadResources('').find(({ name }) => name === 'werkbonnen');
  t.deepEqual([...(columns ?? [])], Object.keys(workOrders?.fields ?? {}));
  const typed = [...whole.matchAll(/\{"(\w+)", type \w+\}/g)].map(([, name]) => name as string);
  const flat = columns?.filter((name) => name !== 'handelingen' && name !== 'uren');
  t.deepEqual(typed, flat);
});
