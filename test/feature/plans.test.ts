import type { ExecutionContext } from 'ava';
import pg from 'pg';
import type { Statement } from '../../src/db/statement.js';
import { loadResources } from '../../src/definition/load.js';
import { compileStatements } from '../../src/definition/statements.js';
import { createIndexes } from '../../src/migrate/indexes.js';
import { gatewayTest, type TestContext } from '../support/workspace.js';

const resources = loadResources('');

const test = gatewayTest();
const rows = 20;
/** A page's share: per row its index entry, its heap page and, for a work order, some ten pages of its parts. */
const buffersPerRow = 14;
/** Further buffers that a statement may read: descending the index of every year of the log. */
const buffersOnce = 120;

interface Plan {
  readonly 'Shared Hit Blocks': number;
  readonly 'Shared Read Blocks': number;
  readonly Plans?: readonly Plan[];
  readonly 'Node Type': string;
  readonly 'Index Cond'?: string;
  readonly Filter?: string;
}

test.before('many rows, proposed indexes, fresh statistics', async (t) => {
  const { database } = t.context;
  const workspace = database.workspaces[0]?.id;
  await database.primary.query(
    `insert into app.werkbonnen (id, workspace_id, installatie_id, nummer, datum, status)
     select gen_random_uuid(), $1, i.id, 'WB-' || g, date '2019-01-01' + g % 2800, 'gepland'
     from generate_series(1, 60000) g
     join lateral (select id from app.installaties where workspace_id = $1 order by id offset g % 500 limit 1) i on g % 20 = 0
     union all
     select gen_random_uuid(), $1, (select id from app.installaties where workspace_id = $1 limit 1), 'WB-' || g,
       date '2019-01-01' + g % 2800, 'gepland' from generate_series(1, 30000) g`,
    [workspace],
  );
  await database.primary.query(
    `insert into app.logboeken (workspace_id, tijdstip, entiteit, entiteit_id, actie, actor_type)
     select $1, timestamptz '2019-01-01' + g * interval '40 minutes', (array['klant', 'installatie', 'werkbon'])[1 + g % 3],
       (g % 1000)::text, 'gewijzigd', 'systeem' from generate_series(1, 100000) g`,
    [workspace],
  );
  await createIndexes(database.settings.adminUrl);
  await database.primary.query('vacuum (analyze) app.werkbonnen');
  await database.primary.query('vacuum (analyze) app.logboeken');
  await database.caughtUp();
});

for (const resource of resources) {
  const { list } = compileStatements(resource);
  for (const filters of subsets(Object.keys(resource.filters))) {
    const statements = list(filters);
    test(`${resource.name}${filters.map((name) => ` by ${name}`).join('')} reads in proportion to the page, at the beginning and deep inside`, async (t) => {
      const values = await someValues(t, resource.view, resource.order.map(({ column }) => column) as [string, string]);
      for (const statement of [statements.rows.all, statements.rows.after, statements.last]) {
        const buffers = await buffersOf(t, statement, { ...values, limit: rows });
        t.true(buffers <= rows * buffersPerRow + buffersOnce, `${statement.name} reads ${buffers} buffers`);
      }
      const skipped = await buffersOf(t, statements.keys.all, { ...values, limit: 1, skip: 2000 });
      t.true(
        skipped <= 2000 / 4 + buffersOnce,
        `${statements.keys.all.name} reads ${skipped} buffers to skip 2,000 rows`,
      );
    });
  }
}

/** Every combination of the names, the empty one included. */
function subsets([name, ...others]: readonly string[]): string[][] {
  if (name === undefined) return [[]];
  const without = subsets(others);
  return [...without, ...without.map((set) => [name, ...set])];
}

/** Values for every parameter: the most common ids, a long range of dates, a key in the middle of the list. */
async function someValues(
  t: ExecutionContext<TestContext>,
  view: string,
  [first, second]: [string, string],
): Promise<Record<string, string | number>> {
  const client = await asReader(t);
  try {
    const one = async (sql: string): Promise<string[]> =>
      (await client.query<string[]>({ text: sql, rowMode: 'array' })).rows[0] as string[];
    const [after0, after1] = await one(
      `select ${first}::text, ${second}::text from ${view} order by ${first}, ${second} offset (select count(*) / 2 from ${view}) limit 1`,
    );
    const [customerId] = await one(
      'select customer_id from gateway.installaties group by 1 order by count(*) desc limit 1',
    );
    const [installationId] = await one(
      'select installation_id from gateway.werkbonnen group by 1 order by count(*) desc limit 1',
    );
    return {
      workspace: t.context.database.workspaces[0]?.id as string,
      after0: after0 as string,
      after1: after1 as string,
      customerId: customerId as string,
      installationId: installationId as string,
      entity: 'werkbon',
      entityId: '500',
      from: '2019-06-01',
      to: '2026-06-30',
      timeZone: 'Europe/Amsterdam',
    };
  } finally {
    await client.end();
  }
}

/** Buffers the statement reads on the replica, as the reader, with the plan the gateway gets. */
async function buffersOf(
  t: ExecutionContext<TestContext>,
  statement: Statement,
  values: Readonly<Record<string, string | number>>,
): Promise<number> {
  const client = await asReader(t);
  try {
    await client.query(`prepare guarded as ${statement.text}`);
    const literals = statement.parameters.map((name) => pg.escapeLiteral(String(values[name])));
    const { rows } = await client.query<{ 'QUERY PLAN': [{ Plan: Plan }] }>(
      `explain (analyze, buffers, format json) execute guarded${literals.length > 0 ? `(${literals.join(', ')})` : ''}`,
    );
    const plan = rows[0]?.['QUERY PLAN'][0].Plan as Plan;
    for (const scan of scansOf(plan).filter((each) => each['Index Cond']?.includes('workspace_id = ')))
      t.regex(scan.Filter ?? '', /^\(?COALESCE\(\(workspace_id = ANY/, 'the tenant wall is the first condition');
    return plan['Shared Hit Blocks'] + plan['Shared Read Blocks'];
  } finally {
    await client.end();
  }
}

/** Scans of the app's tables; those of a work order's parts go by the work order. */
function scansOf(plan: Plan): Plan[] {
  const own = /^(Index|Seq|Bitmap Heap)/.test(plan['Node Type']) ? [plan] : [];
  return [...own, ...(plan.Plans ?? []).flatMap(scansOf)];
}

async function asReader(t: ExecutionContext<TestContext>): Promise<pg.Client> {
  const client = new pg.Client(t.context.database.settings.replicaUrls);
  await client.connect();
  await client.query("select set_config('gateway.workspace_id', $1, false)", [t.context.database.workspaces[0]?.id]);
  return client;
}
