import type pg from 'pg';
import { loadResources } from '../definition/load.js';
import { asAdmin } from '../postgres/admin.js';
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
  type SqlFile,
  wallFiles,
} from './sql-files.js';
import { dropViews, replaceViews } from './views.js';

/** The folders of the views and of the definitions, and a listener to each committed change, such as "applied core/001_roles.sql". */
export interface MigrateOptions extends LockOptions {
  readonly viewsDir?: string;
  readonly resourcesDir?: string;
  readonly onChange?: (change: string) => void;
}

/**
 * Applies the files of sql/core that the database lacks, and replaces the views whose file or definition differs from the
 * database's. Throws MigrationFailed, StartRefused for definitions with flaws, or pg's error when it cannot connect.
 */
export async function migrate(
  adminUrl: string,
  { onChange = () => undefined, ...options }: MigrateOptions = {},
): Promise<void> {
  const views = viewFiles(options);
  await locked(adminUrl, options, async (client) => {
    const { files } = await unchangedCore(client);
    await applyCore(adminUrl, files, (file) => onChange(`applied ${file}`));
    const changes = differences(await fileStates(client, viewRoots, views));
    if (changes.length === 0) return;
    await replaceViews(client, views);
    onChange(`replaced the views: ${changes.join(', ')}`);
  });
}

/** The changes that `migrate` would make, in words; refuses what `migrate` would refuse. */
export async function plannedChanges(adminUrl: string, options: MigrateOptions = {}): Promise<string[]> {
  const views = viewFiles(options);
  return asAdmin(adminUrl, async (client) => {
    const { pending } = await unchangedCore(client);
    const changes = differences(await fileStates(client, viewRoots, views));
    return [
      ...pending.map((file) => `would apply ${file}`),
      ...(changes.length === 0 ? [] : [`would replace the views: ${changes.join(', ')}`]),
    ];
  });
}

/** Every file with its state, such as "pending core/001_roles.sql". */
export async function listFiles(adminUrl: string, options: MigrateOptions = {}): Promise<string[]> {
  const [core, views] = [readSqlFiles('core', coreDir), viewFiles(options)];
  return asAdmin(adminUrl, async (client) => [
    ...(await fileStates(client, ['core'], core)),
    ...(await fileStates(client, viewRoots, views)),
  ]).then((states) => states.map(({ root, name, state }) => `${state} ${root}/${name}`));
}

/** Creates the views, or creates them again, whether their files changed or not. */
export async function createViews(adminUrl: string, options: MigrateOptions = {}): Promise<void> {
  const views = viewFiles(options);
  await locked(adminUrl, options, async (client) => {
    const { pending } = await unchangedCore(client);
    if (pending.length > 0)
      throw new MigrationFailed(`Run \`migrate\` first: the database lacks ${pending.join(', ')}.`);
    await replaceViews(client, views, { all: true });
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

const viewRoots = ['views', 'gateway'] as const;

/** The operator's views, and those of the roles over them. */
function viewFiles({ viewsDir = defaultViewsDir, resourcesDir = '' }: MigrateOptions): SqlFile[] {
  return [...readSqlFiles('views', viewsDir), ...wallFiles(loadResources(resourcesDir))];
}

/** Such as "views/klanten.sql changed". */
function differences(states: readonly FileState[]): string[] {
  return states.filter(({ state }) => state !== 'applied').map(({ root, name, state }) => `${root}/${name} ${state}`);
}
