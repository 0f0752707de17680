import { parseArgs } from 'node:util';
import { createViews, dropAllViews } from '../migrate/migrations.js';
import { defaultViewsDir } from '../migrate/sql-files.js';
import { loadSettings } from '../settings.js';
import { adminUrl, definitions, lockOptions, waitOption } from './admin.js';
import { type Command, print, UsageError } from './command.js';

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
