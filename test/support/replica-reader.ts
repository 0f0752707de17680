import type { ExecutionContext } from 'ava';
import pg from 'pg';
import { makeMac } from './walls.js';
import type { TestContext } from './workspace.js';

/** Connects to the replica in the gateway's role, for the first workspace, until the test ends. */
export async function replicaReader(t: ExecutionContext<TestContext>): Promise<pg.Client> {
  const { settings, workspaces } = t.context.database;
  const client = new pg.Client(settings.replicaUrls);
  await client.connect();
  t.teardown(() => client.end());
  await actFor(client, workspaces[0]?.id as string);
  return client;
}

export async function actFor(client: pg.Client, workspace: string): Promise<void> {
  await client.query("select set_config('gateway.workspace_id', $1, false)", [makeMac(workspace)]);
  await client.query('select gateway.workspace()'); // the first call of a session reads its body from the catalog
}

/** In an app whose workspaces have one work order each, all indexes that begin with the workspace look alike. The last stays. */
const statistics = {
  'one work order per workspace': 'set (n_distinct = -1)',
  'these work orders': 'reset (n_distinct)',
};

export async function* withStatistics({ context }: ExecutionContext<TestContext>): AsyncGenerator<string> {
  const { primary, caughtUp } = context.database;
  for (const [name, change] of Object.entries(statistics)) {
    await primary.query(`alter table app.werkbonnen alter workspace_id ${change}`);
    await primary.query('vacuum (analyze) app.werkbonnen');
    await caughtUp();
    yield name;
  }
}
