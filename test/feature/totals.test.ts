import type { ExecutionContext } from 'ava';
import { cursorContext, encodeCursor } from '../../src/read/page-ends.js';
import { page } from '../support/lists.js';
import { eventually, gatewayTest, type TestContext } from '../support/workspace.js';
import { created } from '../support/writes.js';

// Large pages, so that headers come before the count has ended: a request that has headers has joined a count, or begun one.
const test = gatewayTest({ chunkRowsMax: 100, longConnections: 8, longPerWorkspace: 16 }, 'first');
const list = '/installaties?perPage=150';
const gate = 4711;
/** The installation that no statement passes while the gate is closed. */
let gated: string;

interface Totals {
  readonly total: number;
  readonly totalAsOf?: string | null;
}

test.serial.before(
  'on the replica a statement that meets one installation in the middle waits at a gate',
  async (t) => {
    const { primary, workspaces, caughtUp } = t.context.database;
    const { rows } = await primary.query<{ id: string; view: string }>(
      `select id, pg_get_viewdef('records.installaties') as view from app.installaties
     where workspace_id = $1 order by created_at, id offset 400 limit 1`,
      [workspaces[0]?.id],
    );
    const [{ id, view }] = rows as [{ id: string; view: string }];
    gated = id;
    await primary.query(`create function public.pass_gate(met uuid) returns boolean language plpgsql as $$
    begin if met = '${id}' then
      while not pg_try_advisory_xact_lock_shared(${gate}) loop perform pg_sleep(0.01); end loop;
    end if; return true; end $$`);
    await primary.query(
      `create or replace view records.installaties as ${view.replace(/;\s*$/, '')} where public.pass_gate(id)`,
    );
    await caughtUp();
  },
);

/** Closes the gate while `work` runs; opens it when `work` calls for it, at the end at the latest. */
async function withGate(t: ExecutionContext<TestContext>, work: (open: () => Promise<void>) => Promise<void>) {
  const { replica } = t.context.database;
  await replica.query('select pg_advisory_lock($1)', [gate]);
  let isOpen = false;
  const open = async (): Promise<void> => {
    if (!isOpen) await replica.query('select pg_advisory_unlock($1)', [gate]);
    isOpen = true;
  };
  await work(open).finally(open);
}

/** Counts that run on the replica; while the gate is closed they cannot end. */
async function running(t: ExecutionContext<TestContext>): Promise<number> {
  const { rows } = await t.context.database.replica.query<{ count: number }>(
    `select count(*)::int from pg_stat_activity where backend_type = 'client backend' and pid <> pg_backend_pid() and datname = current_database() and state = 'active'
       and query like 'select count(*)%installaties%'`,
  );
  return rows[0]?.count as number;
}

/** Begins a request with total=true; resolves when it has joined a count or begun one, to the way to its total. */
async function begin(
  t: ExecutionContext<TestContext>,
  query = '',
  options: { token?: string; signal?: AbortSignal } = {},
) {
  const { gateway, token } = t.context;
  const response = await fetch(`${gateway.url}/api/v1${list}&total=true${query}`, {
    headers: { authorization: `Bearer ${options.token ?? token}` },
    ...(options.signal && { signal: options.signal }),
  });
  t.is(response.status, 200);
  return async (): Promise<Totals> => {
    const { pagination } = (await response.json()) as { pagination: Totals };
    return pagination;
  };
}

async function countOf(t: ExecutionContext<TestContext>, workspace: number): Promise<number> {
  const { primary, workspaces } = t.context.database;
  const { rows } = await primary.query<{ count: number }>(
    'select count(*)::int from app.installaties where workspace_id = $1',
    [workspaces[workspace]?.id],
  );
  return rows[0]?.count as number;
}

test.serial('requests for the same total at the same time share one count, and say how old it is', async (t) => {
  const expected = await countOf(t, 0);
  const otherToken = await t.context.database.token();
  const beganMs = Date.now();
  await withGate(t, async (open) => {
    const replies = [
      await begin(t),
      await begin(t),
      await begin(t, '', { token: otherToken }),
      await begin(t, '&order=desc', { token: otherToken }),
    ];
    await eventually(t, 'a running count', async () => (await running(t)) > 0);
    t.is(await running(t), 1);
    await open();
    const [first, ...shared] = await Promise.all(replies.map((read) => read()));
    t.is(first?.total, expected);
    t.false('totalAsOf' in (first as Totals), 'counted for this request');
    for (const { total, totalAsOf } of shared) {
      t.is(total, expected);
      t.true(Date.parse(totalAsOf as string) <= Date.now() && Date.parse(totalAsOf as string) > beganMs - 10_000);
    }
  });
  const { pagination } = await page(t.context.client, `${list}&total=true`);
  t.false('totalAsOf' in pagination, 'nothing is kept of a count that has ended');
});

