import pg from 'pg';
import { createIndexes } from '../../src/operate/migrate/indexes.js';
import type { Statement } from '../../src/postgres/statement.js';
import { getGuard } from '../../src/postgres/wire/queries.js';
import { loadResources } from '../../src/resource/definition/load.js';
import type { Resource } from '../../src/resource/definition/resource.js';
import { compileStatements } from '../../src/resource/statements/statements.js';
import { compileSyncStatements, type SyncStatements } from '../../src/resource/statements/sync-statements.js';
import { listRanges, type ReadInPass } from '../../src/serve/sync/scan.js';
import { analyzed, buffersIn, indexesOf, type Plan } from '../support/plan-buffers.js';
import { actFor } from '../support/replica-reader.js';
import { makeMac } from '../support/walls.js';
import { gatewayTest } from '../support/workspace.js';

const resources = loadResources('');
const test = gatewayTest().serial;
const rows = 20;
/** A page's share: per row its index entry, its heap page and, for a work order, some ten pages of its parts. */
const buffersPerRow = 14;
/** Further buffers that a statement may read: descending the index of every year of the log. */
const buffersOnce = 120;
/** Workspaces with ten rows of each resource, beside which the first workspace has 90 % of all rows: an average workspace has few. */
const tinyWorkspaces = 300;
const tinyWorkspace = '10101010-1010-4010-8010-000000000001';
const tinyRows = 10;

let largestWorkspace: string;
/**
 * A connection of the gateway's role to the replica, and the values of parameters: both serve all tests, as they take longer than a plan.
 */
let client: pg.Client;
const known = new Map<string, Promise<Readonly<Record<string, string | number>>>>();

test.before('many rows, proposed indexes, fresh statistics', async (t) => {
  const { database } = t.context;
  const workspace = database.workspaces[0]?.id as string;
  largestWorkspace = workspace;
  await database.primary.query('set session_replication_role = replica'); // these rows need no check of their references
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
  await database.primary.query(
    `insert into app.installaties (id, workspace_id, klant_id, naam, serienummer, created_at, updated_at)
     select gen_random_uuid(), $1, (select id from app.klanten where workspace_id = $1 order by id limit 1), 'Koelcel', 'S' || g,
       timestamptz '2019-01-01' + g * interval '1 hour', timestamptz '2019-01-01' + g * interval '1 hour'
     from generate_series(1, 20000) g`,
    [workspace],
  );
  await database.primary.query(
    `insert into app.werkbon_handelingen (id, workspace_id, werkbon_id, volgorde, code)
     select gen_random_uuid(), workspace_id, id, 1, 'X' from app.werkbonnen where workspace_id = $1`,
    [workspace],
  );
  for (const text of tinyInserts) await database.primary.query(text);
  await createIndexes(database.settings.adminUrl);
  for (const table of ['klanten', 'installaties', 'werkbonnen', 'werkbon_handelingen', 'werkbon_uren', 'logboeken'])
    await database.primary.query(`vacuum (analyze) app.${table}`);
  await database.primary.query('reset session_replication_role');
  await database.caughtUp();
  client = new pg.Client(database.settings.replicaUrls);
  client.on('error', () => {}); // the end of its database, which goes before it
  await client.connect();
});
test.beforeEach(async () => {
  await client.query('rollback; deallocate all'); // ends what a failed test left open
  await actFor(client, largestWorkspace);
});
test.after.always(() => client?.end());

const tenants = `generate_series(1, ${tinyWorkspaces}) n
  cross join lateral (select ('10101010-1010-4010-8010-' || lpad(n::text, 12, '0'))::uuid as id) w`;
