import { EventEmitter, once } from 'node:events';
import { request as httpRequest } from 'node:http';
import type { ExecutionContext } from 'ava';
import { urlAs } from '../../demo/cluster/passwords.js';
import type { ApiClient } from '../support/client.js';
import { definitionsWith, field } from '../support/definitions.js';
import { type HoldingProxy, holdingProxy } from '../support/holding-proxy.js';
import { page, pages, records } from '../support/lists.js';
import { makeWalls } from '../support/walls.js';
import { eventually, gatewayTest, shared, type TestContext } from '../support/workspace.js';

// The end of a large page is found behind its first rows; here a commit comes in between.

const test = gatewayTest().serial;
const perPage = 150;

const codes = {
  name: 'codes',
  record: 'code',
  description: 'Codes.',
  view: 'records.codes',
  order: ['id'],
  fields: { id: field('id', 'bigint') },
  sync: {},
};

interface SetUp {
  readonly client: ApiClient;
  readonly proxy: HoldingProxy;
  readonly insert: (from: number, to: number) => Promise<void>;
  readonly remove: (from: number, to: number) => Promise<void>;
}

async function setUp(t: ExecutionContext<TestContext>): Promise<SetUp> {
  const { database } = t.context;
  const { primary, caughtUp } = database;
  const folder = definitionsWith(t, { codes });
  await primary.query(`
    create table if not exists app.codes (workspace_id uuid not null, id bigint primary key);
    truncate app.codes;
    create or replace view records.codes as select workspace_id, id, xmin as row_xid from app.codes`);
  await makeWalls(primary, folder);
  await caughtUp();
  const proxy = await holdingProxy(urlAs(shared.replicas[0] as string, 'gateway_reader', database.name));
  t.teardown(() => proxy.close());
  const running = await database.gateway({ resourcesDir: folder, replicaUrls: proxy.url, chunkRowsMax: 40 });
  t.teardown(() => running.gateway.stop());
  const token = await database.token({ scopes: ['read:codes'] });
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
    insert: changing('insert into app.codes (workspace_id, id) select $3, n from generate_series($1::int, $2::int) n'),
    remove: changing('delete from app.codes where id between $1 and $2'),
  };
}

async function walkedIds(t: ExecutionContext<TestContext>, client: ApiClient): Promise<number[]> {
  const ids: number[] = [];
  for await (const { data } of pages(client, `/codes?perPage=${perPage}`)) {
    t.true(data.length <= perPage);
    ids.push(...data.map(({ id }) => Number(id)));
  }
  return ids;
}

const numbers = (from: number, to: number): number[] => Array.from({ length: to - from + 1 }, (_, i) => from + i);

// A client that waits too long for a page gives it up, asks for it again, and goes on with the next.

test('a page that a client gave up moves no page of its walk', async (t) => {
  const { database } = t.context;
  const proxy = await holdingProxy(urlAs(shared.replicas[0] as string, 'gateway_reader', database.name));
  t.teardown(() => proxy.close());
  const { client, gateway, token, log } = await database.gateway({ replicaUrls: proxy.url });
  const pageOf = (number: number) => page(client, `/klanten?perPage=10&page=${number}`);
  const ids = (await records(t.context.client, '/klanten')).map(({ id }) => id);
  await Promise.all(Array.from({ length: 8 }, () => page(client, '/logboeken'))); // opens connections

  const gate = new EventEmitter();
  const held = once(gate, 'held');
  proxy.before('klanten.rows-all', () => {
    gate.emit('held');
    return once(gate, 'release');
  });
  const headers = { authorization: `Bearer ${token}`, 'x-request-id': 'given-up' };
  const givenUp = httpRequest(`${gateway.url}/api/v1/klanten?perPage=10&page=1`, { headers });
  givenUp.on('error', () => {});
  givenUp.end();
  await held;
  givenUp.destroy();
  await eventually(t, 'the end of the request', () => log().includes('"requestId":"given-up"'));
  const idsOf = async (number: number): Promise<string[]> => (await pageOf(number)).data.map(({ id }) => id);
  t.deepEqual(await idsOf(1), ids.slice(0, 10));
  gate.emit('release');
  await eventually(t, 'its end', () => gateway.replicas.every(({ inFlight }) => inFlight === 0));
  t.deepEqual(await idsOf(2), ids.slice(10, 20));
});

// A commit between the two statements. Last, as these tests make views that no other gateway takes.

test('rows of a page are deleted while its end is found: none comes twice, and none is left out', async (t) => {
  const { client, proxy, insert, remove } = await setUp(t);
  await insert(1001, 1500);
  proxy.before('codes.keys-after', () => remove(1051, 1220));
  const left = [...numbers(1001, 1100), ...numbers(1221, 1500)];
  t.deepEqual(await walkedIds(t, client), left);
});

test('rows come in front of a page and in it while its end is found: none comes twice', async (t) => {
  const { client, proxy, insert, remove } = await setUp(t);
  await insert(1501, 1800);
  await remove(1611, 1620);
  proxy.before('codes.keys-after', async () => {
    await insert(1001, 1200);
    await insert(1611, 1620);
  });
  t.deepEqual(await walkedIds(t, client), numbers(1501, 1800));
});

test('all rows behind the first are deleted while the end is found: the page ends, and the next has what comes', async (t) => {
  const { client, proxy, insert, remove } = await setUp(t);
  await insert(1001, 1400);
  proxy.before('codes.keys-after', () => remove(1101, 1400));
  const { data, pagination } = await page(client, `/codes?perPage=${perPage}`);
  t.deepEqual([data.length, pagination.hasMore], [100, false]);
  await insert(1101, 1400);
  const behind = await page(client, `/codes?perPage=1000&cursor=${pagination.endCursor}`);
  const ids = behind.data.map(({ id }) => Number(id));
  t.deepEqual(ids, numbers(1101, 1400));
});

test('the first hundred changed rows are deleted before they are read: the page of the others is whole', async (t) => {
  const { client, proxy, insert, remove } = await setUp(t);
  const { pagination } = (await client.get('/sync/codes?perPage=1000')).json<{ pagination: { since: string } }>();
  await insert(1001, 1300);
  proxy.before('codes.versioned.rows-all', () => remove(1001, 1150));
  const { data } = await page(client, `/sync/codes?perPage=1000&since=${pagination.since}`);
  t.deepEqual(
    data.map(({ id }) => Number(id)),
    numbers(1151, 1300),
  );
});
