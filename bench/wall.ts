import { startCluster } from '../demo/cluster/cluster.js';
import { readProject } from '../src/base/paths.js';
import { migrate } from '../src/operate/migrate/migrations.js';
import { runAsAdmin } from '../src/postgres/admin.js';
import type { WorkspaceId } from '../src/postgres/statement.js';
import { makeWorkspaceMac } from '../src/postgres/workspace-mac.js';
import { alternate, median } from './rounds.js';

// The hour of a MAC costs a statement some time: `node dist/bench/wall.js`. The view of the wall, and the same without its hour, alternate.

const [rounds, executions] = [15, 20_000];
const wallKey = Buffer.alloc(32, 'wall').toString('base64');
const workspace = '3f2b8a52-7a43-4a57-9d6e-1b1f6a4a0001' as WorkspaceId;
const condition = /abs\(.*?(?=\)\s+(?:ELSE|END))/s;

const cluster = await startCluster({ replicas: 0, settings: { fsync: 'off' } });
try {
  const url = cluster.primary.url();
  await runAsAdmin(url, (client) => client.query(readProject('sql/apps/first/schema.sql')));
  await migrate(url, { wallKey });
  await runAsAdmin(url, async (client) => {
    const { rows } = await client.query(`select pg_get_viewdef('gateway.verified_workspace') as text`);
    const without = (rows[0].text as string).replace(condition, 'true');
    if (without === rows[0].text) throw new Error('The view has no condition on the hour.');
    await client.query(`create view gateway.verified_without_hour as ${without}`);
    await client.query(
      `set plan_cache_mode = force_generic_plan; select set_config('gateway.workspace_id', '${makeWorkspaceMac(wallKey)(workspace)}', false)`,
    );
    const microsecondsOf = async (source: string): Promise<number> => {
      const startedMs = performance.now();
      await client.query(
        `do $$ begin for i in 1..${executions} loop if (select id from ${source}) is null then raise 'no workspace'; end if; end loop; end $$`,
      );
      return ((performance.now() - startedMs) * 1000) / executions;
    };
    const sources = {
      nothing: "(select 'x' as id) x",
      'without the hour': 'gateway.verified_without_hour',
      'with the hour': 'gateway.verified_workspace',
    };
    const results = await alternate(Object.values(sources), rounds, microsecondsOf);
    for (const [i, name] of Object.keys(sources).entries())
      console.log(
        `${name}: ${median(results[i] ?? []).toFixed(2)} µs (least ${Math.min(...(results[i] ?? [])).toFixed(2)})`,
      );
  });
} finally {
  await cluster.stop();
}
