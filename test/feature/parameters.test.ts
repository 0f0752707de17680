import { codeOf, faultsOf, type ListName, listNames, lists } from '../support/lists.js';
import { gatewayTest } from '../support/workspace.js';

const test = gatewayTest();

const badNumbers: Record<string, string> = {
  '': 'empty_value',
  '0': 'out_of_range',
  '00': 'out_of_range',
  '01': 'out_of_range',
  '-1': 'invalid_integer',
  '+1': 'invalid_integer',
  '%2B1': 'invalid_integer',
  '1e3': 'invalid_integer',
  '1E3': 'invalid_integer',
  '0x10': 'invalid_integer',
  '%207': 'invalid_integer',
  '7%20': 'invalid_integer',
  '7%00': 'invalid_integer',
  '1.0': 'invalid_integer',
  '1,000': 'invalid_integer',
  '1_000': 'invalid_integer',
  NaN: 'invalid_integer',
  Infinity: 'invalid_integer',
  true: 'invalid_integer',
  '%D9%A1': 'invalid_integer', // ١, a digit that is not ASCII
  '99999999999999999999': 'out_of_range',
  '%': 'invalid_encoding',
  '%ff': 'invalid_encoding',
};
for (const list of listNames) {
  test(`${list}: a page number or size that is no plain whole number is refused`, async (t) => {
    for (const parameter of ['page', 'perPage']) {
      for (const [value, code] of Object.entries(badNumbers)) {
        const reply = await t.context.client.get(`/${list}?${parameter}=${value}`);
        t.is(reply.status, 400, value);
        t.is(codeOf(reply), 'invalid_request');
        t.deepEqual(faultsOf(reply), [`${parameter} ${code}`], value);
      }
    }
  });

  test(`${list}: unknown, repeated and empty parameters, and those of another list, are refused`, async (t) => {
    const foreign = listNames.flatMap((other) => [...lists[other]]).filter((name) => !takes(list, name));
    const unknown = [
      ...new Set(foreign),
      'perpage',
      'per_page',
      'PAGE',
      'limit',
      'sort',
      '__proto__',
      'constructor',
      'workspace_id',
    ];
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
      ...lists[list].map((name) => [`${name}=2026-01-01&${name}=2026-01-01`, `${name} repeated_parameter`]),
    ];
    for (const [query, fault] of cases) {
      const reply = await t.context.client.get(`/${list}?${query}`);
      t.is(reply.status, 400, query);
      t.deepEqual(faultsOf(reply), [fault], query);
    }
  });
}

test('all faults of a request are named at once', async (t) => {
  const reply = await t.context.client.get(
    '/logboeken?perPage=0&page=x&total=ja&from=2026-02-30&to=&entity=&cursor=!&sort=id&sort=id&page=2',
  );
  t.is(reply.status, 400);
  t.deepEqual(faultsOf(reply).sort(), [
    'cursor conflicting_parameters',
    'cursor invalid_cursor',
    'entity empty_value',
    'from invalid_date',
    'page invalid_integer',
    'page repeated_parameter',
    'perPage out_of_range',
    'sort unknown_parameter',
    'sort unknown_parameter',
    'to empty_value',
    'total invalid_boolean',
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
  for (const path of ['/klanten/x', '/installaties/x', '/werkbonnen/x', '/openapi.json']) {
    t.deepEqual(faultsOf(await client.get(`${path}?perPage=1&a`)), [
      'perPage unknown_parameter',
      'a unknown_parameter',
    ]);
  }
});

function takes(list: ListName, name: string): boolean {
  return (lists[list] as readonly string[]).includes(name);
}