const tinyInserts = [
  `insert into app.workspaces (id, naam) select id, 'Ten' from ${tenants}`,
  ...[
    `app.klanten (id, workspace_id) select case g when 1 then w.id else gen_random_uuid() end, w.id`,
    `app.installaties (id, workspace_id, klant_id, naam, serienummer)
     select case g when 1 then w.id else gen_random_uuid() end, w.id, w.id, 'Koelcel', 'S' || g`,
    `app.werkbonnen (id, workspace_id, installatie_id, nummer, datum, status)
     select gen_random_uuid(), w.id, w.id, 'WB-' || g, date '2022-01-01' + g, 'gepland'`,
    `app.logboeken (workspace_id, tijdstip, entiteit, entiteit_id, actie, actor_type)
     select w.id, timestamptz '2022-01-01' + g * interval '100 days', 'werkbon', '500', 'gewijzigd', 'systeem'`,
  ].map((rows) => `insert into ${rows} from ${tenants}, generate_series(1, ${tinyRows}) g`),
];

for (const resource of resources) {
  const { list } = compileStatements(resource);
  const combinations = upToTwoOrAll(Object.keys(resource.filters));
  for (const filters of combinations) {
    // The statements of two filters differ from those of one by a condition, in either direction.
    for (const direction of filters.length === 2 ? (['asc'] as const) : (['asc', 'desc'] as const)) {
      const statements = list(filters, direction);
      test(`${resource.name}${filters.map((name) => ` by ${name}`).join('')}, ${direction}, reads in proportion to the page, at the beginning and deep inside`, async (t) => {
        const values = await valuesOf(largestWorkspace, resource);
        for (const statement of [statements.rows.all, statements.rows.after, statements.last]) {
          const buffers = await buffersOf(statement, { ...values, limit: rows });
          t.true(buffers <= rows * buffersPerRow + buffersOnce, `${statement.name} reads ${buffers} buffers`);
        }
        // A pair of filters has no index of its own: each skipped row is read.
        const isCovered = filters.filter((name) => name !== 'from' && name !== 'to').length < 2;
        for (const statement of [statements.keys.all, statements.keys.after, statements.keys.before]) {
          const skipped = await buffersOf(statement, { ...values, limit: 1, skip: 2000 });
          t.true(
            skipped <= (isCovered ? 2000 / 4 : 2000 * 1.1) + buffersOnce,
            `${statement.name} reads ${skipped} buffers to skip 2,000 rows`,
          );
        }
      });
    }
  }
}

for (const resource of resources) {
  for (const order of ['largest', 'smallest'] as const) {
    test(`${resource.name}: one generic plan serves the workspace with nearly all rows and the one with ten, the ${order} first`, async (t) => {
      const workspaces = [largestWorkspace, tinyWorkspace];
      if (order === 'smallest') workspaces.reverse();
      const both: Record<string, string | number>[] = [];
      for (const workspace of workspaces) {
        await actFor(client, workspace);
        both.push({
          ...(await valuesOf(workspace, resource)),
          until0: '2030-01-01',
          limit: rows,
          skip: 5,
        });
      }
      const [first, second] = both as [Record<string, string | number>, Record<string, string | number>];
      const { list, detail } = compileStatements(resource);
      const names = Object.keys(resource.filters);
      const ends = ['from', 'to'].filter((name) => names.includes(name));
      const withEnds = names.filter((name) => !ends.includes(name)).map((name) => [...ends, name]);
      const keyColumns = { fields: ['id'], columns: resource.order.map(({ column }) => column) };
      const combinations = [[], ...names.map((name) => [name]), ...withEnds, names];
      const statements = combinations.flatMap((filters) => {
        const { rows, keys, last } = list(filters);
        const cut = list(filters, 'asc', keyColumns).rows;
        return [...Object.values(rows), keys.all, keys.before, last, cut.all, cut.after];
      });
      for (const statement of detail === null ? statements : [...statements, detail]) {
        await client.query(`prepare guarded as ${statement.text}`);
        await actFor(client, first.workspace as string);
        const plans = [await analyzed(client, statement, first)];
        await actFor(client, second.workspace as string);
        plans.push(await analyzed(client, statement, second));
        const { rows: counts } = await client.query(
          `select custom_plans::int, generic_plans::int from pg_prepared_statements where name = 'guarded'`,
        );
        t.deepEqual(counts, [{ custom_plans: 0, generic_plans: 2 }], statement.name);
        t.deepEqual(...(plans.map(indexesOf) as [string[], string[]]), `${statement.name} reads the same indexes`);
        for (const [i, { workspace }] of both.entries()) {
          const most = (workspace === tinyWorkspace ? tinyRows : rows) * buffersPerRow + buffersOnce;
          const buffers = buffersIn(plans[i] as Plan);
          t.true(buffers <= most, `${statement.name} reads ${buffers} buffers for ${workspace}`);
        }
        await client.query('deallocate guarded');
      }
    });
  }
}

