import { appendFileSync, existsSync, readFileSync, renameSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { type Account, give } from './binaries.js';

/** PostgreSQL settings by name; null leaves a setting at PostgreSQL's own default. */
export type ServerSettings = Record<string, string | null>;

/** For a machine that shows or tests the gateway: durable, small, and without surprises in its plans. */
export const defaultSettings: Readonly<ServerSettings> = {
  shared_buffers: '128MB',
  max_connections: '200',
  wal_level: 'replica',
  max_wal_senders: '10',
  wal_keep_size: '256MB',
  hot_standby: 'on',
  hot_standby_feedback: 'off',
  synchronous_commit: 'on',
  max_prepared_transactions: '0',
  random_page_cost: '1.1',
  jit: 'off',
  autovacuum: 'on',
  timezone: 'UTC',
  log_timezone: 'UTC',
  log_min_messages: 'warning',
  logging_collector: 'off',
  // In files of the data directory: /dev/shm has 64 MB in a container, and a killed server leaves its files there.
  dynamic_shared_memory_type: 'mmap',
};

const fileName = 'embedded.conf';

/** Writes the settings to a file of their own, which postgresql.conf includes as its last word. */
export function writeSettings(dir: string, settings: ServerSettings, account: Account | undefined): void {
  const file = join(dir, fileName);
  const lines = Object.entries(settings).map(([name, value]) => (value === null ? '' : `${name} = ${quote(value)}\n`));
  writeFileSync(`${file}.new`, lines.join(''), { mode: 0o600 });
  give(`${file}.new`, account);
  renameSync(`${file}.new`, file); // a server that is just reading sees the old or the new file, never half a one

  const main = join(dir, 'postgresql.conf');
  const include = `include_if_exists = '${fileName}'`;
  if (existsSync(main) && !readFileSync(main, 'utf8').includes(include)) appendFileSync(main, `\n${include}\n`);
}

/** PostgreSQL reads backslash escapes in these strings too. */
const quote = (value: string) => `'${value.replaceAll('\\', '\\\\').replaceAll("'", "''")}'`;
