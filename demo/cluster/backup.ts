import { createReadStream, createWriteStream } from 'node:fs';
import { chown, mkdir, readdir, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { pipeline } from 'node:stream/promises';
import type pg from 'pg';
import type { Account } from './binaries.js';

/** Folders that a copy must have, but empty (the list of pg_basebackup). */
const emptied = new Set(
  'pg_wal pg_replslot pg_dynshmem pg_notify pg_serial pg_snapshots pg_stat_tmp pg_subtrans'.split(' '),
);
const skipped = /^(postmaster\.(pid|opts)|backup_label.*|tablespace_map.*|pg_internal\.init.*|pgsql_tmp.*|.*\.signal)$/;
/** Copied after all else, as pg_basebackup does: a copy is consistent no earlier than its control file says. */
const controlFile = join('global', 'pg_control');

/**
 * Copies a running server's data directory into a new folder, ready to start as its standby: the low-level backup of the
 * PostgreSQL documentation § 25.3.4. The client must stay connected until the standby streams: its temporary
 * replication slot (named after the standby) keeps the WAL that the copy lacks.
 */
export async function copyAsStandby(client: pg.Client, from: string, to: string, name: string, account?: Account) {
  await client.query('select pg_create_physical_replication_slot($1, true, true)', [`copy_for_${name}`]);
  await client.query('select pg_backup_start($1, true)', [name]);
  await copyFolder(from, to, '', account);
  await copyOne(join(from, controlFile), join(to, controlFile), account);
  const stopped = await client.query<{ labelfile: string }>('select labelfile from pg_backup_stop(false)');
  await write(join(to, 'backup_label'), stopped.rows[0]?.labelfile ?? '', account);
  await write(join(to, 'standby.signal'), '', account);
}

async function copyFolder(from: string, to: string, path: string, account: Account | undefined): Promise<void> {
  const folder = join(to, path);
  await mkdir(folder, { mode: 0o700 });
  if (account) await chown(folder, account.uid, account.gid);
  if (emptied.has(path)) return;
  const entries = (await readdir(join(from, path), { withFileTypes: true })).filter(({ name }) => !skipped.test(name));
  const files = entries.filter((entry) => entry.isFile()).map(({ name }) => join(path, name));
  // Side by side within one folder (some 300 files); Node's thread pool bounds how many really are.
  await Promise.all(
    files.filter((file) => file !== controlFile).map((file) => copyOne(join(from, file), join(to, file), account)),
  );
  for (const entry of entries) if (entry.isDirectory()) await copyFolder(from, to, join(path, entry.name), account);
}

/** By streams: fs.copyFile repeats sendfile for ever when the server makes the file shorter meanwhile (VACUUM does). */
async function copyOne(from: string, to: string, account: Account | undefined): Promise<void> {
  try {
    await pipeline(createReadStream(from), createWriteStream(to, { mode: 0o600 }));
    if (account) await chown(to, account.uid, account.gid);
  } catch (fault) {
    // Dropped by the server meanwhile; replay drops it in the copy as well.
    if ((fault as NodeJS.ErrnoException).code !== 'ENOENT') throw fault;
  }
}

async function write(file: string, text: string, account: Account | undefined): Promise<void> {
  await writeFile(file, text, { mode: 0o600 });
  if (account) await chown(file, account.uid, account.gid);
}
