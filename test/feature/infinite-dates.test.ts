import { page, pages, records } from '../support/lists.js';
import { gatewayTest } from '../support/workspace.js';

// PostgreSQL takes dates that JSON does not show; a list may be in their order all the same.

const test = gatewayTest({ chunkRowsMax: 40, chunkBytes: 16_384 }).serial;
type Row = { readonly id: string };
const idsOf = (rows: readonly Row[]): string[] => rows.map(({ id }) => id);

test('a walk goes on behind infinite dates and those beyond the years 1 to 9999, which are shown as null', async (t) => {
  const { client, database } = t.context;
  const odd = ['infinity', 'infinity', '5874897-12-31', '20226-01-05', '0044-03-15 BC', '-infinity'];
  const { rows } = await database.primary.query<{ id: string; datum: string }>(
    'select id, datum::text from app.werkbonnen where workspace_id = $1 order by id limit $2',
    [database.workspaces[0]?.id, odd.length],
  );
  const dated = (days: readonly string[]): Promise<unknown> =>
    Promise.all(
      rows.map(({ id }, i) =>
        database.primary.query('update app.werkbonnen set datum = $1 where id = $2', [days[i], id]),
      ),
    );
  await dated(odd);
  t.teardown(() => dated(rows.map(({ datum }) => datum)));
  await database.caughtUp();
  const all = idsOf(await records<Row>(client, '/werkbonnen?perPage=1000'));
  const { pagination } = await page(client, '/werkbonnen?order=desc&perPage=1');
  t.is(
    (await page<{ datum: string | null }>(client, `/werkbonnen?order=desc&perPage=1&cursor=${pagination.nextCursor}`))
      .data[0]?.datum,
    null,
  );
  for (const [order, expected] of [
    ['asc', all],
    ['desc', [...all].reverse()],
  ] as const) {
    const walked: string[] = [];
    for await (const { data } of pages<Row>(client, `/werkbonnen?order=${order}&perPage=1`, 'cursor')) {
      walked.push(...idsOf(data));
      if (walked.length === 8) break;
    }
    t.deepEqual(walked, expected.slice(0, 8), order);
  }
  const copied: string[] = [];
  for (let cursor = ''; ; ) {
    const { data, pagination: at } = await page<Row>(client, `/sync/werkbonnen?perPage=7${cursor}`);
    copied.push(...idsOf(data));
    if (at.nextCursor === null) break;
    cursor = `&cursor=${at.nextCursor}`;
  }
  t.deepEqual(copied, all, 'a pass of sync');
});