test('records that did not change since a moment cost an index entry and no row', async (t) => {
  const installations = resources.find(({ name }) => name === 'installaties') as Resource;
  const { rows: found } = await client.query<{ count: number }>('select count(*)::int from gateway.installaties');
  const count = found[0]?.count as number;
  const statement = compileStatements(installations).list(['updatedSince']).rows.all;
  const values = { ...(await valuesOf(largestWorkspace, installations)), updatedSince: '2030-01-01', limit: rows };
  const buffers = await buffersOf(statement, values);
  t.true(count > 20_000);
  t.true(buffers <= count / 50 + buffersOnce, `${buffers} buffers for ${count} installations`);
});

test('a sync pass reads each page of a table once for many rows, and the ids by an index alone', async (t) => {
  const workOrders = resources.find(({ name }) => name === 'werkbonnen') as Resource;
  const { changed, hashed, digest } = compileSyncStatements(workOrders) as SyncStatements;
  const { rows: next } = await client.query<{ id: string }>(
    `select pg_snapshot_xmin(pg_current_snapshot())::text as id`,
  );
  const values = {
    ...(await valuesOf(largestWorkspace, workOrders)),
    since: next[0]?.id as string,
    horizon: '-infinity',
  };
  const countOf = async (view: string): Promise<number> => {
    const { rows: found } = await client.query<{ count: number }>(`select count(*)::int from gateway.${view}`);
    return found[0]?.count as number;
  };
  for (const [i, view] of ['werkbonnen', 'werkbonnen_handelingen', 'werkbonnen_uren'].entries()) {
    const count = await countOf(view);
    const { find, ahead, order } = changed[i] as SyncStatements['hashed'];
    const [ends] = await client
      .query<string[]>({
        text: `select min((${order[0]?.column})::text), max((${order[0]?.column})::text) from gateway.${view}`,
        rowMode: 'array',
      })
      .then((result) => result.rows);
    const lowest = '00000000-0000-0000-0000-000000000000';
    const range = { after0: ends?.[0] as string, after1: lowest, until0: ends?.[1] as string, until1: lowest };
    for (const statement of [find.all, find.between]) {
      const found = await buffersOf(statement, { ...values, ...range, limit: 100 });
      t.true(found <= count / 10 + buffersOnce, `${statement.name} reads ${found} buffers for ${count} rows`);
    }
    const skipped = await buffersOf(ahead.all, { ...values, skip: 100_000, limit: 1 });
    t.true(skipped <= count * 1.2 + buffersOnce, `${skipped} buffers to find the end of ${count} rows of ${view}`);
  }
  const count = await countOf('werkbonnen');
  for (const [statement, extra] of [
    [digest.all, { depth: 2 }],
    [hashed.find.all, { prefixes: '{a1}', limit: 1000 }],
  ] as const) {
    const buffers = await buffersOf(statement, { ...values, ...extra });
    t.true(buffers <= count / 5 + buffersOnce, `${buffers} buffers for the ids of ${count} rows`);
  }
});

