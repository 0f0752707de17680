import { parseArgs } from 'node:util';
import { createIndexes } from '../migrate/indexes.js';
import { createViews, dropAllViews, listFiles, type MigrateOptions, migrate } from '../migrate/migrations.js';
import { defaultViewsDir } from '../migrate/sql-files.js';
import { loadSettings } from '../settings.js';
import { adminUrl, definitions, lockOptions, waitOption } from './admin.js';
import { type Command, print, UsageError } from './command.js';

/** `migrate`: applies sql/core, the views and index proposals. */
export const migrateCommand: Command = async (args) => {
  const { values } = parseArgs({
    args: [...args],
    options: {
      views: { type: 'string', default: defaultViewsDir },
      list: { type: 'boolean', default: false },
      pending: { type: 'boolean', default: false },
      indexes: { type: 'boolean', default: false },
      wait: waitOption,
    },
  });
  const { views: viewsDir, list, pending, indexes } = values;
  if ([list, pending, indexes].filter(Boolean).length > 1)
    throw new UsageError('Give one of --list, --pending and --indexes.');
  const settings = loadSettings(process.env);
  const { resourcesDir } = settings;
  if (!indexes) definitions(settings);
  if (pending) return listPending({ viewsDir, resourcesDir });
  const wait = lockOptions(values.wait);
  const changes: string[] = [];
  const note = (change: string): void => {
    changes.push(change);
    print(change);
  };
  if (list) for (const file of await listFiles(adminUrl(), { viewsDir, resourcesDir })) note(file);
  else if (indexes)
    await createIndexes(adminUrl(), { viewsDir, onCreated: (name) => note(`created ${name}`), ...wait });
  else await migrate(adminUrl(), { viewsDir, resourcesDir, onChange: note, ...wait });
  if (changes.length === 0) print('nothing to do');
  return 0;
};

/** Prints the files that the database lacks or has in another form; exit code 1 if there are any. */
async function listPending(options: MigrateOptions): Promise<number> {
  const files = (await listFiles(adminUrl(), options)).filter((file) => !file.startsWith('applied '));
  for (const file of files) print(file);
  if (files.length === 0) print('nothing to do');
  return files.length === 0 ? 0 : 1;
}

/** `views`: drops and creates the views around changes of the app's tables. */
export const viewsCommand: Command = async (args) => {
  const { values } = parseArgs({
    args: [...args],
    options: { drop: { type: 'boolean' }, create: { type: 'boolean' }, views: { type: 'string' }, wait: waitOption },
  });
  if ((values.drop === true) === (values.create === true)) throw new UsageError('Give --drop or --create.');
  if (values.drop && values.views !== undefined)
    throw new UsageError('--drop takes no --views: it drops what was created.');
  const wait = lockOptions(values.wait);
  const settings = loadSettings(process.env);
  const { resourcesDir } = settings;
  if (values.create) definitions(settings);
  if (values.drop) await dropAllViews(adminUrl(), wait);
  else await createViews(adminUrl(), { viewsDir: values.views ?? defaultViewsDir, resourcesDir, ...wait });
  print(values.drop ? 'dropped the views' : 'created the views');
  return 0;
};
