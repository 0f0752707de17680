import { loadResources } from '../../src/definition/load.js';
import type { Resource } from '../../src/definition/resource.js';
import { compileStatements } from '../../src/definition/statements.js';
import { createIndexes } from '../../src/migrate/indexes.js';
import { analyzed, buffersIn } from '../support/plan-buffers.js';
import { replicaReader, withStatistics } from '../support/replica-reader.js';
import { gatewayTest } from '../support/workspace.js';

const test = gatewayTest({}, 'first');
const workOrders = loadResources('').find(({ name }) => name === 'werkbonnen') as Resource;
const count = 60_000;
/** A descent into the index of the ids, the row and its parts; in the first run on a connection some pages of the catalog, too. */
const buffersPerRow = 45;

test('a work order is found by its id without reading the others, alone and in a list of ids, with any statistics', async (t) => {
  const { database } = t.context;
  const workspace = database.workspaces[0]?.id as string;
  await database.primary.query(
    `insert into app.werkbonnen (id, workspace_id, installatie_id, nummer, datum, status)
     select gen_random_uuid(), $1, i.id, 'WB-' || g, date '2019-01-01' + g % 2800, 'gepland'
     from generate_series(1, ${count}) g, (select id from app.installaties where workspace_id = $1 order by id limit 1) i`,
    [workspace],
  );
  await createIndexes(database.settings.adminUrl);
  const { detail, list } = compileStatements(workOrders);
  for await (const name of withStatistics(t)) {
    const client = await replicaReader(t);
    const { rows } = await client.query<{ id: string }>(
      `select id from gateway.werkbonnen order by datum desc, id desc limit 3`,
    );
    const ids = rows.map(({ id }) => id);
    const absent = '77777777-0000-4000-8000-000000000000';
    for (const [statement, id, found] of [
      [detail, ids[0], 1],
      [detail, absent, 0],
      [list(['ids']).rows.all, '', ids.length],
      [list(['ids', 'status'], 'desc').keys.all, '', ids.length],
      [list(['ids']).count, '', ids.length],
    ] as const) {
      if (statement === null || id === undefined) throw new Error('Work orders have details.');
      await client.query(`prepare guarded as ${statement.text}`);
      const values = { workspace, id, ids: `{${ids}}`, status: 'gepland', limit: 100, skip: 0 };
      const buffers = buffersIn(await analyzed(client, statement, values));
      const most = Math.max(found, 1) * buffersPerRow;
      t.true(buffers <= most, `${statement.name} reads ${buffers} buffers with statistics of ${name}`);
      await client.query('deallocate guarded');
    }
  }
});
