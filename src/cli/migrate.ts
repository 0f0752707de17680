import { createInterface } from 'node:readline/promises';
import { createIndexes } from '../operate/migrate/indexes.js';
import { dropOtherWallKeys, dropViewsOf, type LockOptions, listFiles, migrate } from '../operate/migrate/migrations.js';
import { defaultViewsDir } from '../operate/migrate/sql-files.js';
import { listInstalled, uninstall } from '../operate/migrate/uninstall.js';
import { loadResources } from '../resource/definition/load.js';
import { loadSettings } from '../serve/settings.js';
import { adminUrl } from './admin.js';
import { command, errLine, Failure, outLine, UsageError, wholeNumber } from './command.js';

const flag = { type: 'boolean' } as const;
const shared = { views: { type: 'string' }, wait: { type: 'string', default: '60' } } as const;

async function removeGateway(isAgreed: boolean): Promise<number> {
  const installed = await listInstalled(adminUrl());
  if (installed.length === 0) {
    outLine('nothing to do');
    return 0;
  }
  outLine('This removes for good:');
  for (const each of installed) outLine(`- ${each}`);
  if (!(isAgreed || (await agrees())))
    throw new Failure('Nothing was changed. To agree without being asked, add --yes.');
  await uninstall(adminUrl(), outLine);
  return 0;
}

async function agrees(): Promise<boolean> {
  if (!process.stdin.isTTY) return false;
  const asking = createInterface({ input: process.stdin, output: process.stderr });
  const answer = await asking.question('Are all gateways of this database stopped, and shall this go? Type yes: ');
  asking.close();
  return answer.trim() === 'yes';
}

export const migrateCommand = command(
  { ...shared, list: flag, pending: flag, indexes: flag, 'retire-wall-keys': flag, uninstall: flag, yes: flag },
  async (given) => {
    const { views: viewsDir = defaultViewsDir, list, pending, indexes, 'retire-wall-keys': retires } = given;
    if ([list, pending, indexes, retires, given.uninstall].filter(Boolean).length > 1)
      throw new UsageError('Give one of --list, --pending, --indexes, --retire-wall-keys and --uninstall.');
    if (given.yes && !given.uninstall) throw new UsageError('--yes goes with --uninstall.');
    if (given.uninstall) return removeGateway(given.yes === true);
    const settings = loadSettings(process.env);
    const { resourcesDir, wallKey } = settings;
    const options = { viewsDir, resourcesDir, wallKey };
    if (!indexes) loadResources(settings.resourcesDir);
    if (list || pending) {
      const isDone = /^applied |^removed core\//; // files of a newer version stay
      const files = (await listFiles(adminUrl(), options)).filter((file) => list || !isDone.test(file));
      for (const file of files) outLine(file);
      if (files.length === 0) outLine('nothing to do');
      return files.length === 0 || list ? 0 : 1;
    }
    const wait = lockOptions(given.wait);
    let changes = 0;
    const note = (change: string): void => {
      changes++;
      outLine(change);
    };
    if (indexes) await createIndexes(adminUrl(), { viewsDir, onCreated: (name) => note(`created ${name}`), ...wait });
    else if (retires) {
      const dropped = await dropOtherWallKeys(adminUrl(), wallKey, wait);
      if (dropped > 0) note(`dropped ${dropped} other key of the tenant wall`);
    } else await migrate(adminUrl(), { ...options, onChange: note, ...wait });
    if (changes === 0) outLine('nothing to do');
    return 0;
  },
);

const ofViews = { ...shared, drop: flag, create: flag, tables: { type: 'string' } } as const;

export const viewsCommand = command(ofViews, async ({ drop, create, views, tables, ...given }) => {
  if ((drop === true) === (create === true)) throw new UsageError('Give --drop or --create.');
  if (drop && views !== undefined) throw new UsageError('--drop takes no --views: it drops what was created.');
  if (create && tables !== undefined) throw new UsageError('--tables goes with --drop.');
  const { resourcesDir, wallKey } = loadSettings(process.env);
  const wait = lockOptions(given.wait);
  if (drop) {
    const names = tables?.split(',').map((name) => name.trim()) ?? null;
    const files = await dropViewsOf(adminUrl(), names, wait);
    outLine(files.length > 0 ? `dropped the views: ${files.join(', ')}` : 'nothing to do: no view reads them');
  } else {
    loadResources(resourcesDir);
    await migrate(adminUrl(), { viewsDir: views ?? defaultViewsDir, resourcesDir, wallKey, ...wait });
    outLine('created the views');
  }
  return 0;
});

/** The value of --wait in seconds; a wait is announced on stderr. */
function lockOptions(seconds: string): LockOptions {
  return { waitMs: wholeNumber('--wait', seconds, 0, 86_400) * 1000, onWait: errLine };
}
