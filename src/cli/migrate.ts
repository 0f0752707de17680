import { createInterface } from 'node:readline/promises';
import { createIndexes } from '../operate/migrate/indexes.js';
import {
  addWallKey,
  dropOtherWallKeys,
  dropViewsOf,
  type LockOptions,
  listFiles,
  migrate,
  repair,
} from '../operate/migrate/migrations.js';
import { listInstalled, uninstall } from '../operate/migrate/uninstall.js';
import { loadResources } from '../resource/definition/load.js';
import { loadSettings } from '../settings.js';
import {
  Failure,
  makeCommand,
  makeOptions,
  parseNames,
  parseWholeNumber,
  printError,
  printLine,
  UsageError,
} from './command.js';
import { readAdminUrl, readSettingsOfApp, requireViews } from './required-settings.js';

const shared = { views: { type: 'string' }, wait: { type: 'string', default: '60' } } as const;

async function removeGateway(isAgreed: boolean): Promise<number> {
  const installed = await listInstalled(readAdminUrl());
  if (installed.length === 0) {
    printLine('nothing to do');
    return 0;
  }
  printLine('This removes for good:');
  for (const each of installed) printLine(`- ${each}`);
  if (!(isAgreed || (await agrees())))
    throw new Failure('Nothing was changed. To agree without being asked, add --yes.');
  await uninstall(readAdminUrl(), printLine);
  return 0;
}

async function agrees(): Promise<boolean> {
  if (!process.stdin.isTTY) return false;
  const terminal = createInterface({ input: process.stdin, output: process.stderr });
  const answer = await terminal.question('Are all gateways of this database stopped, and shall this go? Type yes: ');
  terminal.close();
  return answer.trim() === 'yes';
}

type Note = (change: string) => void;

/** Options that replace the migration; they need no file of the app. */
const otherActions = {
  uninstall: ({ yes }: MigrateFlags) => removeGateway(yes === true),
  repair: async ({ wait }: MigrateFlags, note: Note) => {
    for (const change of await repair(readAdminUrl(), parseLockOptions(wait))) note(change);
  },
  'wall-key': async ({ wait }: MigrateFlags, note: Note) => {
    const { wallKey } = loadSettings(process.env);
    const [changes, keys] = await addWallKey(readAdminUrl(), wallKey, parseLockOptions(wait));
    for (const change of changes) note(change);
    for (const key of keys) printLine(key);
  },
  'retire-wall-keys': async ({ force, wait }: MigrateFlags, note: Note) => {
    const { wallKey } = loadSettings(process.env);
    const gone = await dropOtherWallKeys(readAdminUrl(), wallKey, force === true, parseLockOptions(wait));
    if (gone.length > 0) note(`retired the key ${gone.join(', ')} of the tenant wall`);
  },
} as const;

type MigrateFlags = { readonly wait: string; readonly yes?: boolean; readonly force?: boolean };
const choices = ['list', 'pending', 'indexes', 'uninstall', 'repair', 'wall-key', 'retire-wall-keys'] as const;
const migrateOptions = { ...shared, ...makeOptions('boolean', ...choices, 'force', 'yes') };

export const migrateCommand = makeCommand(migrateOptions, async (options) => {
  const [choice, another] = choices.filter((name) => options[name]);
  if (another) throw new UsageError(`Give one of ${choices.map((name) => `--${name}`).join(', ')}.`);
  if (options.yes && !options.uninstall) throw new UsageError('--yes goes with --uninstall.');
  if (options.force && !options['retire-wall-keys']) throw new UsageError('--force goes with --retire-wall-keys.');
  let changes = 0;
  const note = (change: string): void => {
    changes++;
    printLine(change);
  };
  const run = Object.entries(otherActions).find(([name]) => name === choice)?.[1];
  if (run) {
    const code = await run(options, note);
    if (changes === 0 && code === undefined) printLine('nothing to do');
    return code ?? 0;
  }
  const viewsDir = requireViews(options.views);
  const wait = parseLockOptions(options.wait);
  if (choice === 'indexes')
    await createIndexes(readAdminUrl(), { viewsDir, onCreated: (name) => note(`created ${name}`), ...wait });
  else {
    const { resourcesDir, wallKey, registerMonths } = readSettingsOfApp();
    const files = { viewsDir, resourcesDir, wallKey, registerMonths };
    loadResources(resourcesDir);
    if (choice !== undefined) return printStates(await listFiles(readAdminUrl(), files), choice === 'list');
    await migrate(readAdminUrl(), { ...files, onChange: note, ...wait });
  }
  if (changes === 0) printLine('nothing to do');
  return 0;
});

/** Leaves out files of a newer version: they stay. */
function printStates(states: readonly string[], isWhole: boolean): number {
  const files = states.filter((file) => isWhole || !/^applied |^removed core\//.test(file));
  for (const file of files) printLine(file);
  if (files.length === 0) printLine('nothing to do');
  return files.length === 0 || isWhole ? 0 : 1;
}

const viewsOptions = {
  ...shared,
  ...makeOptions('boolean', 'drop', 'create'),
  ...makeOptions('string', 'tables'),
};

export const viewsCommand = makeCommand(viewsOptions, async ({ drop, create, views, tables, ...options }) => {
  if ((drop === true) === (create === true)) throw new UsageError('Give --drop or --create.');
  if (drop && views !== undefined) throw new UsageError('--drop takes no --views: it drops what was created.');
  if (create && tables !== undefined) throw new UsageError('--tables goes with --drop.');
  const wait = parseLockOptions(options.wait);
  if (drop) {
    const names = tables === undefined ? null : parseNames(tables);
    const files = await dropViewsOf(readAdminUrl(), names, wait);
    printLine(files.length > 0 ? `dropped the views: ${files.join(', ')}` : 'nothing to do: no view reads them');
  } else {
    const viewsDir = requireViews(views);
    const { resourcesDir, wallKey } = readSettingsOfApp();
    loadResources(resourcesDir);
    await migrate(readAdminUrl(), { viewsDir, resourcesDir, wallKey, ...wait });
    printLine('created the views');
  }
  return 0;
});

/** Reads the seconds of --wait; a wait is announced on stderr. */
function parseLockOptions(seconds: string): LockOptions {
  return { waitMs: parseWholeNumber('--wait', seconds, 0, 86_400) * 1000, onWait: printError };
}
