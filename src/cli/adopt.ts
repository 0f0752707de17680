import { parseArgs } from 'node:util';
import { adopt, resourcesFolder, viewsFolder } from '../adopt/adopt.js';
import { adminUrl } from './admin.js';
import { type Command, namesIn, print, program, UsageError } from './command.js';

/** `adopt`: drafts views and definitions for an app's schema. */
export const adoptCommand: Command = async (args) => {
  const { values } = parseArgs({
    args: [...args],
    options: {
      schema: { type: 'string' },
      out: { type: 'string', default: '.' },
      tenant: { type: 'string' },
      tables: { type: 'string' },
      write: { type: 'string', default: '' },
    },
  });
  const { schema, out, tenant } = values;
  const [write, only] = [namesIn(values.write), namesIn(values.tables ?? '')];
  if (values.tables !== undefined && only.length === 0)
    throw new UsageError('Give --tables the names of tables, with commas between them.');
  if (schema === undefined) throw new UsageError("Give --schema NAME, the schema of the app's tables.");
  const drafted = await adopt(adminUrl(), {
    schema,
    out,
    write,
    ...(tenant !== undefined && { tenantColumn: tenant }),
    ...(only.length > 0 && { only }),
  });
  print(`Workspaces: ${drafted.tenant}.`);
  print('');
  for (const file of drafted.files) print(`wrote ${file}`);
  section('Left out', drafted.leftOut);
  section('Open points, marked OPEN: in the files', drafted.open);
  section('Next, after a look at each file', [
    `${program} migrate --views ${folder(out, viewsFolder)}`,
    ...(drafted.files.some((file) => file.startsWith(`${viewsFolder}/indexes/`))
      ? [`${program} migrate --views ${folder(out, viewsFolder)} --indexes`]
      : []),
    `RESOURCES_DIR=${folder(out, resourcesFolder)} ${program} check`,
  ]);
  return 0;
};

function section(title: string, lines: readonly string[]): void {
  if (lines.length === 0) return;
  print('');
  print(`${title}:`);
  for (const line of lines) print(`  ${line}`);
}

/** The folder as a word of the shell. */
function folder(out: string, path: string): string {
  const whole = out === '.' ? path : `${out}/${path}`;
  return /^[\w./-]+$/.test(whole) ? whole : `'${whole.replaceAll("'", String.raw`'\''`)}'`;
}
