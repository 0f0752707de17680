import { parseArgs } from 'node:util';
import { createIndexes } from '../migrate/indexes.js';
import { listFiles, migrate, plannedChanges } from '../migrate/migrations.js';
import { defaultViewsDir } from '../migrate/sql-files.js';
import { adminUrl } from './admin-url.js';
import { type Command, print, UsageError } from './command.js';

/** `migrate`: applies sql/core, the views and index proposals. */
export const migrateCommand: Command = async (args) => {
  const { values } = parseArgs({
    args: [...args],
    options: {
      views: { type: 'string', default: defaultViewsDir },
      list: { type: 'boolean', default: false },
      'dry-run': { type: 'boolean', default: false },
      indexes: { type: 'boolean', default: false },
    },
  });
  const { views: viewsDir, list, 'dry-run': dryRun, indexes } = values;
  if ([list, dryRun, indexes].filter(Boolean).length > 1)
    throw new UsageError('Give one of --list, --dry-run and --indexes.');
  const changes: string[] = [];
  const note = (change: string): void => {
    changes.push(change);
    print(change);
  };
  if (list) for (const file of await listFiles(adminUrl(), viewsDir)) note(file);
  else if (dryRun) for (const change of await plannedChanges(adminUrl(), viewsDir)) note(change);
  else if (indexes) await createIndexes(adminUrl(), { viewsDir, onCreated: (name) => note(`created ${name}`) });
  else await migrate(adminUrl(), { viewsDir, onChange: note });
  if (changes.length === 0) print('nothing to do');
  return 0;
};
