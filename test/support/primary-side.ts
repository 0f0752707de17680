import { readFile } from 'node:fs/promises';
import { shared } from './shared.js';
import type { TestDatabase } from './workspace.js';

export async function customerOf(database: TestDatabase, workspace = 0): Promise<string> {
  const { rows } = await database.primary.query<{ id: string }>(
    'select id from probe.klanten where workspace_id = $1 order by id limit 1',
    [database.workspaces[workspace]?.id],
  );
  return (rows[0] as { id: string }).id;
}

export async function logStatements(database: TestDatabase): Promise<void> {
  await database.primary.query(`alter database ${database.name} set log_statement = 'all'`);
}

/** Lists the statements that the gateway has run on the primary in the test's database, without its probes. */
export async function statementsOn(database: TestDatabase): Promise<string[]> {
  const lines = (await readFile(shared.logs.primary, 'utf8')).split('\n');
  const own = lines.filter(
    (line) => line.includes(` ${database.name}|workspace-data-gateway|`) && / (execute|statement)\b/.test(line),
  );
  return own.filter((line) => !/ execute probe(_\S+)?: /.test(line));
}
