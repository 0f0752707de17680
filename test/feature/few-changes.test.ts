import type { ExecutionContext } from 'ava';
import { loadResources } from '../../src/definition/load.js';
import type { Resource } from '../../src/definition/resource.js';
import { compileStatements } from '../../src/definition/statements.js';
import { createIndexes } from '../../src/migrate/indexes.js';
import { pages } from '../support/lists.js';
import { analyzed, buffersIn } from '../support/plan-buffers.js';
import { replicaReader, withStatistics } from '../support/replica-reader.js';
import { gatewayTest, type TestContext } from '../support/workspace.js';

// Small chunks, so that pages of 400 need the statements between two keys, too.
const test = gatewayTest({ chunkRowsMax: 100 }, 'first');
const workOrders = loadResources('').find(({ name }) => name === 'werkbonnen') as Resource;
const unchanged = 60_000;
/** So many work orders changed at this moment or later: the most that are sorted, and one more. */
const most = { since: '2100-01-02T00:00:00Z', count: 1000 };
const more = { since: '2100-01-01T00:00:00Z', count: 1001 };
/** The newest changes, those of a run every few minutes. */
const few = { since: '2100-02-01T00:00:00Z', count: 20 };
/** A read of no row descends into the index of changes twice; each row is a descent, and some of its parts. */
const buffersOnce = 30;
const buffersPerRow = 16;

test.before('many work orders, of which few changed late', async (t) => {
  const { database } = t.context;
  await database.primary.query(
    `insert into app.werkbonnen (id, workspace_id, installatie_id, nummer, datum, status, updated_at)
     select gen_random_uuid(), $1, i.id, 'WB-' || g, date '2019-01-01' + g % 2800,
       case g % 3 when 0 then 'gepland' else 'afgerond' end,
       case when g > ${most.count} then timestamptz '2020-01-01' when g = 0 then $2 when g <= ${few.count} then $4 else $3 end
     from generate_series(0, ${unchanged}) g,
       (select id from app.installaties where workspace_id = $1 order by id limit 1) i`,
    [database.workspaces[0]?.id, more.since, most.since, few.since],
  );
  await createIndexes(database.settings.adminUrl);
  await database.primary.query('vacuum (analyze) app.werkbonnen');
  await database.caughtUp();
});

for (const { since, count } of [few, most, more]) {
  for (const direction of ['asc', 'desc'] as const) {
    for (const query of ['', '&status=gepland', '&from=2019-06-01&to=2024-01-01', '&to=2021-01-01&status=afgerond']) {
      test(`${count} changes, ${direction}, ${query}: every page, by cursor and by number, in order, with the total`, async (t) => {
        const { client, database } = t.context;
        const { from = '-infinity', to = 'infinity', status = null } = Object.fromEntries(new URLSearchParams(query));
        const { rows } = await database.primary.query<{ id: string }>(
          `select id from app.werkbonnen where workspace_id = $1 and updated_at >= $2 and datum between $3 and $4
             and status = coalesce($5, status) order by datum ${direction}, id ${direction}`,
          [database.workspaces[0]?.id, since, from, to, status],
        );
        const expected = rows.map(({ id }) => id);
        t.true(query !== '' || expected.length === count);
        for (const by of ['cursor', 'page'] as const) {
          const found: string[] = [];
          const path = `/werkbonnen?perPage=400&total=true&order=${direction}&updatedSince=${since}${query}`;
          for await (const { data, pagination } of pages<{ id: string }>(client, path, by)) {
            t.is(pagination.total, expected.length);
            found.push(...data.map(({ id }) => id));
          }
          t.deepEqual(found, expected, by);
        }
      });
    }
  }
}

test('few changes are found without reading the others, by every statement, beside every other filter, with any statistics', async (t) => {
  for await (const statistics of withStatistics(t)) await readsFewBuffers(t, statistics);
});

async function readsFewBuffers(t: ExecutionContext<TestContext>, statistics: string): Promise<void> {
  const client = await replicaReader(t);
  const workspace = t.context.database.workspaces[0]?.id as string;
  const { rows } = await client.query<{ id: string; installation: string }>(
    'select id, installation_id as installation from gateway.werkbonnen order by updated_at desc limit 1',
  );
  const [{ id = '', installation = '' } = {}] = rows;
  const values = {
    workspace,
    timeZone: 'UTC',
    limit: few.count,
    skip: 5,
    installationId: installation,
    status: 'gepland',
  };
  const bounds = {
    after0: '2019-01-01',
    after1: id,
    until0: '2026-01-01',
    until1: id,
    from: '2019-01-01',
    to: '2026-01-01',
  };
  for (const others of [[], ['from'], ['to'], ['status'], ['installationId'], ['from', 'to', 'status']]) {
    for (const direction of ['asc', 'desc'] as const) {
      const statements = compileStatements(workOrders).list(['updatedSince', ...others], direction);
      const all = [statements.rows, statements.keys].flatMap((kind) => Object.values(kind));
      for (const statement of [...all, statements.last, statements.count]) {
        await client.query(`prepare guarded as ${statement.text}`);
        for (const { since, count } of [few, { since: '2200-01-01', count: 0 }]) {
          const plan = await analyzed(client, statement, { ...values, ...bounds, updatedSince: since });
          const buffers = buffersIn(plan);
          const bound = count * buffersPerRow + buffersOnce;
          t.true(buffers <= bound, `${statement.name} reads ${buffers} buffers with statistics of ${statistics}`);
        }
        await client.query('deallocate guarded');
      }
    }
  }
}
