import suite, { type ExecutionContext } from 'ava';
import type { PgNode } from '../../demo/cluster/node.js';
import { encodeCursor, makeCursorContext } from '../../src/serve/read/cursor.js';
import { type FaultCluster, type FaultGateway, faultCluster } from '../support/fault-cluster.js';
import { holdingProxy } from '../support/holding-proxy.js';
import { type PageRead, readPage } from '../support/page-reader.js';
import { limitMs, until } from '../support/patience.js';
import { templateName } from '../support/template.js';

const test = suite.serial;

// A walk over replicas of which one is 6 s late never goes back in time.

interface LogPage {
  readonly data: readonly { readonly id: string; readonly tijdstip: string }[];
  readonly pagination: { readonly page: number | null; readonly next: string | null; readonly hasMore: boolean };
}

let setUp: FaultCluster;
let late: PgNode;
let current: PgNode;
let token: string;
let workspace: string;
/** Entries of the log by id, with the moment at which their commit was answered, epoch milliseconds. */
const committed = new Map<string, number>();
const entity = { entity: 'werkbon', entityId: 'walk' };
const list = `/logboeken?${new URLSearchParams(entity)}&perPage=10`;

test.before(async () => {
  setUp = await faultCluster();
  [late, current] = setUp.cluster.replicas as [PgNode, PgNode];
  workspace = setUp.workspaces[0]?.id as string;
  token = await setUp.token();
  for (let i = 0; i < 50; i++) await insert();
  await setUp.caughtUp();
  await late.configure({ recovery_min_apply_delay: '6s' });
});
test.after.always(() => setUp?.stop());

async function insert(): Promise<void> {
  const [row] = await setUp.sql<{ id: string }>(
    `insert into app.logboeken (workspace_id, tijdstip, entiteit, entiteit_id, actie, actor_type)
      values ($1, clock_timestamp(), $2, $3, 'gewijzigd', 'systeem') returning id::text`,
    [workspace, entity.entity, entity.entityId],
  );
  committed.set(row?.id as string, Date.now());
}

async function whileInserting(work: () => Promise<void>): Promise<void> {
  let working = true;
  const inserting = (async () => {
    for (; working; await new Promise((resolve) => setTimeout(resolve, 20))) await insert();
  })();
  await work().finally(() => {
    working = false;
  });
  await inserting;
}

async function patiently(url: string, walker: string, refused: PageRead[]): Promise<PageRead> {
  for (;;) {
    const read = await readPage(url, { token: walker });
    if (read.status !== 503) return read;
    refused.push(read);
    await new Promise((resolve) => setTimeout(resolve, 500));
  }
}

const asOfMs = ({ headers }: PageRead): number => Date.parse(String(headers['data-as-of']));

async function lacking(
  fault: FaultGateway,
  first: PageRead,
  { by = 'next', walker = token, refused = [] }: { by?: 'next' | 'page'; walker?: string; refused?: PageRead[] },
): Promise<string[]> {
  const expected = [...committed].filter(([, atMs]) => atMs < asOfMs(first)).map(([id]) => id);
  const seen = new Set<string>();
  let page = JSON.parse(first.body) as LogPage;
  for (let number = 2; ; number++) {
    for (const { id } of page.data) seen.add(id);
    if (!page.pagination.hasMore) return expected.filter((id) => !seen.has(id));
    const url = by === 'next' ? (page.pagination.next as string) : fault.url(`${list}&page=${number}`);
    page = JSON.parse((await patiently(url, walker, refused)).body) as LogPage;
  }
}

for (const by of ['next', 'page'] as const) {
  test(`a walk by ${by} lacks nothing that was committed before its first page's Data-As-Of`, async (t) => {
    const fault = await setUp.gateway({ lagMaxMs: 60_000 });
    const walkers = await Promise.all(Array.from({ length: 4 }, () => setUp.token())); // page ends are remembered by token
    let [walks, begunCurrent] = [0, 0];
    await whileInserting(async () => {
      const walk = async (walker: string): Promise<void> => {
        while (begunCurrent < 8) {
          const first = await readPage(fault.url(list), { token: walker });
          walks++;
          if (Date.now() - asOfMs(first) < 4000) begunCurrent++;
          t.deepEqual(await lacking(fault, first, { by, walker }), []);
        }
      };
      await Promise.all(walkers.map(walk));
    });
    t.log({ walks, begunCurrent });
    await fault.stop();
  });
}

