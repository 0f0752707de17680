import { loadResources } from '../../src/definition/load.js';
import type { Resource } from '../../src/definition/resource.js';
import { compileStatements } from '../../src/definition/statements.js';
import { createIndexes } from '../../src/migrate/indexes.js';
import { page } from '../support/lists.js';
import { analyzed, buffersIn } from '../support/plan-buffers.js';
import { replicaReader, withStatistics } from '../support/replica-reader.js';
import { gatewayTest } from '../support/workspace.js';

const test = gatewayTest({}, 'first');
const workOrders = loadResources('').find(({ name }) => name === 'werkbonnen') as Resource;
const workOrdersOfInstallation = 30_000;
/** One work order: the descent into the index of its number, its row and its parts, and what a connection's first statement reads of the catalog. */
const buffersMax = 40;

test.before('an installation with many work orders in few states', async (t) => {
  const { database } = t.context;
  await database.primary.query(
    `insert into app.werkbonnen (id, workspace_id, installatie_id, nummer, datum, status)
     select gen_random_uuid(), $1, i.id, 'WB-' || g, date '2019-01-01' + g % 2800, case g % 3 when 0 then 'gepland' else 'afgerond' end
     from generate_series(1, ${workOrdersOfInstallation}) g,
       (select id from app.installaties where workspace_id = $1 order by id limit 1) i`,
    [database.workspaces[0]?.id],
  );
  await createIndexes(database.settings.adminUrl);
  // Of indexes that look alike PostgreSQL takes the last.
  await database.primary.query('create index list_made_last on app.werkbonnen (workspace_id, datum, id)');
  await database.primary.query('vacuum app.werkbonnen');
});

test('a number is found by its index, beside every combination of other filters, with any statistics', async (t) => {
  const client = await replicaReader(t);
  const workspace = t.context.database.workspaces[0]?.id as string;
  for await (const name of withStatistics(t)) {
    const { rows } = await client.query<{ id: string; installation: string; day: string }>(
      "select id, installation_id as installation, datum::text as day from gateway.werkbonnen where nummer = 'WB-15000'",
    );
    const [{ id = '', installation = '', day = '' } = {}] = rows;
    const values = {
      ...{ workspace, timeZone: 'UTC', limit: 100, skip: 0, installationId: installation, status: 'gepland' },
      ...{ nummer: 'WB-15000', from: '2019-02-01', to: '2026-01-01', updatedSince: '2019-01-01' },
      ...{ after0: '2019-01-01', after1: id, until0: day, until1: id },
    };
    for (const others of combinations(['installationId', 'from', 'to', 'status', 'updatedSince'])) {
      for (const direction of ['asc', 'desc'] as const) {
        const statements = compileStatements(workOrders).list(['nummer', ...others], direction);
        const all = [statements.rows, statements.keys].flatMap((kind) => Object.values(kind));
        for (const statement of [...all, statements.last, statements.count]) {
          await client.query(`prepare guarded as ${statement.text}`);
          const buffers = buffersIn(await analyzed(client, statement, values));
          t.true(buffers <= buffersMax, `${statement.name} reads ${buffers} buffers with statistics of ${name}`);
          await client.query('deallocate guarded');
        }
      }
    }
  }
});

test('beside a number every other filter still decides', async (t) => {
  const { client } = t.context;
  const found = async (query: string): Promise<number> => {
    const { data, pagination } = await page(client, `/werkbonnen?nummer=WB-15000&total=true${query}`);
    t.is(pagination.total, data.length, query);
    return data.length;
  };
  const [{ installationId = '', datum = '' } = {}] = (
    await page<{ installationId: string; datum: string }>(client, '/werkbonnen?nummer=WB-15000')
  ).data;
  for (const met of [
    'status=gepland',
    `installationId=${installationId}`,
    `from=${datum}`,
    `to=${datum}`,
    'updatedSince=2019-01-01',
  ])
    t.is(await found(`&${met}`), 1, met);
  for (const missed of [
    'status=afgerond',
    'installationId=00000000-0000-4000-8000-000000000000',
    'updatedSince=2100-01-01',
    'to=2018-12-31',
  ])
    t.is(await found(`&${missed}`), 0, missed);
});

/** Every subset of the names. */
function combinations(names: readonly string[]): string[][] {
  const all: string[][] = [[]];
  for (const name of names) all.push(...all.map((each) => [...each, name]));
  return all;
}