test.serial('a total crosses neither workspaces nor filters nor lists', async (t) => {
  const { database, client } = t.context;
  const { rows } = await database.primary.query<{ klant_id: string; count: number }>(
    `select klant_id, count(*)::int from app.installaties where workspace_id = $1
     group by 1 having not bool_or(id = $2) order by 2 desc limit 1`,
    [database.workspaces[0]?.id, gated],
  );
  const [{ klant_id: customer, count }] = rows as [{ klant_id: string; count: number }];
  const other = await database.token({ workspace: 1 });
  const expected = await countOf(t, 1);
  await withGate(t, async (open) => {
    const own = await begin(t);
    await eventually(t, 'a running count', async () => (await running(t)) === 1);
    const totals = [
      (await page(client, `${list}&total=true`, { token: other })).pagination,
      (await page(client, `${list}&total=true&customerId=${customer}`)).pagination,
      (await page(client, '/klanten?perPage=1&total=true')).pagination,
    ];
    t.deepEqual(
      totals.slice(0, 2).map(({ total }) => total),
      [expected, count],
    );
    for (const pagination of totals) t.false('totalAsOf' in pagination);
    t.is(await running(t), 1, 'the first count has not ended meanwhile');
    await open();
    t.is((await own()).total, await countOf(t, 0));
  });
});

test.serial('a client that leaves takes the count from no other', async (t) => {
  const { gateway } = t.context;
  const leaving = new AbortController();
  const inFlight = async (): Promise<string | undefined> =>
    /^gateway_requests_in_flight (\d+)$/m.exec(await (await fetch(`${gateway.opsUrl}/metrics`)).text())?.[1];
  await withGate(t, async (open) => {
    await begin(t, '', { signal: leaving.signal });
    const staying = await begin(t);
    await eventually(t, 'two requests', async () => (await inFlight()) === '2');
    leaving.abort();
    await eventually(t, 'the gateway has noticed', async () => (await inFlight()) === '1');
    await open();
    t.is((await staying()).total, await countOf(t, 0));
  });
});

test.serial('a HEAD leaves no count behind', async (t) => {
  const { gateway, token } = t.context;
  const inFlight = async (): Promise<string | undefined> =>
    /^gateway_pool_in_flight\{[^}]*pool="long"\} (\d+)$/m.exec(
      await (await fetch(`${gateway.opsUrl}/metrics`)).text(),
    )?.[1];
  await withGate(t, async () => {
    const headers = { authorization: `Bearer ${token}` };
    t.is((await fetch(`${gateway.url}/api/v1${list}&total=true`, { method: 'HEAD', headers })).status, 200);
    await eventually(t, 'the end of its count', async () => (await inFlight()) === '0', 3000);
  });
});

test.serial(
  'a total after a write has the written row, although a count was under way; it waits for that',
  async (t) => {
    const { client, database } = t.context;
    const { rows } = await database.primary.query<{ id: string }>(
      'select id from app.klanten where workspace_id = $1 limit 1',
      [database.workspaces[0]?.id],
    );
    const before = await countOf(t, 0);
    await withGate(t, async (open) => {
      const early = await begin(t);
      await eventually(t, 'a running count', async () => (await running(t)) === 1);
      await created(client, { customerId: rows[0]?.id, naam: 'Koelcel' });
      const late = await begin(t);
      t.is(await running(t), 1, 'no two counts at the same time');
      await open();
      t.is((await early()).total, before);
      const { total, ...rest } = await late();
      t.is(total, before + 1);
      t.false('totalAsOf' in rest);
    });
  },
);

test.serial(
  'a total with a cursor is as current as the page of the cursor, although a count was under way',
  async (t) => {
    const { primary, workspaces, caughtUp } = t.context.database;
    const workspace = workspaces[0]?.id as string;
    const before = await countOf(t, 0);
    await withGate(t, async (open) => {
      const early = await begin(t);
      await eventually(t, 'a running count', async () => (await running(t)) === 1);
      await primary.query(
        `insert into app.installaties (id, workspace_id, klant_id, naam)
       select gen_random_uuid(), workspace_id, klant_id, 'Koelcel' from app.installaties where id = $1`,
        [gated],
      );
      await caughtUp();
      const cursor = encodeCursor(cursorContext(workspace, 'installaties', {}), { key: null, asOfMs: Date.now() });
      const late = await begin(t, `&cursor=${cursor}`);
      await open();
      t.is((await early()).total, before);
      t.is((await late()).total, before + 1);
    });
  },
);
