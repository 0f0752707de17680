import type { ExecutionContext } from 'ava';
import { encodeCursor, makeCursorContext } from '../../src/serve/read/cursor.js';
import { page } from '../support/lists.js';
import { customerOf } from '../support/primary-side.js';
import { eventually, gatewayTest, type TestContext } from '../support/workspace.js';
import { created } from '../support/writes.js';

const test = gatewayTest({ chunkRowsMax: 100 }, 'first').serial; // large pages, so that headers come before the count has ended
const list = '/installaties?perPage=150';
const gate = 4711;

async function total(t: ExecutionContext<TestContext>, query = ''): Promise<number | undefined> {
  return (await page(t.context.client, `${list}&total=true${query}`)).pagination.total;
}

test('a total has what the workspace has just written', async (t) => {
  const { client, database } = t.context;
  const before = (await total(t)) as number;
  await created(client, { customerId: await customerOf(database), naam: 'Koelcel' });
  t.is(await total(t), before + 1);
});

test('a total with a cursor is as current as the page of the cursor', async (t) => {
  const { primary, workspaces } = t.context.database;
  const workspace = workspaces[0]?.id as string;
  const before = (await total(t)) as number;
  await primary.query(
    `insert into app.installaties (id, workspace_id, klant_id, naam)
       select gen_random_uuid(), workspace_id, klant_id, 'Koelcel' from app.installaties where workspace_id = $1 limit 1`,
    [workspace],
  );
  const cursor = encodeCursor(makeCursorContext(workspace, 'installaties', {}), { key: null, asOfMs: Date.now() });
  t.is(await total(t, `&cursor=${cursor}`), before + 1);
});

test('a HEAD leaves no count behind', async (t) => {
  const { gateway, token, database } = t.context;
  const { primary, replica, workspaces, caughtUp } = database;
  const { rows } = await primary.query<{ id: string; view: string }>(
    `select id, pg_get_viewdef('records.installaties') as view from app.installaties
      where workspace_id = $1 order by created_at, id offset 400 limit 1`,
    [workspaces[0]?.id],
  );
  const [{ id, view }] = rows as [{ id: string; view: string }];
  // A statement that meets one installation in the middle waits until the gate is open.
  await primary.query(`create function public.pass_gate(met uuid) returns boolean language plpgsql as $$
    begin if met = '${id}' then
      while not pg_try_advisory_xact_lock_shared(${gate}) loop perform pg_sleep(0.01); end loop;
    end if; return true; end $$`);
  const gated = `${view.replace(/;\s*$/, '')} where public.pass_gate(id)`;
  await primary.query(`create or replace view records.installaties as ${gated}`);
  await caughtUp();
  await replica.query('select pg_advisory_lock($1)', [gate]);
  const inFlight = async (): Promise<string | undefined> =>
    /^gateway_pool_in_flight\{[^}]*pool="long"\} (\d+)$/m.exec(
      await (await fetch(`${gateway.opsUrl}/metrics`)).text(),
    )?.[1];
  const headers = { authorization: `Bearer ${token}` };
  t.is((await fetch(`${gateway.url}/api/v1${list}&total=true`, { method: 'HEAD', headers })).status, 200);
  await eventually(t, 'the end of its count', async () => (await inFlight()) === '0', 3000);
  await replica.query('select pg_advisory_unlock($1)', [gate]);
});
