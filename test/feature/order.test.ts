import { whileInserting } from '../support/inserts.js';
import { faultsOf, listNames, page, pages, records } from '../support/lists.js';
import { gatewayTest } from '../support/workspace.js';

// Small chunks, so that a large page is made of many statements.
const test = gatewayTest({ chunkRowsMax: 40, chunkBytes: 16_384 });
type Row = { readonly id: string };
const idsOf = (rows: readonly Row[]): string[] => rows.map(({ id }) => id);

for (const list of listNames) {
  test.serial(`${list}: order=desc reverses the list, whatever way it is walked`, async (t) => {
    const { client } = t.context;
    const ascending = idsOf(await records<Row>(client, `/${list}?perPage=1000`));
    t.deepEqual(idsOf(await records<Row>(client, `/${list}?perPage=1000&order=asc`)), ascending);
    const reversed = [...ascending].reverse();
    for (const by of ['cursor', 'page'] as const) {
      for (const perPage of [33, 400]) {
        const walked: string[] = [];
        for await (const { data } of pages<Row>(client, `/${list}?order=desc&perPage=${perPage}`, by))
          walked.push(...idsOf(data));
        t.deepEqual(walked, reversed, `${perPage} by ${by}`);
      }
    }
    const jumped = await page<Row>(client, `/${list}?order=desc&perPage=29&page=3`);
    t.deepEqual(idsOf(jumped.data), reversed.slice(58, 87));
    const past = await page<Row>(client, `/${list}?order=desc&perPage=1000&page=500`);
    t.deepEqual(past.data, []);
    t.deepEqual((await page(client, `/${list}?order=desc&cursor=${past.pagination.endCursor}`)).data, []);
  });

  test.serial(`${list}: walking backward returns each row once while rows are inserted`, async (t) => {
    const { client, database } = t.context;
    await database.caughtUp();
    const before = idsOf(await records<Row>(client, `/${list}?perPage=1000&order=desc`));
    const walk = async () => {
      const walked: string[] = [];
      for await (const { data } of pages<Row>(client, `/${list}?order=desc&perPage=200`, 'page'))
        walked.push(...idsOf(data));
      return walked;
    };
    const { result: walked, inserted } = await whileInserting(database.primary, list, database.workspaces[0]?.id, walk);
    t.true(inserted > 0);
    t.is(new Set(walked).size, walked.length);
    const there = new Set(before);
    t.deepEqual(
      walked.filter((id) => there.has(id)),
      before,
    );
  });

  test.serial(`${list}: a cursor and the addresses of pages belong to their order`, async (t) => {
    const { client } = t.context;
    const refused = ['cursor invalid_cursor'];
    const [up, down] = [await page(client, `/${list}?perPage=3`), await page(client, `/${list}?perPage=3&order=desc`)];
    t.is((await client.get(`/${list}?order=asc&cursor=${up.pagination.endCursor}`)).status, 200);
    t.deepEqual(faultsOf(await client.get(`/${list}?order=desc&cursor=${up.pagination.endCursor}`)), refused);
    t.deepEqual(faultsOf(await client.get(`/${list}?cursor=${down.pagination.endCursor}`)), refused);
    t.regex(down.pagination.next as string, /[?&]order=desc&/);
    t.regex(down.reply.headers.link as string, /order=desc.*rel="next".*order=desc.*rel="first"/);
    t.notRegex(up.pagination.next as string, /order/);
  });

  test.serial(`${list}: an order that is neither asc nor desc is refused`, async (t) => {
    for (const value of ['DESC', 'ascending', 'desc,asc', '-1', 'createdAt'])
      t.deepEqual(faultsOf(await t.context.client.get(`/${list}?order=${value}`)), ['order invalid'], value);
    t.deepEqual(faultsOf(await t.context.client.get(`/${list}?order=`)), ['order empty_value']);
  });
}
