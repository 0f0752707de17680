import type pg from 'pg';
import { asAdmin } from '../db/admin.js';
import { applyCore, unchangedCore } from './core.js';
import { type LockOptions, lock } from './lock.js';
import {
  coreDir,
  defaultViewsDir,
  type FileState,
  fileStates,
  MigrationFailed,
  prepare,
  readSqlFiles,
} from './sql-files.js';
import { dropViews, replaceViews } from './views.js';

/** The folder of the views, and a listener to each committed change, such as "applied core/001_roles.sql". */
export interface MigrateOptions extends LockOptions {
  readonly viewsDir?: string;
  readonly onChange?: (change: string) => void;
}

/**
 * Applies the files of sql/core that the database lacks, and replaces the views when a file of them differs from the
 * database's. Throws MigrationFailed, or pg's error when it cannot connect.
 */
export async function migrate(
  adminUrl: string,
  { viewsDir = defaultViewsDir, onChange = () => undefined, ...wait }: MigrateOptions = {},
): Promise<void> {
  const views = readSqlFiles('views', viewsDir);
  await locked(adminUrl, wait, async (client) => {
    const { files } = await unchangedCore(client);
    await applyCore(adminUrl, files, (file) => onChange(`applied ${file}`));
    const changes = differences(await fileStates(client, 'views', views));
    if (changes.length === 0) return;
    await replaceViews(client, views);
    onChange(`replaced the views: ${changes.join(', ')}`);
  });
}

/** The changes that `migrate` would make, in words; refuses what `migrate` would refuse. */
export async function plannedChanges(adminUrl: string, viewsDir = defaultViewsDir): Promise<string[]> {
  const views = readSqlFiles('views', viewsDir);
  return asAdmin(adminUrl, async (client) => {
    const { pending } = await unchangedCore(client);
    const changes = differences(await fileStates(client, 'views', views));
    return [
      ...pending.map((file) => `would apply ${file}`),
      ...(changes.length === 0 ? [] : [`would replace the views: ${changes.join(', ')}`]),
    ];
  });
}

/** Every file of both roots with its state, such as "pending core/001_roles.sql". */
export async function listFiles(adminUrl: string, viewsDir = defaultViewsDir): Promise<string[]> {
  const [core, views] = [readSqlFiles('core', coreDir), readSqlFiles('views', viewsDir)];
  return asAdmin(adminUrl, async (client) => [
    ...(await fileStates(client, 'core', core)).map(({ name, state }) => `${state} core/${name}`),
    ...(await fileStates(client, 'views', views)).map(({ name, state }) => `${state} views/${name}`),
  ]);
}

/** Creates the views, or creates them again, whether their files changed or not. */
export async function createViews(
  adminUrl: string,
  { viewsDir = defaultViewsDir, ...wait }: MigrateOptions = {},
): Promise<void> {
  const views = readSqlFiles('views', viewsDir);
  await locked(adminUrl, wait, async (client) => {
    const { pending } = await unchangedCore(client);
    if (pending.length > 0)
      throw new MigrationFailed(`Run \`migrate\` first: the database lacks ${pending.join(', ')}.`);
    await replaceViews(client, views);
  });
}

/** Drops all that the files of the views created. */
export async function dropAllViews(adminUrl: string, wait: LockOptions = {}): Promise<void> {
  await locked(adminUrl, wait, dropViews);
}

function locked(adminUrl: string, wait: LockOptions, work: (client: pg.Client) => Promise<void>): Promise<void> {
  return asAdmin(adminUrl, async (client) => {
    await lock(client, wait);
    await prepare(client);
    await work(client);
  });
}

/** Such as "klanten.sql changed". */
function differences(states: readonly FileState[]): string[] {
  return states.filter(({ state }) => state !== 'applied').map(({ name, state }) => `${name} ${state}`);
}
