import { parseArgs } from 'node:util';
import { createViews, dropAllViews } from '../migrate/migrations.js';
import { defaultViewsDir } from '../migrate/sql-files.js';
import { adminUrl } from './admin-url.js';
import { type Command, print, UsageError } from './command.js';

/** `views`: drops and creates the views around changes of the app's tables. */
export const viewsCommand: Command = async (args) => {
  const { values } = parseArgs({
    args: [...args],
    options: { drop: { type: 'boolean' }, create: { type: 'boolean' }, views: { type: 'string' } },
  });
  if ((values.drop === true) === (values.create === true)) throw new UsageError('Give --drop or --create.');
  if (values.drop && values.views !== undefined)
    throw new UsageError('--drop takes no --views: it drops what was created.');
  if (values.drop) await dropAllViews(adminUrl());
  else await createViews(adminUrl(), values.views ?? defaultViewsDir);
  print(values.drop ? 'dropped the views' : 'created the views');
  return 0;
};
