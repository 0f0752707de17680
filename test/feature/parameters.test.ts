import { codeOf, faultsOf, type ListName, listNames, lists } from '../support/lists.js';
import { words } from '../support/words.js';
import { gatewayTest } from '../support/workspace.js';

const test = gatewayTest();

// %D9%A1 is ١, a digit that is not ASCII.
const noIntegers = words('00 01 -1 +1 %2B1 1e3 1E3 0x10 %207 7%20 7%00 1.0 1,000 1_000 NaN Infinity true %D9%A1');
const badNumbers: readonly (readonly [value: string, code: string])[] = [
  ['', 'empty_value'],
  ...noIntegers.map((value) => [value, 'invalid_integer'] as const),
  ...['0', '99999999999999999999'].map((value) => [value, 'out_of_range'] as const),
  ...['%', '%ff'].map((value) => [value, 'invalid_encoding'] as const),
];
for (const list of listNames) {
  test(`${list}: a page number or size that is no plain whole number is refused`, async (t) => {
    for (const parameter of ['page', 'perPage']) {
      for (const [value, code] of badNumbers) {
        const reply = await t.context.client.get(`/${list}?${parameter}=${value}`);
        t.is(reply.status, 400, value);
        t.is(codeOf(reply), 'invalid_request');
        t.deepEqual(faultsOf(reply), [`${parameter} ${code}`], value);
      }
    }
  });

  test(`${list}: unknown, repeated and empty parameters, and those of another list, are refused`, async (t) => {
    const foreign = listNames.flatMap((other) => [...lists[other]]).filter((name) => !takes(list, name));
    const invented = words('perpage per_page PAGE limit sort __proto__ constructor workspace_id');
    const unknown = [...new Set(foreign), ...invented];
    const cases = [
      ...unknown.map((name) => [`${name}=1`, `${name} unknown_parameter`]),
      ['perPage=1&perPage=1', 'perPage repeated_parameter'],
      ['page=1&%70age=2', 'page repeated_parameter'],
      ['cursor=', 'cursor empty_value'],
      ['cursor', 'cursor empty_value'],
      ['=1', ' unknown_parameter'],
      ['%zz=1', '%zz=1 unknown_parameter'],
      ['perPage[]=1', 'perPage[] unknown_parameter'],
      ...['1', 'TRUE', 'yes', 'on', '0'].map((value) => [`total=${value}`, 'total invalid_boolean']),
      ...lists[list].map((name) => [`${name}=`, `${name} empty_value`]),
      ...lists[list]
        .filter((name) => name !== 'ids')
        .map((name) => [`${name}=2026-01-01&${name}=2026-01-01`, `${name} repeated_parameter`]),
    ];
    for (const [query, fault] of cases) {
      const reply = await t.context.client.get(`/${list}?${query}`);
      t.is(reply.status, 400, query);
      t.deepEqual(faultsOf(reply), [fault], query);
    }
  });
}

const meant: Readonly<Record<string, string>> = {
  per_page: 'perPage',
  limit: 'perPage',
  $top: 'perPage',
  'page[size]': 'perPage',
  pageSize: 'perPage',
  sort: 'order',
  includeTotal: 'total',
  $orderby: 'order',
  'filter[status]': 'status',
  'filter[installation_id]': 'installationId',
  'fields[werkbonnen]': 'fields',
  'ids[]': 'ids',
  PERPAGE: 'perPage',
  nummr: 'nummer',
};

test('a parameter of another API, or one with a slip, is refused with the one that is meant', async (t) => {
  const { client } = t.context;
  const detailOf = async (name: string): Promise<string> =>
    (await client.get(`/werkbonnen?${encodeURIComponent(name)}=1`)).json<{ detail: string }>().detail;
  for (const [name, parameter] of Object.entries(meant))
    t.is(await detailOf(name), `There is no parameter ${JSON.stringify(name)} here: did you mean ${parameter}?`);
  for (const name of ['__proto__', 'constructor', '$filter', 'filter[]', ''])
    t.is(await detailOf(name), `There is no parameter ${JSON.stringify(name)} here.`);
});

test('all faults of a request are named at once', async (t) => {
  const reply = await t.context.client.get(
    '/logboeken?perPage=0&page=x&total=ja&from=2026-02-30&to=&entity=&cursor=!&sort=id&sort=id&page=2',
  );
  t.is(reply.status, 400);
  t.deepEqual(faultsOf(reply).sort(), [
    ...['cursor conflicting_parameters', 'cursor invalid_cursor', 'entity empty_value', 'from invalid_date'],
    ...['page invalid_integer', 'page repeated_parameter', 'perPage out_of_range', 'sort unknown_parameter'],
    ...['sort unknown_parameter', 'to empty_value', 'total invalid_boolean'],
  ]);
});

