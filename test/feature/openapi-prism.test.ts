import { spawn } from 'node:child_process';
import { randomUUID } from 'node:crypto';
import { once } from 'node:events';
import { rmSync } from 'node:fs';
import { join } from 'node:path';
import { type ApiClient, apiClient, type RequestOptions } from '../support/client.js';
import { toolsFolder, toolsInstalled, toolsMissing, workFolder } from '../support/client-tools.js';
import { type ListName, lists, page } from '../support/lists.js';
import { gatewayTest, type RunningGateway } from '../support/workspace.js';

const suite = gatewayTest();
const test = toolsInstalled ? suite : suite.skip;

/** A request, the status that the gateway answers, and whether the document alone tells that the request is wrong. */
type Case = readonly [status: number, method: string, path: string, options?: RequestOptions, isWrong?: 'wrong'];

interface Violation {
  readonly location: readonly string[];
  readonly message: string;
}

/** Prism in front of the gateway, and a client that speaks to Prism. */
async function startPrism({ gateway, client, token }: RunningGateway): Promise<{ client: ApiClient; stop(): void }> {
  const folder = workFolder({ 'openapi.json': (await client.get('/openapi.json')).text });
  const args = ['prism.mjs', join(folder, 'openapi.json'), `${gateway.url}/api/v1`];
  const child = spawn(process.execPath, args, { cwd: toolsFolder, stdio: ['pipe', 'pipe', 'inherit'] });
  const [address] = (await once(child.stdout, 'data')) as [Buffer];
  const throughPrism = apiClient(address.toString().trim(), { token });
  const stop = (): void => {
    throughPrism.close();
    child.stdin.end();
    rmSync(folder, { recursive: true });
  };
  return { client: throughPrism, stop };
}

type Row = Readonly<Record<string, string>> & { readonly id: string };

/** Every parameter of a list with a value that the list has, and some that it cannot have. */
async function listCases(client: ApiClient, list: ListName): Promise<Case[]> {
  const { data, pagination } = await page<Row>(client, `/${list}?perPage=2`);
  const [first, second] = data as [Row, Row];
  const days = {
    from: '2026-01-01',
    to: '2026-12-31',
    updatedSince: '2026-01-01T00:00:00Z',
    ids: `${first.id},${second.id}`,
  };
  const values: Readonly<Record<string, string>> = { ...first, ...days };
  const good = ['', 'perPage=3', 'perPage=2&page=2', 'perPage=2&total=true', 'perPage=2&order=desc', 'page=99'];
  const wrong = ['perPage=0', 'page=0', 'order=up', 'total=yes', 'cursor=!'];
  const refused = [
    'perPage=1e3',
    'perPage=2&perPage=3',
    'unknown=1',
    `page=1&cursor=${pagination.endCursor}`,
    'cursor=abc',
    'ids=',
  ];
  const asList = (query: string): string => `/${list}?${query}`;
  return [
    ...good.map((query): Case => [200, 'GET', asList(query)]),
    ...[`perPage=2&cursor=${pagination.nextCursor}`, `cursor=${pagination.endCursor}`].map(
      (query): Case => [200, 'GET', asList(query)],
    ),
    ...lists[list].map(
      (filter): Case => [200, 'GET', asList(`perPage=2&${filter}=${encodeURIComponent(String(values[filter]))}`)],
    ),
    ...wrong.map((query): Case => [400, 'GET', asList(query), {}, 'wrong']),
    ...refused.map((query): Case => [400, 'GET', asList(query)]),
    [401, 'GET', `/${list}`, { token: null }, 'wrong'],
    [401, 'GET', `/${list}`, { token: 'wdg_unknown' }],
    [406, 'GET', `/${list}`, { headers: { accept: 'text/html' } }],
  ];
}

