import { adopt, resourcesFolder, viewsFolder } from '../operate/adopt/adopt.js';
import { adminUrl } from './admin.js';
import { command, outLine, program, UsageError } from './command.js';

const text = { type: 'string' } as const;

export const adoptCommand = command(
  {
    ...{ schema: text, out: { type: 'string', default: '.' }, tenant: text, tables: text, write: text, show: text },
    'all-filters': { type: 'boolean', default: false },
  },
  async ({ schema, out, tenant, tables, write = '', show = '', 'all-filters': allFilters }) => {
    const only = tables === undefined ? undefined : namesIn(tables);
    if (only?.length === 0) throw new UsageError('Give --tables the names of tables, with commas between them.');
    if (schema === undefined) throw new UsageError("Give --schema NAME, the schema of the app's tables.");
    const drafted = await adopt(adminUrl(), {
      schema,
      out,
      write: namesIn(write),
      show: namesIn(show),
      tenantColumn: tenant,
      only,
      allFilters,
    });
    outLine(`Workspaces: ${drafted.tenant}.`);
    outLine('');
    for (const file of drafted.files) outLine(`wrote ${file}`);
    section('Rows', drafted.rows);
    section('Left out', drafted.leftOut);
    section('Indexes', drafted.indexes);
    section('Open points, marked OPEN: in the files', drafted.open);
    section('Next, after a look at each file', [
      `export WALL_KEY=$(openssl rand -base64 32) RESOURCES_DIR=${folder(out, resourcesFolder)}`,
      `${program} migrate --views ${folder(out, viewsFolder)}`,
      ...(drafted.files.some((file) => file.startsWith(`${viewsFolder}/indexes/`))
        ? [`${program} migrate --views ${folder(out, viewsFolder)} --indexes`]
        : []),
      `${program} check`,
    ]);
    return 0;
  },
);

function namesIn(list: string): string[] {
  return list.split(',').flatMap((name) => name.trim() || []);
}

function section(title: string, lines: readonly string[]): void {
  if (lines.length === 0) return;
  outLine('');
  outLine(`${title}:`);
  for (const line of lines) outLine(`  ${line}`);
}

function folder(out: string, path: string): string {
  const whole = out === '.' ? path : `${out}/${path}`;
  return /^[\w./-]+$/.test(whole) ? whole : `'${whole.replaceAll("'", String.raw`'\''`)}'`;
}