test('a large page whose end is found on one replica and whose rows are read on a late one leaves none out', async (t) => {
  const proxy = await holdingProxy(late.url(templateName, 'gateway_reader'));
  const replicaUrls = `${proxy.url} ${current.url(templateName, 'gateway_reader')}`;
  const fault = await setUp.gateway({ replicaUrls, lagMaxMs: 60_000, chunkRowsMax: 40 });
  const insertTo = (rows: number, walks: number): Promise<unknown> =>
    setUp.sql(
      `insert into app.logboeken (workspace_id, tijdstip, entiteit, entiteit_id, actie, actor_type)
        select $1::uuid, timestamptz '2024-01-01 00:00:00+00' + n * interval '1 second', 'werkbon', 'end ' || walk, 'gewijzigd', 'systeem'
        from generate_series($2::int - 109, $2::int) n, generate_series(1, $3::int) walk order by n`,
      [workspace, rows, walks],
    );
  const walks = 20; // half of them begin on the late replica
  await insertTo(110, walks);
  await setUp.caughtUp();
  await insertTo(220, walks); // the late replica lacks them for six seconds
  await setUp.caughtUp([current]);
  let isFoundElsewhere = false;
  proxy.before('logboeken.keys-after', () => {
    isFoundElsewhere = true; // the page began on the late replica, whose connection ends, so that the current one is asked
    return late.query(`select pg_terminate_backend(pid) from pg_stat_activity
      where usename = 'gateway_reader' and query like '%logboeken%'`);
  });
  for (let walk = 1; walk <= walks && !isFoundElsewhere; walk++) {
    const moments: string[] = [];
    let next: string | null = fault.url(`/logboeken?entityId=${encodeURIComponent(`end ${walk}`)}&perPage=150`);
    while (next !== null) {
      const page: LogPage = JSON.parse((await patiently(next, token, [])).body);
      moments.push(...page.data.map(({ tijdstip }) => tijdstip));
      next = page.pagination.next;
      if (next !== null) t.is(page.data.length, 150, `walk ${walk}`);
    }
    const from = Date.parse('2024-01-01') + 1000;
    const expected = moments.map((_, i) => new Date(from + i * 1000).toISOString());
    t.deepEqual(moments, expected, `walk ${walk}`);
  }
  t.true(isFoundElsewhere);
  await fault.stop();
  await proxy.close();
});

test('when the current replica is lost the walk waits, gets 503, and goes on when the late one has caught up', async (t) => {
  const fault = await setUp.gateway({ lagMaxMs: 60_000, resumeMs: 1000 });
  await insert();
  const first = await firstOnCurrent(t, fault);
  await current.kill9();
  const refused: PageRead[] = [];
  t.deepEqual(await lacking(fault, first, { refused }), []);
  t.true(refused.length > 0);
  for (const { body, headers, totalMs } of refused) {
    t.is(JSON.parse(body).code, 'replica_unavailable');
    t.truthy(headers['retry-after']);
    t.true(totalMs < limitMs(4000), `${totalMs} ms`);
  }
  await current.start();
  await fault.stop();
});

async function firstOnCurrent(t: ExecutionContext, fault: FaultGateway): Promise<PageRead> {
  let found: PageRead | undefined;
  const read = async (): Promise<boolean> => {
    const pages = await Promise.all(Array.from({ length: 4 }, () => readPage(fault.url(list), { token })));
    found = pages.find((page) => Date.now() - asOfMs(page) < 4000);
    return found !== undefined;
  };
  t.true(await until(read, 10_000, 50));
  return found as PageRead;
}

test('while the primary is away a walk goes on where most is known, however current its cursor claims to be', async (t) => {
  const fault = await setUp.gateway({ lagMaxMs: 60_000, resumeMs: 10_000 });
  const context = makeCursorContext(workspace, 'logboeken', entity);
  const ahead = (): string => encodeCursor(context, { key: null, asOfMs: Date.now() });
  t.is((await readPage(fault.url(`${list}&cursor=${ahead()}`), { token })).status, 200, 'waits for the next sample');
  await setUp.cluster.primary.kill9();
  const unnoticed = await readPage(fault.url(`${list}&cursor=${ahead()}`), { token });
  t.is(unnoticed.status, 200, 'waits no longer than until the loss is noticed');
  t.true(await until(() => /primary_failed/.test(fault.log()), 10_000, 25));
  const read = await readPage(fault.url(`${list}&cursor=${ahead()}`), { token });
  t.is(read.status, 200);
  t.true(read.totalMs < limitMs(1000), `${read.totalMs} ms`);
  t.is((JSON.parse(read.body) as LogPage).data.length, 10);
  await fault.stop();
  await setUp.cluster.primary.start();
});
