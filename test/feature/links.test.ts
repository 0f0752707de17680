import { adoptedShop, apiOf, shopOf, wrong } from '../support/adopt/adopted.js';
import { gatewayTest } from '../support/workspace.js';

// The URLs that the gateway makes lead to what they name: next, Link and Location.

const test = gatewayTest();

interface Listed {
  readonly data: readonly { readonly id: string }[];
  readonly pagination: { readonly next: string | null };
}

test('the next page of the longest list that is accepted is accepted, too', async (t) => {
  const { client, database } = t.context;
  const { rows } = await database.primary.query<{ id: string }>(
    'select id from probe.werkbonnen where workspace_id = $1 order by id limit 100',
    [database.workspaces[0]?.id],
  );
  t.is(rows.length, 100);
  let isLeftOut = false;
  for (const separator of [',', '%2C', '&ids=']) {
    const ids = rows.map(({ id }) => id);
    const start = `/werkbonnen?perPage=9&ids=${ids.join(separator)}&fields=id`;
    const room = 5120 - `/api/v1${start}`.length;
    const fields = ',omschrijving'.repeat(Math.min(99, Math.floor(room / 13)));
    const longest = start + fields + '&'.repeat(room - fields.length);
    const seen: string[] = [];
    for (let next: string | null = longest; next !== null; ) {
      const reply = await client.get(next);
      t.is(reply.status, 200);
      const { data, pagination }: Listed = reply.json();
      seen.push(...data.map(({ id }) => id));
      const { link } = reply.headers;
      if (link === undefined) isLeftOut = true;
      else t.is(pagination.next, /<([^>]*)>; rel="next"/.exec(String(link))?.[1] ?? null);
      t.true(JSON.stringify(reply.headers).length < 8192);
      next = pagination.next?.replace(/^.*\/api\/v1/, '') ?? null;
    }
    t.deepEqual(seen.sort(), ids);
    t.is((await client.get(`${longest}&`)).status, 414);
  }
  t.true(isLeftOut, 'of the longest links there is none: a proxy takes a head of 8 KB');
});

const odd = ['a', 'b', 'a,b', 'a%2Cb', 'a/b?c#d&e=f+g', '"<>\\^`{|}', 'é ü', ','];
const shelves = shopOf(`
  create table shelves (id text primary key, company_id bigint not null references companies, title text, created_at timestamptz not null default now());
  insert into shelves (id, company_id) select unnest(array[${odd.map((id) => `'${id}'`).join(', ')}]), 1;
  insert into shelves values ('${'/'.repeat(2000)}', 1);
  create table boxes (like shelves including all, foreign key (company_id) references companies);
  insert into boxes values ('a', 1), ('', 1)`);

test.serial('an id can have a comma, and every character that a URL must encode', async (t) => {
  const draft = await adoptedShop(t, shelves, { findings: ['failed ids gateway.boxes'] });
  t.regex((await wrong(t, draft))[0]?.detail ?? '', /^A row has an empty id: .* no address leads to it\.$/);
  const ask = await (await apiOf(t, draft))('read:shelves');
  const idsOf = async (path: string): Promise<string[]> => {
    const { status, body } = await ask<Listed>(path);
    t.is(status, 200, path);
    const { next } = body.pagination;
    return [...body.data.map(({ id }) => id), ...(next === null ? [] : await idsOf(next))];
  };
  const encoded = odd.map(encodeURIComponent);
  for (const [i, id] of encoded.entries()) t.deepEqual(await idsOf(`/shelves?ids=${id}`), [odd[i]]);
  t.deepEqual(await idsOf('/shelves?ids=a,b'), ['a', 'b']);
  t.deepEqual(await idsOf('/shelves?ids=a%2Cb&ids=b'), ['a,b', 'b']);
  for (const perPage of [1, 3]) {
    t.deepEqual((await idsOf(`/shelves?perPage=${perPage}&ids=${encoded}`)).sort(), [...odd].sort());
    t.is((await idsOf(`/shelves?perPage=${perPage}`)).length, odd.length + 1);
  }
  const slashes = await ask(`/shelves/${encodeURIComponent('/'.repeat(2000))}`);
  t.is(slashes.status, 200);
});
