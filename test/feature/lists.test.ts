import { gatewayTest } from '../support/workspace.js';

const test = gatewayTest();

interface Page {
  data: { id: string }[];
  pagination: { count: number; hasMore: boolean; nextCursor: string; next: string | null; total?: number };
}

for (const list of ['klanten', 'installaties', 'werkbonnen', 'logboeken']) {
  test(`${list}: a page says how many rows it has and where the next one starts`, async (t) => {
    const answer = await t.context.client.get(`/${list}?perPage=7&total=true`);
    t.is(answer.status, 200);
    const page = answer.json<Page>();
    t.is(page.data.length, 7);
    t.is(page.pagination.count, 7);
    t.true(page.pagination.hasMore);
    t.regex(answer.text, /"complete":true}}$/);
  });
}