/** Reads and writes of single records. */
async function recordCases({ client }: RunningGateway, writeOnly: string, readOnly: string): Promise<Case[]> {
  const { data } = await page<Row>(client, '/installaties?perPage=2');
  const [{ id, customerId }, { id: other }] = data as [Row, Row];
  const path = `/installaties/${id}`;
  const etag = String((await client.get(path)).headers.etag);
  const otherEtag = String((await client.get(`/installaties/${other}`)).headers.etag);
  const key = (): Readonly<Record<string, string>> => ({ 'idempotency-key': randomUUID() });
  const [created, changed] = [key(), { ...key(), 'if-match': etag }];
  const body = { customerId, naam: 'Koelcel', bouwjaar: 2024, inbedrijfstelling: '2024-02-29' };
  const patch = (more: RequestOptions): RequestOptions => ({
    headers: { ...key(), 'if-match': '"v0"' },
    body: {},
    ...more,
  });
  return [
    [200, 'GET', path],
    [304, 'GET', path, { headers: { 'if-none-match': etag } }],
    [412, 'GET', path, { headers: { 'if-match': '"other"' } }],
    [404, 'GET', `/installaties/${randomUUID()}`],
    [403, 'GET', path, { token: writeOnly }],
    [200, 'GET', '/openapi.json', { token: null }],
    [201, 'POST', '/installaties', { headers: created, body }],
    [201, 'POST', '/installaties', { headers: created, body }],
    [422, 'POST', '/installaties', { headers: created, body: { ...body, naam: 'Airco' } }],
    [201, 'POST', '/installaties', { headers: key(), body, token: writeOnly }],
    [403, 'POST', '/installaties', { headers: key(), body, token: readOnly }],
    [400, 'POST', '/installaties', { body }, 'wrong'],
    [400, 'POST', '/installaties', { headers: key(), body: {} }, 'wrong'],
    [400, 'POST', '/installaties', { headers: key(), body: { ...body, koudemiddel: 'R32' } }, 'wrong'],
    [400, 'POST', '/installaties', { headers: key(), body: { ...body, bouwjaar: 'oud' } }, 'wrong'],
    [400, 'POST', '/installaties', { headers: key(), body: { ...body, customerId: randomUUID() } }],
    [415, 'POST', '/installaties', { headers: { ...key(), 'content-type': 'text/plain' }, body: 'naam' }, 'wrong'],
    [200, 'PATCH', path, { headers: changed, body: { locatie: 'Kelder', omschrijving: null } }],
    [200, 'PATCH', path, { headers: changed, body: { locatie: 'Kelder', omschrijving: null } }],
    [412, 'PATCH', path, patch({ body: { locatie: 'Dak' } })],
    [428, 'PATCH', path, patch({ headers: key() }), 'wrong'],
    [400, 'PATCH', path, patch({ headers: { ...key(), 'if-match': '*' } }), 'wrong'],
    [400, 'PATCH', path, patch({ body: { id: other } }), 'wrong'],
    [404, 'PATCH', `/installaties/${randomUUID()}`, patch({})],
    [
      200,
      'PATCH',
      `/installaties/${other}`,
      {
        headers: { ...key(), 'if-match': otherEtag, 'content-type': 'application/merge-patch+json' },
        body: { merk: 'Daikin' },
      },
    ],
  ];
}

/** The ways in which an exchange is not as the document describes it, as sentences. */
async function faultsOf(client: ApiClient, [status, method, path, options, isWrong]: Case): Promise<string[]> {
  const reply = await client.request(method, path, options);
  const violations = JSON.parse(reply.headers['sl-violations'] ?? '[]') as Violation[];
  const inRequest = violations.filter(({ location }) => location[0] === 'request');
  const faults = violations
    .filter((each) => status < 400 || !inRequest.includes(each))
    .map((each) => JSON.stringify(each));
  if (reply.status !== status) faults.push(`${reply.status} instead of ${status}: ${reply.text.slice(0, 300)}`);
  if (isWrong && inRequest.length === 0) faults.push('Prism takes the request for a right one');
  return faults.map((fault) => `${method} ${path} ${JSON.stringify(options ?? {})}: ${fault}`);
}

test(`Prism between clients and the gateway sees no violation of the document${toolsMissing}`, async (t) => {
  const { client, database } = t.context;
  const [writeOnly, readOnly] = [
    await database.token({ scopes: ['write:installaties'] }),
    await database.token({ scopes: ['read:installaties'] }),
  ];
  const ofLists = await Promise.all((Object.keys(lists) as ListName[]).map((list) => listCases(client, list)));
  const cases = [...ofLists.flat(), ...(await recordCases(t.context, writeOnly, readOnly))];
  const prism = await startPrism(t.context);
  try {
    const faults: string[] = [];
    for (const each of cases) faults.push(...(await faultsOf(prism.client, each)));
    t.deepEqual(faults, []);
    t.log(`${cases.length} requests`);
  } finally {
    prism.stop();
  }
});
