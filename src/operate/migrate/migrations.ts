import { join } from 'node:path';
import { setTimeout as sleep } from 'node:timers/promises';
import type pg from 'pg';
import { projectRoot, readProject } from '../../base/paths.js';
import { runAsAdmin } from '../../postgres/admin.js';
import { lockNotAvailable } from '../../postgres/database-errors.js';
import { loadResources } from '../../resource/definition/load.js';
import { repairCore } from './repair.js';
import {
  createMigrationTables,
  createObjects,
  defaultViewsDir,
  explainRefusal,
  listWallFiles,
  MigrationFailed,
  noteApplied,
  noteCoreObjects,
  readFileStates,
  readSqlFiles,
  runInTransaction,
  type SqlFile,
} from './sql-files.js';
import { hasKeyTable, listWallKeys, requireWallKey, retireWallKeys, storeWallKey } from './stored-wall-keys.js';
import { dropViews, replaceViews } from './views.js';

export interface LockOptions {
  readonly waitMs?: number | undefined;
  readonly onWait?: ((sentence: string) => void) | undefined;
}

/** A value that is '' or 0 leaves what the database has. `onChange` gets each committed change, such as "applied core/001_roles.sql". */
export interface MigrateOptions extends LockOptions {
  readonly viewsDir?: string;
  readonly resourcesDir?: string;
  readonly wallKey?: string;
  readonly registerMonths?: number | undefined;
  readonly onChange?: (change: string) => void;
}

const coreDir = join(projectRoot, 'sql/core');
const viewRoots = ['views', 'gateway'] as const;

/** Commits each file of sql/core in turn, then all changed views. Throws MigrationFailed, StartRefused for flawed definitions. */
export async function migrate(
  adminUrl: string,
  { onChange = () => undefined, wallKey = '', registerMonths, ...options }: MigrateOptions = {},
): Promise<void> {
  const views = listViewFiles(options);
  await holdMigrationLock(adminUrl, options, async (client) => {
    await requireWallKey(client, wallKey);
    const pending = await listPendingCore(client, options.onWait ?? (() => undefined));
    for (const file of pending) {
      await runInTransaction(client, roleRetries, async () => {
        await createObjects(client, file.sql).catch((error: unknown) => {
          throw explainRefusal(file, error);
        });
        await noteApplied(client, file);
      });
      onChange(`applied core/${file.name}`);
    }
    if (pending.length > 0) await noteCoreObjects(client);
    for (const change of await storeWallKey(client, wallKey)) onChange(change);
    const setMonths = 'update gateway.register_retention set months = $1 where months <> $1';
    if (registerMonths && (await client.query(setMonths, [registerMonths])).rowCount)
      onChange(`the register of reads keeps ${registerMonths} months`);
    const states = await readFileStates(client, viewRoots, views);
    const changes = states.filter(({ state }) => state !== 'applied');
    if (changes.length === 0) return;
    await replaceViews(client, views);
    onChange(`replaced the views: ${changes.map(({ root, name, state }) => `${root}/${name} ${state}`).join(', ')}`);
  });
}

/** Returns lines such as "pending core/001_roles.sql". */
export async function listFiles(adminUrl: string, options: MigrateOptions = {}): Promise<string[]> {
  const [core, views] = [readSqlFiles('core', coreDir), listViewFiles(options)];
  return runAsAdmin(adminUrl, async (client) => [
    ...(await readFileStates(client, ['core'], core)),
    ...(await readFileStates(client, viewRoots, views)),
  ]).then((states) => states.map(({ root, name, state }) => `${state} ${root}/${name}`));
}

/** Drops the views that read the tables, or all views of records (null). Returns their files. */
export function dropViewsOf(adminUrl: string, tables: readonly string[] | null, wait: LockOptions): Promise<string[]> {
  return holdMigrationLock(adminUrl, wait, (client) => dropViews(client, tables));
}

/** Returns the changes. Throws MigrationFailed before the first `migrate`, and while files of core are pending. */
export function repair(adminUrl: string, wait: LockOptions = {}): Promise<string[]> {
  return holdMigrationLock(adminUrl, wait, async (client) => {
    if ((await listPendingCore(client, () => undefined)).length > 0)
      throw new MigrationFailed('The database lacks files of sql/core: run `migrate` first, which applies them.');
    const changes = await repairCore(client, readSqlFiles('core', coreDir));
    await noteCoreObjects(client);
    return changes;
  });
}

