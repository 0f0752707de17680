import { faultsOf, listNames, page, records } from '../support/lists.js';
import { gatewayTest } from '../support/workspace.js';

const test = gatewayTest();
type Row = { readonly id: string };
const idsOf = (rows: readonly Row[]): string[] => rows.map(({ id }) => id);

for (const list of listNames) {
  test(`${list}: ids gives the records of these ids, in the order of the list, each once`, async (t) => {
    const { client } = t.context;
    const all = idsOf(await records<Row>(client, `/${list}?perPage=1000`));
    const chosen = [3, 0, 11, 3, 7].map((i) => all[i] as string);
    const found = await page<Row>(client, `/${list}?ids=${chosen}`);
    t.deepEqual(
      idsOf(found.data),
      [0, 3, 7, 11].map((i) => all[i] as string),
    );
    const hundred = all.slice(0, 100);
    const walked = await records<Row>(client, `/${list}?perPage=7&total=true&ids=${hundred}`);
    t.deepEqual(idsOf(walked), hundred);
    const reply = await client.get(`/${list}?perPage=7&ids=${hundred}`);
    const links = [reply.headers.link, reply.json<{ pagination: { next: string } }>().pagination.next];
    for (const link of links)
      t.true(String(link).includes(`ids=${hundred}`), 'with each comma escaped it would be too long a URL');
  });

  test(`${list}: ids that cannot exist, or are another workspace's, match nothing`, async (t) => {
    const { client, database } = t.context;
    const [first] = (await page<Row>(client, `/${list}?perPage=1`)).data;
    const other = await database.token({ workspace: 1 });
    t.deepEqual((await page(client, `/${list}?ids=${first?.id}`, { token: other })).data, []);
    const odd = ['onbekend', '0', '%00', "'", '%22', '%5C', '%7B%7D', 'NULL', '00000000-0000-4000-8000-000000000000'];
    for (const id of odd) {
      t.deepEqual((await page(client, `/${list}?ids=${id}`)).data, [], id);
      t.deepEqual(idsOf((await page<Row>(client, `/${list}?ids=${id},${first?.id}`)).data), [first?.id], id);
    }
  });

  test(`${list}: an empty element and more than 100 ids are refused`, async (t) => {
    const { client } = t.context;
    const many = (count: number): string => Array.from({ length: count }, (_, i) => i + 1).join(',');
    t.is((await client.get(`/${list}?ids=${many(100)}`)).status, 200);
    for (const [value, faults] of [
      [many(101), ['ids out_of_range']],
      [',', ['ids empty_value']],
      ['1,', ['ids empty_value']],
      ['1,,2', ['ids empty_value']],
      [`${many(101)},`, ['ids empty_value', 'ids out_of_range']],
    ] as const) {
      const reply = await client.get(`/${list}?ids=${value}`);
      t.is(reply.status, 400, value);
      t.deepEqual(faultsOf(reply), [...faults], value);
    }
  });
}

test('the address of the next page keeps a hundred ids and stays short enough to be taken', async (t) => {
  const { client } = t.context;
  const all = idsOf(await records<Row>(client, '/werkbonnen?perPage=100')).slice(0, 100);
  const { pagination } = await page(client, `/werkbonnen?perPage=99&order=desc&total=true&from=2000-01-01&ids=${all}`);
  const next = new URL(pagination.next as string);
  const { data } = await page<Row>(client, `/werkbonnen${next.search}`);
  t.deepEqual(idsOf(data), all.slice(0, 1));
});
