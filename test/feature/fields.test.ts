import type { ExecutionContext } from 'ava';
import { loadResources } from '../../src/resource/definition/load.js';
import { getColumns, listLeaves } from '../../src/resource/definition/resource.js';
import { compileStatements } from '../../src/resource/statements/statements.js';
import {
  codeOf,
  faultsOf,
  idsOf,
  type ListName,
  listNames,
  lists,
  type Page,
  page,
  pages,
  records,
} from '../support/lists.js';
import { analyzed } from '../support/plan-buffers.js';
import { replicaReader } from '../support/replica-reader.js';
import { gatewayTest, type TestContext } from '../support/workspace.js';

const test = gatewayTest();
type Context = ExecutionContext<TestContext>;
type Rec = Readonly<Record<string, unknown>> & { readonly id: string };

async function whole({ context }: Context, path: string): Promise<{ rows: Rec[]; names: string[] }> {
  const { data } = await page<Rec>(context.client, path);
  const names = Object.keys(data[0] as Rec).filter((name) => name !== 'decodeErrors' && name !== 'syncVersion');
  return { rows: data, names };
}

function cut(row: Rec, names: readonly string[]): object {
  const shown = Object.entries(row).filter(([name]) => ['id', 'syncVersion', ...names].includes(name));
  return Object.fromEntries(shown);
}

const withoutErrors = (rows: readonly Rec[]): object[] => rows.map(({ decodeErrors, ...row }) => row);

for (const list of listNames) {
  test(`${list}: each member, any two of them and none but id come as in the whole record, on lists and passes`, async (t) => {
    for (const path of [`/${list}?perPage=300`, `/sync/${list}?perPage=300`]) {
      const { rows, names } = await whole(t, path);
      const [first, last] = [names[1] as string, names.at(-1) as string];
      const cases = [
        ...names.map((name) => [`fields=${name}`, [name]] as const),
        [`fields=${last},${first}`, [first, last]] as const,
        [`fields=${last}&fields=id,${first}&fields=${last}`, [first, last]] as const,
        [`fields=${names.join()}`, names] as const,
      ];
      for (const [query, asked] of cases) {
        const { data } = await page<Rec>(t.context.client, `${path}&${query}`);
        const expected = withoutErrors(rows).map((row) => cut(row as Rec, asked));
        t.is(JSON.stringify(withoutErrors(data)), JSON.stringify(expected), query);
      }
      const passAll = await page<Rec>(t.context.client, `/sync/${list}?fields=syncVersion`);
      t.deepEqual(Object.keys(passAll.data[0] as Rec), ['id', 'syncVersion']);
    }
  });

  test(`${list}: each filter, in both orders, finds the same records whatever is asked for`, async (t) => {
    const { client } = t.context;
    const [, , record] = await records<Rec>(client, `/${list}?perPage=1000`);
    const { id } = record as Rec;
    const dates = { from: '2000-01-01', to: '2100-01-01', updatedSince: '2000-01-01', ids: id };
    const values = new URLSearchParams({ ...(record as Record<string, string>), ...dates });
    const filters = lists[list].map((name) => `${name}=${encodeURIComponent(values.get(name) as string)}`);
    const others = filters.filter((each) => !each.startsWith('ids='));
    for (const query of [...filters, others.join('&'), filters.join('&')]) {
      for (const order of ['asc', 'desc']) {
        const path = `/${list}?perPage=50&order=${order}&${query}`;
        const { data } = await page<Rec>(client, path);
        const found = await page<Rec>(client, `${path}&fields=id&total=true`);
        t.deepEqual(
          found.data,
          data.map((row) => ({ id: row.id })),
          path,
        );
      }
    }
  });
}

test('next and Link keep what is asked for, and a cursor and a page number go on with anything else', async (t) => {
  const { client } = t.context;
  const { rows, names } = await whole(t, '/installaties?perPage=100');
  const [, one = '', other = ''] = names;
  const first = await page<Rec>(client, `/installaties?perPage=3&fields=${one}&fields=${other}`);
  const next = first.pagination.next as string;
  t.regex(next, new RegExp(`[?&]fields=${one},${other}&`));
  t.true(first.reply.headers.link?.includes(`<${next}>; rel="next"`));
  const second = await page<Rec>(client, next.split('/api/v1')[1] as string);
  t.deepEqual(second.data, rows.slice(3, 6).map((row) => cut(row, [one, other])) as Rec[]);
  const cursor = `cursor=${first.pagination.nextCursor}`;
  t.deepEqual((await page<Rec>(client, `/installaties?perPage=3&${cursor}`)).data, rows.slice(3, 6));
  for (const [number, asked] of [
    [1, `&fields=${one}`],
    [2, ''],
    [3, `&fields=${other}`],
  ] as const) {
    const { data } = await page<Rec>(client, `/installaties?perPage=3&page=${number}${asked}`);
    const expected = rows.slice(number * 3 - 3, number * 3);
    t.deepEqual(data, asked === '' ? expected : (expected.map((row) => cut(row, [asked.slice(8)])) as Rec[]));
  }
  const walked: Rec[] = [];
  for await (const { data } of pages<Rec>(client, `/installaties?perPage=35&fields=${one}`)) walked.push(...data);
  const firstIds = walked.map(({ id }) => id).slice(0, 100);
  t.deepEqual(firstIds, idsOf(rows));
  const pass = await page<Rec>(client, `/sync/installaties?perPage=3&fields=${one}`);
  t.regex((pass as Page).pagination.next as string, new RegExp(`[?&]fields=${one}&`));
});

