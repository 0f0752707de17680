import { appendFileSync, existsSync, readFileSync, renameSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { projectText } from '../../src/paths.js';
import { type Account, give } from './binaries.js';

/** PostgreSQL settings by name; null leaves a setting at the default of all servers. */
export type ServerSettings = Record<string, string | null>;

const fileName = 'embedded.conf';

/** Writes sql/apps/first/postgresql.conf and, overriding it, the settings to one file, which the server's own file includes last. */
export function writeSettings(dir: string, settings: ServerSettings, account: Account | undefined): void {
  const file = join(dir, fileName);
  const common = projectText('sql/apps/first/postgresql.conf');
  const lines = Object.entries(settings).map(([name, value]) => (value === null ? '' : `${name} = ${quote(value)}\n`));
  writeFileSync(`${file}.new`, [common, ...lines].join(''), { mode: 0o600 });
  give(`${file}.new`, account);
  renameSync(`${file}.new`, file); // a server that is just reading sees the old or the new file, never half a one

  const main = join(dir, 'postgresql.conf');
  const include = `include_if_exists = '${fileName}'`;
  if (existsSync(main) && !readFileSync(main, 'utf8').includes(include)) appendFileSync(main, `\n${include}\n`);
}

/** PostgreSQL reads backslash escapes in these strings too. */
const quote = (value: string) => `'${value.replaceAll('\\', '\\\\').replaceAll("'", "''")}'`;
