import { parseArgs } from 'node:util';
import { createIndexes } from '../migrate/indexes.js';
import { gatewaySql, listMigrations, migrate } from '../migrate/migrations.js';
import { adminUrl } from './admin-url.js';
import { type Command, print, UsageError } from './command.js';

/** `migrate`: applies migrations and index proposals. */
export const migrateCommand: Command = async (args) => {
  const { values } = parseArgs({
    args: [...args],
    options: {
      sql: { type: 'string', default: gatewaySql },
      list: { type: 'boolean', default: false },
      'dry-run': { type: 'boolean', default: false },
      indexes: { type: 'boolean', default: false },
    },
  });
  const { sql: sqlDir, list, 'dry-run': dryRun, indexes } = values;
  if ([list, dryRun, indexes].filter(Boolean).length > 1)
    throw new UsageError('Give one of --list, --dry-run and --indexes.');
  if (list) await show(sqlDir);
  else if (dryRun) await preview(sqlDir);
  else if (indexes) done(await createIndexes(adminUrl(), { sqlDir, onCreated: (name) => print(`created ${name}`) }));
  else done(await migrate(adminUrl(), { sqlDir, onApplied: (name) => print(`applied ${name}`) }));
  return 0;
};

async function show(sqlDir: string): Promise<void> {
  for (const { name, applied } of await listMigrations(adminUrl(), sqlDir))
    print(`${applied ? 'applied' : 'pending'} ${name}`);
}

async function preview(sqlDir: string): Promise<void> {
  const pending = (await listMigrations(adminUrl(), sqlDir)).filter(({ applied }) => !applied);
  for (const { name } of pending) print(`would apply ${name}`);
  done(pending);
}

function done(changes: readonly unknown[]): void {
  if (changes.length === 0) print('nothing to do');
}