/** Stores only the key. Returns the changes, and the keys of the database. Throws MigrationFailed before the first `migrate`. */
export function addWallKey(adminUrl: string, wallKey: string, wait: LockOptions = {}): Promise<[string[], string[]]> {
  return holdMigrationLock(adminUrl, wait, async (client) => {
    if (!(await hasKeyTable(client)))
      throw new MigrationFailed('The database has no gateway yet: run `migrate`, which stores WALL_KEY as well.');
    await requireWallKey(client, wallKey);
    return [await storeWallKey(client, wallKey), await listWallKeys(client, wallKey)];
  });
}

export function dropOtherWallKeys(
  adminUrl: string,
  wallKey: string,
  isForced: boolean,
  wait: LockOptions = {},
): Promise<string[]> {
  return holdMigrationLock(adminUrl, wait, (client) => retireWallKeys(client, wallKey, isForced));
}

/** The locks are short, because the app waits behind them. Another database of the cluster may change the roles meanwhile. */
const roleRetries = { lockMs: 10_000, pauseMs: 70, attempts: 20, isPassing: isRoleCollision };

/** Two migrations created the same object (42710, 23505, 42P06, 42P07) or altered it (40P01, XX000 of simple_heap_update). */
function isRoleCollision({ code, routine }: { readonly code?: string; readonly routine?: string }): boolean {
  return /^(42710|23505|42P0[67]|40P01)$/.test(code ?? '') || (code === 'XX000' && routine === 'simple_heap_update');
}

/** Throws MigrationFailed when a file changed after it was applied. Accepts files of a newer version. */
async function listPendingCore(client: pg.Client, say: (sentence: string) => void): Promise<SqlFile[]> {
  const files = readSqlFiles('core', coreDir);
  const states = await readFileStates(client, ['core'], files);
  const namesIn = (state: string): string[] => states.filter((file) => file.state === state).map(({ name }) => name);
  const [changed, removed, pending] = [namesIn('changed'), namesIn('removed'), namesIn('pending')];
  if (changed.length > 0)
    throw new MigrationFailed(
      `Changed after the database applied it: core/${changed.join(', core/')}. Restore the text, and write the change as a new file with the next number.`,
    );
  if (removed.length > 0)
    say(`The database has core/${removed.join(', core/')} of a newer version of the gateway: they stay as they are.`);
  return files.filter(({ name }) => pending.includes(name));
}

/** Holds no snapshot, for which CREATE INDEX CONCURRENTLY would wait. */
const lockStatement = `begin; set local idle_in_transaction_session_timeout = 0;
  lock table gateway.migration_lock in share update exclusive mode nowait`;

/** Runs one migration at a time, by a lock that no login of the gateway can take. Throws MigrationFailed with the holder's name. */
export function holdMigrationLock<T>(
  adminUrl: string,
  wait: LockOptions,
  work: (client: pg.Client) => Promise<T>,
): Promise<T> {
  return runAsAdmin(adminUrl, async (holder) => {
    await runInTransaction(holder, roleRetries, () => createMigrationTables(holder));
    await takeLock(holder, wait);
    return runAsAdmin(adminUrl, (client) => {
      holder.once('end', () => void client.end()); // the lock has ended
      return work(client);
    });
  });
}

async function takeLock(holder: pg.Client, { waitMs = 60_000, onWait }: LockOptions): Promise<void> {
  const startedMs = performance.now();
  for (let attempt = 1; ; attempt++) {
    const refusal = await holder.query(lockStatement).then(
      () => null,
      (error: pg.DatabaseError) => error,
    );
    if (refusal === null) return;
    await holder.query('rollback');
    if (refusal.code !== lockNotAvailable) throw refusal;
    const [row] = (await holder.query<{ holder: string }>(readProject('sql/catalog/lock-holder.sql'))).rows;
    const otherHolder = row?.holder ?? 'a process that has just ended';
    if (attempt === 1) onWait?.(`Waiting up to ${waitMs / 1000} s for another migration: ${otherHolder}.`);
    if (performance.now() - startedMs >= waitMs)
      throw new MigrationFailed(
        `Another migration has run for more than ${waitMs / 1000} s: ${otherHolder}. Nothing was changed. Wait for it, or end it with pg_terminate_backend.`,
      );
    await sleep(200);
  }
}

function listViewFiles({ viewsDir = defaultViewsDir, resourcesDir = '' }: MigrateOptions): SqlFile[] {
  return [...readSqlFiles('views', viewsDir), ...listWallFiles(loadResources(resourcesDir))];
}
