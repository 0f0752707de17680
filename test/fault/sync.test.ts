import suite, { type ExecutionContext } from 'ava';
import { runAsAdmin } from '../../src/postgres/admin.js';
import { faultCluster } from '../support/fault-cluster.js';
import { SyncCopy } from '../support/sync/copy.js';
import { advanceXidToWrapAround, nextXid, resetwalFolder, useXids } from '../support/sync/reset-xid.js';
import { syncStorm } from '../support/sync/storm.js';
import { changedToken } from '../support/sync/token.js';
import { templateName } from '../support/template.js';

suite('copies by sync equal the views row by row, whatever writers and replicas do meanwhile', async (t) => {
  const { passes, changes, startedOver, wrong } = await syncStorm({
    rounds: 2,
    passesMin: 60,
    changesMin: 150,
    roundMs: 3000,
    restMs: 300,
    longMs: 2000,
  });
  t.log(`${passes} passes, ${changes} changes, started over ${startedOver} times`);
  t.deepEqual(wrong.slice(0, 10), []);
  t.is(startedOver, 0);
  t.true(passes >= 60, `${passes} passes`);
  t.true(changes >= 150, `${changes} changes`);
});

const folder = resetwalFolder();
const test = folder === null ? suite.skip : suite;
const missing = folder === null ? ' (skipped: no pg_resetwal in PG_BIN or below /usr/lib/postgresql)' : '';
const wrapAround = 2 ** 32;

/** A cluster whose transaction ids are about to wrap around, and a copy of each resource of its second workspace. */
async function copiesBeforeWrapAround(t: ExecutionContext) {
  const setUp = await faultCluster({ replicas: 0, rows: '300', ...(folder !== null && { pgBin: folder }) });
  t.teardown(() => setUp.stop());
  const { primary } = setUp.cluster;
  await advanceXidToWrapAround(primary, folder as string);
  await setUp.cluster.addReplica();
  const workspace = setUp.workspaces[1]?.id as string;
  const { gateway } = await setUp.gateway();
  const resources = ['klanten', 'installaties', 'werkbonnen', 'logboeken'];
  const token = await setUp.token({ workspace: 1 });
  const copies = resources.map((resource) => new SyncCopy(resource, token, [gateway.url]));
  const [orders] = copies.slice(2) as [SyncCopy];
  const pass = async (): Promise<ReadonlySet<string>> => {
    await setUp.caughtUp();
    const before = new Map(orders.rows);
    for (const [i, copy] of copies.entries()) {
      await copy.pass();
      const count = `select count(*)::int as n from app.${resources[i]} where workspace_id = $1`;
      const [stored] = await setUp.sql<{ n: number }>(count, [workspace]);
      t.deepEqual(await copy.differences(stored?.n as number), []);
      t.deepEqual(copy.faults, []);
    }
    return new Set([...orders.rows].filter(([id, row]) => before.get(id) !== row).map(([id]) => id));
  };
  /** A pass that brings these work orders and no others. */
  const expect = async (...changed: string[]): Promise<void> => {
    t.deepEqual([...(await pass())].sort(), changed.sort());
  };
  const ask = async (query: string): Promise<{ data: object[]; pagination: { since: string } }> => {
    const headers = { authorization: `Bearer ${token}` };
    const reply = await fetch(`${gateway.url}/api/v1/sync/werkbonnen?perPage=10000${query}`, { headers });
    return (await reply.json()) as { data: object[]; pagination: { since: string } };
  };
  return { setUp, primary, workspace, orders, pass, expect, ask };
}

let serial = 0;
const touch = 'update app.werkbonnen set omschrijving = $2 where id = $1';

interface Order {
  readonly id: string;
  readonly part: string;
}

test(`passes before, across and after a wrap-around of transaction ids, and after freezing, lose nothing${missing}`, async (t) => {
  const copies = await copiesBeforeWrapAround(t);
  const { setUp, primary, workspace, orders, pass, expect } = copies;
  const rows = await setUp.sql<Order>(
    `select distinct on (werkbon_id) werkbon_id as id, id as part from app.werkbon_handelingen where workspace_id = $1`,
    [workspace],
  );
  const [first, second, third, fourth] = rows as [Order, Order, Order, Order];
  const change = (id: string): Promise<object[]> => setUp.sql(touch, [id, String(++serial)]);
  const changePart = (id: string): Promise<object[]> =>
    setUp.sql('update app.werkbon_handelingen set resultaat = $2 where id = $1', [id, String(++serial)]);

  await change(first.id);
  t.is((await pass()).size, orders.rows.size);
  t.true((await nextXid(primary)) < wrapAround);
  await change(second.id);
  await expect(second.id);

  await runAsAdmin(primary.url(templateName), async (open) => {
    await useXids(primary, wrapAround - (await nextXid(primary)) - 10);
    await pass();
    await open.query('begin');
    await open.query(touch, [first.id, String(++serial)]);
    t.true((await nextXid(primary)) < wrapAround);
    await useXids(primary, 20);
    await open.query('savepoint after_the_wrap_around');
    await open.query(touch, [second.id, String(++serial)]);
    await change(third.id);
    t.true((await nextXid(primary)) > wrapAround);
    await expect(third.id);
    await changePart(fourth.part);
    await expect(third.id, fourth.id); // the open transaction began before both
    await open.query('commit');
  });
  await expect(first.id, second.id, third.id, fourth.id);
  await changePart(first.part);
  await expect(first.id);

  for (const table of ['werkbonnen', 'werkbon_handelingen']) await setUp.sql(`vacuum (freeze) app.${table}`);
  await expect();
  await change(second.id);
  await setUp.sql('vacuum (freeze) app.werkbonnen');
  await expect(second.id);
  // From here on the frozen ids of the seeding are as young as new ones: rows come again.
  await useXids(primary, 3000);
  await change(third.id);
  t.true((await pass()).has(third.id));
  await setUp.sql('delete from app.werkbon_uren where werkbon_id = $1', [fourth.id]);
  await setUp.sql('delete from app.werkbon_handelingen where werkbon_id = $1', [fourth.id]);
  await setUp.sql('delete from app.werkbonnen where id = $1', [fourth.id]);
  await pass();
  t.false(orders.rows.has(fourth.id));
  await oldTokenBringsAll(t, copies);
});

/** Every row is younger than a token of 2^32 transactions ago. */
async function oldTokenBringsAll(
  t: ExecutionContext,
  { ask, workspace, primary, orders }: Awaited<ReturnType<typeof copiesBeforeWrapAround>>,
): Promise<void> {
  const { since } = (await ask('')).pagination;
  const old = changedToken(
    since,
    { workspace, resource: 'werkbonnen' },
    4,
    String((await nextXid(primary)) - wrapAround),
  );
  t.is(
    (await ask(`&since=${old}`)).data.length,
    orders.rows.size,
    'every row is younger than a token of 2^32 transactions ago',
  );
}