test('a sealed member that is not asked for is not decrypted', async (t) => {
  const { client, gateway } = await t.context.database.gateway();
  /** Each damaged value that is decrypted is counted as an error. */
  const decrypted = async (): Promise<number> => {
    const metrics = await (await fetch(`${gateway.opsUrl}/metrics`)).text();
    const counts = metrics.matchAll(/^gateway_decode_errors_total\{.*\} (\d+)$/gm);
    return [...counts].reduce((sum, [, count]) => sum + Number(count), 0);
  };
  const before = await decrypted();
  for (const path of ['/klanten?', '/sync/klanten?', '/klanten?updatedSince=2000-01-01&'])
    t.false((await client.get(`${path}fields=createdAt&perPage=500`)).text.includes('decodeErrors'));
  t.is(await decrypted(), before);
  const { data } = await page<Rec>(client, '/klanten?fields=kvkNummer&perPage=500');
  t.true(
    data
      .flatMap(({ decodeErrors }) => (decodeErrors as string[] | undefined) ?? [])
      .every((each) => each === '/kvkNummer'),
  );
  t.true((await decrypted()) > before);
});

test('where no part is asked for, none is read', async (t) => {
  const client = await replicaReader(t);
  const resource = loadResources(t.context.database.settings.resourcesDir).find(({ name }) => name === 'werkbonnen');
  if (resource === undefined) return t.fail();
  const { list } = compileStatements(resource);
  const members = listLeaves(resource).filter(({ path }) => path[0] === 'status');
  const columns = getColumns(resource, members);
  const values = {
    ids: '{}',
    limit: 5,
    timeZone: 'UTC',
    installationId: '0',
    status: '',
    nummer: '',
    after0: '2020-01-01',
    after1: '0',
  };
  const dates = { from: '2020-01-01', to: '2020-01-01', updatedSince: '2020-01-01', until0: '2020-01-01', until1: '0' };
  for (const filters of [[], ...Object.keys(resource.filters).map((name) => [name])]) {
    for (const statement of Object.values(list(filters, 'asc', { fields: ['status'], columns }).rows)) {
      const typed = Object.entries({ ...values, ...dates }).map(([name, value]) => [
        name,
        value === '0' && resource.idType === 'uuid' ? '00000000-0000-4000-8000-000000000000' : value,
      ]);
      await client.query(`prepare guarded as ${statement.text}`);
      const plan = await analyzed(client, statement, Object.fromEntries(typed) as Record<string, string | number>);
      await client.query('deallocate guarded');
      const read = [...JSON.stringify(plan).matchAll(/"Relation Name":"((?!wall_keys)\w+)"/g)].map(([, name]) => name);
      t.is(new Set(read).size, 1, `${statement.name} reads ${read}`);
    }
  }
});

const refused: readonly (readonly [query: string, faults: readonly string[]])[] = [
  ['fields=', ['fields empty_value']],
  ['fields=id,', ['fields empty_value']],
  ['fields=id&fields=', ['fields empty_value']],
  ['fields=__proto__,constructor,toString', ['fields unknown_field', 'fields unknown_field', 'fields unknown_field']],
  ['fields=adres.straat', ['fields unknown_field']],
  ['fields=workspace_id', ['fields unknown_field']],
  ['fields=*', ['fields unknown_field']],
  ['fields=syncVersion', ['fields unknown_field']],
  [`fields=${Array.from({ length: 1000 }, (_, i) => i.toString(36).padStart(3, '0')).join()}`, ['fields out_of_range']],
  [`fields=${'id,'.repeat(1000)}id`, ['fields out_of_range']],
  ['fields=%ff', ['fields invalid_encoding']],
];

test('names that no member has, empty ones and too many are refused, and the nearest is named', async (t) => {
  const { client } = t.context;
  for (const [query, faults] of refused) {
    const reply = await client.get(`/klanten?${query}`);
    t.is(reply.status, 400, query);
    t.deepEqual(faultsOf(reply), faults, query);
  }
  for (const path of ['/klanten', '/sync/klanten']) {
    for (const [name, near] of [
      ['kvk_nummer', 'kvkNummer'],
      ['adres.straat', 'adres'],
    ]) {
      const { detail } = (await client.get(`${path}?fields=${name}`)).json<{ detail: string }>();
      t.is(detail, `There is no member "${name}": did you mean ${near}?`);
    }
  }
});

test('a detail does not take fields, and says why', async (t) => {
  const { client } = t.context;
  const { data } = await page<Rec>(client, '/installaties?perPage=1');
  const reply = await client.get(`/installaties/${data[0]?.id}?fields=naam`);
  t.deepEqual(faultsOf(reply), ['fields unknown_parameter']);
  t.regex(reply.json<{ detail: string }>().detail, /ETag is of the whole record/);
  for (const path of ['/token', '/sync/klanten/digest', '/openapi.json'])
    t.regex((await client.get(`${path}?fields=naam`)).text, /There is no parameter ."fields." here[.]"/, path);
});

test('a token without the read scope gets no member of the list', async (t) => {
  const token = await t.context.database.token({ scopes: ['read:logboeken', 'write:installaties'] });
  for (const list of ['klanten', 'installaties'] satisfies ListName[])
    for (const path of [`/${list}`, `/sync/${list}`])
      t.is(codeOf(await t.context.client.get(`${path}?fields=id`, { token })), 'insufficient_scope');
});
