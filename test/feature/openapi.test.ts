import type { OpenApiDocument } from '../../src/openapi/document.js';
import { listNames } from '../support/lists.js';
import { gatewayTest } from '../support/workspace.js';

const test = gatewayTest();

test('the API describes itself to anybody, as OpenAPI 3.1', async (t) => {
  const reply = await t.context.client.get('/openapi.json', { token: null });
  t.is(reply.status, 200);
  t.is(reply.headers['content-type'], 'application/json');
  const document = reply.json<OpenApiDocument>();
  t.true(document.openapi.startsWith('3.1.'));
  t.is(reply.headers['api-version'], document.info.version);
});

test('it describes every endpoint, its scope and its parameters', async (t) => {
  const { paths, components } = (await t.context.client.get('/openapi.json')).json<OpenApiDocument>();
  const reads = listNames.flatMap((list) => (list === 'logboeken' ? [`/${list}`] : [`/${list}`, `/${list}/{id}`]));
  t.deepEqual(Object.keys(paths).sort(), [...reads, '/openapi.json'].sort());
  for (const path of reads) {
    t.is(paths[path]?.get?.['x-required-scope'], `read:${path.split('/')[1]}`);
  }
  const named = (path: string) =>
    paths[path]?.get?.parameters.map(({ $ref }) => components.parameters[$ref.split('/').at(-1) as string]?.name);
  t.deepEqual(named('/logboeken'), [
    'perPage',
    'page',
    'cursor',
    'total',
    'entity',
    'entityId',
    'from',
    'to',
    'X-Request-Id',
  ]);
  t.deepEqual(named('/werkbonnen'), [
    'perPage',
    'page',
    'cursor',
    'total',
    'installationId',
    'from',
    'to',
    'X-Request-Id',
  ]);
});

test('what it describes is what this gateway is set to', async (t) => {
  const { client } = await t.context.database.gateway({ perPageDefault: 25, perPageMax: 50 });
  const { components } = (await client.get('/openapi.json')).json<OpenApiDocument>();
  t.like(components.parameters.perPage?.schema, { default: 25, maximum: 50 });
});

test('a bad token does not matter, and it can be compressed', async (t) => {
  const { client } = t.context;
  const reply = await client.get('/openapi.json', { token: 'x', headers: { 'accept-encoding': 'br' } });
  t.is(reply.status, 200);
  t.is(reply.headers['content-encoding'], 'br');
  t.is(reply.text, (await client.get('/openapi.json')).text);
});