test('a digest and ids of a range join nothing, and no range has more rows than it may, in a workspace far above the average', async (t) => {
  const workOrders = resources.find(({ name }) => name === 'werkbonnen') as Resource;
  const { hashed, digest, versions } = compileSyncStatements(workOrders) as SyncStatements;
  const own = { ...(await valuesOf(largestWorkspace, workOrders)), depth: 2, prefixes: '{""}', limit: 1_000_000 };
  const read: ReadInPass = async ({ text, parameters }, values) => {
    const query = { text, values: parameters.map((name) => String(values[name])), rowMode: 'array' as const };
    return { rows: (await client.query<string[]>(query)).rows, asOfMs: null };
  };
  const sizes: number[] = [];
  for await (const { bounds, values } of listRanges(read, hashed, null, own, 1000, 10_000)) {
    sizes.push((await read(hashed.find[bounds], values)).rows.length);
    if (bounds !== 'between' || sizes.length > 3) continue;
    for (const statement of [digest.between, versions.between]) {
      const plan = JSON.stringify(await planOf(statement, values as Readonly<Record<string, string>>));
      t.notRegex(plan, /"Node Type":"(Nested Loop|Hash Join|Merge Join)"/, statement.label);
    }
  }
  const { rows: all } = await client.query<{ count: number }>('select count(*)::int from gateway.werkbonnen');
  const total = sizes.reduce((sum, size) => sum + size, 0);
  t.is(total, all[0]?.count as number);
  t.true(sizes.length > 3 && Math.max(...sizes) <= 10_000, sizes.join());
});

function upToTwoOrAll(names: readonly string[]): (readonly string[])[] {
  const pairs = names.flatMap((first, i) => names.slice(i + 1).map((second) => [first, second]));
  return [[], ...names.map((name) => [name]), ...pairs, ...(names.length > 2 ? [names] : [])];
}

function valuesOf(workspace: string, resource: Resource): Promise<Readonly<Record<string, string | number>>> {
  const key = `${workspace} ${resource.name}`;
  const found = known.get(key) ?? someValues(workspace, resource);
  known.set(key, found);
  return found;
}

async function someValues(workspace: string, { view, order }: Resource): Promise<Record<string, string | number>> {
  const [first, second] = order.map(({ column }) => column);
  const one = async (sql: string): Promise<string[]> =>
    (await client.query<string[]>({ text: sql, rowMode: 'array' })).rows[0] as string[];
  const [after0, after1] = await one(
    `select ${first}::text, ${second}::text from ${view} order by ${first}, ${second} offset (select count(*) / 2 from ${view}) limit 1`,
  );
  const [ids] = await one(`select array_agg(id)::text from (select id from ${view} order by id limit 5) few`);
  const [customerId] = await one(
    'select customer_id from gateway.installaties group by 1 order by count(*) desc limit 1',
  );
  const [installationId] = await one(
    'select installation_id from gateway.werkbonnen group by 1 order by count(*) desc limit 1',
  );
  return {
    workspace,
    after0: after0 as string,
    after1: after1 as string,
    until0: after0 as string,
    until1: after1 as string,
    ids: ids as string,
    id: (ids as string).slice(1).split(/[,}]/)[0] as string,
    customerId: customerId as string,
    installationId: installationId as string,
    serienummer: 'S500',
    status: 'gepland',
    nummer: 'WB-500',
    entity: 'werkbon',
    entityId: '500',
    actie: 'gewijzigd',
    from: '2019-06-01',
    to: '2026-06-30',
    updatedSince: '2019-01-01T00:00:00Z',
    timeZone: 'Europe/Amsterdam',
  };
}

async function planOf(statement: Statement, values: Readonly<Record<string, string | number>>): Promise<Plan> {
  await client.query('begin');
  await client.query(getGuard(statement).text, [makeMac(largestWorkspace)]);
  await client.query(`prepare guarded as ${statement.text}`);
  const plan = await analyzed(client, statement, values);
  await client.query('deallocate guarded');
  await client.query('commit');
  return plan;
}

async function buffersOf(statement: Statement, values: Readonly<Record<string, string | number>>): Promise<number> {
  return buffersIn(await planOf(statement, values));
}