test('perPage goes up to the configured limit, 10,000 unless set, and page to a million skipped rows', async (t) => {
  const { client, database } = t.context;
  t.is((await client.get('/klanten?perPage=10000')).status, 200);
  t.is((await client.get('/klanten?perPage=10001')).status, 400);
  t.is((await client.get('/klanten?page=1000002&perPage=1')).status, 400);
  t.is((await client.get('/klanten?page=1000001&perPage=1')).status, 200);
  t.is((await client.get('/klanten?page=1000000000')).status, 400);
  const narrow = await database.gateway({ perPageMax: 20, perPageDefault: 7 });
  t.is((await narrow.client.get('/klanten')).json<{ data: unknown[] }>().data.length, 7);
  t.is((await narrow.client.get('/klanten?perPage=20')).status, 200);
  t.deepEqual(faultsOf(await narrow.client.get('/klanten?perPage=21')), ['perPage out_of_range']);
});

test('details and the OpenAPI document take no parameters', async (t) => {
  const { client } = t.context;
  const faults = ['perPage unknown_parameter', 'a unknown_parameter'];
  for (const path of ['/klanten/x', '/installaties/x', '/werkbonnen/x', '/openapi.json'])
    t.deepEqual(faultsOf(await client.get(`${path}?perPage=1&a`)), faults);
});

function takes(list: ListName, name: string): boolean {
  return (lists[list] as readonly string[]).includes(name);
}

const badDates = words(`
  2026-02-30 2026-02-29 2026-13-01 2026-00-10 2026-01-00 0000-01-01 2026-1-1 20260101 26-01-01 2026-01-01T00:00:00Z
  %202026-01-01 2026-01-01%20 2026-01-01%00 12026-01-01 -2026-01-01 today infinity 2026-W01-1 01-01-2026`);

for (const list of ['werkbonnen', 'logboeken'] as const) {
  test(`${list}: a date that is not in the calendar, or not written as one, is refused`, async (t) => {
    for (const parameter of ['from', 'to']) {
      for (const value of badDates) {
        const reply = await t.context.client.get(`/${list}?${parameter}=${value}`);
        t.is(reply.status, 400, value);
        t.deepEqual(faultsOf(reply), [`${parameter} invalid_date`], value);
      }
    }
  });

  test(`${list}: from after to is refused, from equal to to is not`, async (t) => {
    const { client } = t.context;
    const reversed = await client.get(`/${list}?from=2024-05-02&to=2024-05-01`);
    t.is(reversed.status, 400);
    t.deepEqual(faultsOf(reversed), ['from range_reversed']);
    t.is((await client.get(`/${list}?from=2024-05-01&to=2024-05-01`)).status, 200);
    t.is((await client.get(`/${list}?from=0001-01-01&to=9999-12-31&perPage=1`)).status, 200);
  });
}

test('of several things that are wrong the answer names the first: path, method, token, limit, scope, Accept, parameters, record, version', async (t) => {
  const { client, database } = t.context;
  const headers = { accept: 'text/html' };
  const unknown = '00000000-0000-4000-8000-000000000000';
  const token = await database.token({ scopes: ['read:logboeken'] });
  const requests: [path: string, options: Parameters<typeof client.get>[1], code: string][] = [
    ['/facturen?x=1', { token: 'x', headers }, 'not_found'],
    ['/klanten?x=1', { token: 'x', headers }, 'token_invalid'],
    ['/klanten?x=1', { token: null, headers }, 'token_missing'],
    ['/klanten?x=1', { token, headers }, 'insufficient_scope'],
    [`/klanten/${unknown}?x=1`, { token, headers }, 'insufficient_scope'],
    ...['/klanten?x=1', `/klanten/${unknown}?x=1`, '/openapi.json?x=1', '?x=1'].map(
      (path): (typeof requests)[number] => [path, { headers }, 'not_acceptable'],
    ),
    [`/klanten/${unknown}?x=1`, {}, 'invalid_request'],
    [`/installaties/${unknown}`, { headers: { 'if-match': 'v1' } }, 'if_match_invalid'],
    [`/installaties/${unknown}`, { headers: { 'if-match': '"v1"' } }, 'not_found'],
  ];
  for (const [path, options, code] of requests) t.is(codeOf(await client.get(path, options)), code, path);
  t.is(codeOf(await client.request('DELETE', '/klanten?x=1', { token: 'x', headers })), 'method_not_allowed');
  const limited = await database.gateway({ rateLimitPerMinute: 1 });
  for (const code of ['insufficient_scope', 'rate_limited'])
    t.is(codeOf(await limited.client.get('/klanten?x=1', { token, headers })), code);
});
