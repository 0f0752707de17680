import { listNames, type Page, records } from '../support/lists.js';
import { gatewayTest } from '../support/workspace.js';

const test = gatewayTest();

for (const list of ['klanten', 'installaties', 'werkbonnen']) {
  test(`${list}: an id of another workspace is answered exactly as one that does not exist`, async (t) => {
    const { client, database } = t.context;
    const other = await database.token({ workspace: 1 });
    const [record] = (await client.get(`/${list}?perPage=1`, { token: other })).json<Page>().data;
    t.is((await client.get(`/${list}/${record?.id}`, { token: other })).status, 200);
    const [foreign, unknown] = [
      await client.get(`/${list}/${record?.id}`),
      await client.get(`/${list}/00000000-0000-4000-8000-000000000000`),
    ];
    t.is(foreign.status, 404);
    t.is(foreign.text.replace(/"requestId":"[^"]*"/, ''), unknown.text.replace(/"requestId":"[^"]*"/, ''));
    t.deepEqual(Object.keys(foreign.headers).sort(), Object.keys(unknown.headers).sort());
  });
}

for (const list of listNames) {
  test(`${list}: two workspaces share no record, also when both read at the same time over the same connections`, async (t) => {
    const { client, database } = t.context;
    const tokens = [await database.token({ workspace: 0 }), await database.token({ workspace: 1 })];
    const read = (i: number) =>
      records<{ id: string }>(client, `/${list}?perPage=300`, { token: tokens[i % 2] as string });
    const all = await Promise.all(Array.from({ length: 6 }, (_, i) => read(i)));
    const [first, second] = all.slice(0, 2).map((list) => new Set(list.map(({ id }) => id))) as [
      Set<string>,
      Set<string>,
    ];
    t.true(first.size > second.size && second.size > 0);
    t.true([...second].every((id) => !first.has(id)));
    for (const [i, list] of all.entries()) t.deepEqual(new Set(list.map(({ id }) => id)), i % 2 === 0 ? first : second);
  });
}
