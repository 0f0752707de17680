import { cpSync, mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import type { ExecutionContext } from 'ava';
import { urlAs } from '../../demo/cluster/passwords.js';
import { projectRoot } from '../../src/paths.js';
import type { ApiClient } from '../support/client.js';
import { field } from '../support/definitions.js';
import { type HoldingProxy, holdingProxy } from '../support/holding-proxy.js';
import { type Page, page, pages } from '../support/lists.js';
import { makeWalls } from '../support/walls.js';
import { gatewayTest, shared, type TestContext } from '../support/workspace.js';

// The end of a large page and its first rows are read by two statements at the same time; here a commit comes between them.

const test = gatewayTest();
const perPage = 150;

/** Lists of which nothing but the order differs: by numbers, whose order the gateway knows, and by texts. */
const codes = ['bigint', 'text'].map((type) => ({
  name: `${type}codes`,
  record: `${type}Code`,
  description: 'Codes.',
  view: `records.${type}codes`,
  order: ['id'],
  fields: { id: field('id', type) },
}));

interface SetUp {
  readonly client: ApiClient;
  readonly proxy: HoldingProxy;
  /** Inserts or deletes the codes of these numbers, and waits for the replica. */
  readonly insert: (from: number, to: number) => Promise<void>;
  readonly remove: (from: number, to: number) => Promise<void>;
}

async function setUp(t: ExecutionContext<TestContext>, list: string): Promise<SetUp> {
  const { database } = t.context;
  const { primary, caughtUp } = database;
  const folder = mkdtempSync(join(tmpdir(), 'definitions-'));
  t.teardown(() => rmSync(folder, { recursive: true }));
  cpSync(join(projectRoot, 'config/resources'), folder, { recursive: true });
  for (const each of codes) writeFileSync(join(folder, `${each.name}.json`), JSON.stringify(each));
  for (const type of ['bigint', 'text'])
    await primary.query(`
      create table if not exists app.${type}codes (workspace_id uuid not null, id ${type} primary key);
      truncate app.${type}codes;
      create or replace view records.${type}codes as select workspace_id, id from app.${type}codes`);
  await makeWalls(primary, folder);
  await caughtUp();
  const server = new URL(urlAs(shared.replicas[0] as string, 'gateway_reader', database.name));
  const proxy = await holdingProxy(server);
  t.teardown(() => proxy.close());
  server.port = String(proxy.port);
  const running = await database.gateway({ resourcesDir: folder, replicaUrls: server.href, chunkRowsMax: 40 });
  t.teardown(() => running.gateway.stop());
  const token = await database.token({ scopes: codes.map(({ name }) => `read:${name}`) });
  const client: ApiClient = {
    ...running.client,
    get: (path, options) => running.client.get(path, { token, ...options }),
  };
  const changing =
    (sql: string) =>
    async (from: number, to: number): Promise<void> => {
      await primary.query(sql, [from, to, ...(sql.includes('$3') ? [database.workspaces[0]?.id] : [])]);
      await caughtUp();
    };
  return {
    client,
    proxy,
    insert: changing(
      `insert into app.${list} (workspace_id, id) select $3, n from generate_series($1::int, $2::int) n`,
    ),
    remove: changing(`delete from app.${list} where id::int between $1 and $2`),
  };
}

async function idsOf(walk: AsyncIterable<Page>): Promise<number[]> {
  const ids: number[] = [];
  for await (const { data } of walk) ids.push(...data.map(({ id }) => Number(id)));
  return ids;
}

const numbers = (from: number, to: number): number[] => Array.from({ length: to - from + 1 }, (_, i) => from + i);

for (const { name } of codes) {
  test.serial(
    `${name}: rows at the front of a page are deleted while its end is found: no row comes twice`,
    async (t) => {
      const { client, proxy, insert, remove } = await setUp(t, name);
      await insert(1001, 1500);
      const keys = proxy.answered(`${name}.keys-all`);
      proxy.before(`${name}.rows-all`, async () => {
        await keys;
        await remove(1001, 1220);
      });
      t.deepEqual(await idsOf(pages(client, `/${name}?perPage=${perPage}`)), numbers(1221, 1500));
    },
  );

  test.serial(`${name}: rows come in front of a page while its end is found: none comes twice`, async (t) => {
    const { client, proxy, insert } = await setUp(t, name);
    await insert(1501, 1800);
    const rows = proxy.answered(`${name}.rows-all`);
    proxy.before(`${name}.keys-all`, async () => {
      await rows;
      await insert(1001, 1200);
    });
    t.deepEqual(await idsOf(pages(client, `/${name}?perPage=${perPage}`)), numbers(1501, 1800));
  });

  test.serial(`${name}: rows come behind a page that has found none: the next page has them`, async (t) => {
    const { client, proxy, insert } = await setUp(t, name);
    await insert(1001, 1020);
    const { pagination } = await page(client, `/${name}?perPage=${perPage}`);
    const rows = proxy.answered(`${name}.rows-after`);
    proxy.before(`${name}.keys-after`, async () => {
      await rows;
      await insert(1021, 1400);
    });
    const empty = await page(client, `/${name}?perPage=${perPage}&cursor=${pagination.endCursor}`);
    const { endCursor } = empty.pagination;
    t.deepEqual([empty.data, empty.pagination.hasMore, empty.reply.headers.link?.includes('next')], [[], false, false]);
    const { data } = await page<{ id: string }>(client, `/${name}?perPage=1000&cursor=${endCursor}`);
    t.deepEqual(
      data.map(({ id }) => Number(id)),
      numbers(1021, 1400),
    );
  });
}
