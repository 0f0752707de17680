import { adopt, resourcesFolder, viewsFolder } from '../operate/adopt/adoption.js';
import { makeCommand, makeOptions, parseNames, printLine, program, UsageError } from './command.js';
import { readAdminUrl } from './required-settings.js';

export const adoptCommand = makeCommand(
  {
    ...makeOptions('string', 'schema', 'tenant', 'tables', 'write', 'show'),
    out: { type: 'string', default: '.' },
    'all-filters': { type: 'boolean', default: false },
  },
  async ({ schema, out, tenant, tables, write = '', show = '', 'all-filters': allFilters }) => {
    const only = tables === undefined ? undefined : parseNames(tables);
    if (only?.length === 0) throw new UsageError('Give --tables the names of tables, with commas between them.');
    if (schema === undefined) throw new UsageError("Give --schema NAME, the schema of the app's tables.");
    const drafted = await adopt(readAdminUrl(), {
      schema,
      out,
      write: parseNames(write),
      show: parseNames(show),
      tenantColumn: tenant,
      only,
      allFilters,
    });
    printLine(`Workspaces: ${drafted.tenant}.`);
    printLine('');
    for (const file of drafted.files) printLine(`wrote ${file}`);
    printSection('Rows', drafted.rows);
    printSection('Left out', drafted.leftOut);
    printSection('Indexes', drafted.indexes);
    printSection('Open points, marked OPEN: in the files', drafted.open);
    printSection('Next, after a look at each file', [
      `export WALL_KEY=$(openssl rand -base64 32) RESOURCES_DIR=${quotePath(out, resourcesFolder)}`,
      `${program} migrate --views ${quotePath(out, viewsFolder)}`,
      ...(drafted.files.some((file) => file.startsWith(`${viewsFolder}/indexes/`))
        ? [`${program} migrate --views ${quotePath(out, viewsFolder)} --indexes`]
        : []),
      `${program} check`,
    ]);
    return 0;
  },
);

function printSection(title: string, lines: readonly string[]): void {
  if (lines.length === 0) return;
  printLine('');
  printLine(`${title}:`);
  for (const line of lines) printLine(`  ${line}`);
}

/** Quotes a path for a shell, if it has to be. */
function quotePath(out: string, path: string): string {
  const whole = out === '.' ? path : `${out}/${path}`;
  return /^[\w./-]+$/.test(whole) ? whole : `'${whole.replaceAll("'", String.raw`'\''`)}'`;
}
