import { AsyncLocalStorage } from 'node:async_hooks';
import { execFile } from 'node:child_process';
import { join } from 'node:path';
import { promisify } from 'node:util';
import { projectRoot } from '../../src/base/paths.js';
import { adoptCommand } from '../../src/cli/adopt.js';
import { checkCommand } from '../../src/cli/check.js';
import type { Command } from '../../src/cli/command.js';
import { docsCommand } from '../../src/cli/docs.js';
import { exportCommand } from '../../src/cli/export.js';
import { migrateCommand, viewsCommand } from '../../src/cli/migrate.js';
import { runForExitCode } from '../../src/cli/program.js';
import { runTokens } from '../../src/cli/tokens.js';
import { defaultViewsDir } from '../../src/operate/migrate/sql-files.js';
import type { Settings } from '../../src/settings.js';
import { environmentOf } from './environment.js';
import { lateOptimizing } from './late-optimizing.js';
import type { TestDatabase } from './workspace.js';

export interface CommandResult {
  readonly stdout: string;
  readonly stderr: string;
  readonly code: number;
}

export function programLine(
  args: string[],
  settings: Partial<Settings> = {},
  root = projectRoot,
  main = 'dist/src/main.js',
): Promise<CommandResult> {
  const options = { env: { PATH: process.env.PATH, ...environmentOf(settings) } };
  return promisify(execFile)(process.execPath, [...lateOptimizing, join(root, main), ...withViews(args)], options).then(
    ({ stdout, stderr }) => ({ stdout, stderr, code: 0 }),
    ({ stdout, stderr, code }: CommandResult) => ({ stdout, stderr, code }),
  );
}

/** Adds the views of the reference app, unless there are others. */
export function withViews(args: string[]): string[] {
  const isWithout = (args[0] === 'migrate' || args.includes('--create')) && !args.includes('--views');
  return isWithout && !args.includes('--help') ? [...args, '--views', defaultViewsDir] : args;
}

const commands: Readonly<Record<string, Command>> = {
  adopt: adoptCommand,
  check: checkCommand,
  docs: docsCommand,
  export: exportCommand,
  migrate: migrateCommand,
  tokens: runTokens,
  views: viewsCommand,
};

interface Running {
  readonly env: NodeJS.ProcessEnv;
  stdout: string;
  stderr: string;
}
const running = new AsyncLocalStorage<Running>();

/** Runs these commands in this process: loading the program takes half a second of the processor. */
export async function commandLine(args: string[], settings: Partial<Settings> = {}): Promise<CommandResult> {
  const [name = ''] = args;
  if (!(name in commands)) return programLine(args, settings);
  const own: Running = { env: environmentOf(settings), stdout: '', stderr: '' };
  const usage = { called: `workspace-data-gateway ${name}`, help: `config/help/${name}.txt` };
  const code = await running.run(own, () => runForExitCode(usage, withViews(args).slice(1), commands[name] as Command));
  return { stdout: own.stdout, stderr: own.stderr, code };
}

const { env } = process;
Object.defineProperty(process, 'env', { get: () => running.getStore()?.env ?? env });
for (const stream of ['stdout', 'stderr'] as const) {
  const write = process[stream].write.bind(process[stream]) as (...args: unknown[]) => boolean;
  process[stream].write = (text: unknown, ...rest: unknown[]) => {
    const own = running.getStore();
    if (own === undefined) return write(text, ...rest);
    own[stream] += String(text);
    const done = rest.at(-1);
    if (typeof done === 'function') done();
    return true;
  };
}

export function connections({ settings }: TestDatabase): Partial<Settings> {
  const { replicaUrls, primaryUrls, dataKeys, wallKey, adminUrl } = settings;
  return { replicaUrls, primaryUrls, dataKeys, wallKey, adminUrl };
}
