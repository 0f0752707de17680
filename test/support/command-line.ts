import { execFile } from 'node:child_process';
import { join } from 'node:path';
import { promisify } from 'node:util';
import { projectRoot } from '../../src/paths.js';
import type { Settings } from '../../src/settings.js';
import { environmentOf } from './environment.js';
import { lateOptimizing } from './late-optimizing.js';
import type { TestDatabase } from './workspace.js';

export interface CommandResult {
  readonly stdout: string;
  readonly stderr: string;
  readonly code: number;
}

/** Runs the program in the folder as an operator does: with arguments and settings in the environment, and with nothing else. */
export function commandLine(
  args: string[],
  settings: Partial<Settings> = {},
  root = projectRoot,
  main = 'dist/src/main.js',
): Promise<CommandResult> {
  const options = { env: { PATH: process.env.PATH, ...environmentOf(settings) } };
  return promisify(execFile)(process.execPath, [...lateOptimizing, join(root, main), ...args], options).then(
    ({ stdout, stderr }) => ({ stdout, stderr, code: 0 }),
    ({ stdout, stderr, code }: CommandResult) => ({ stdout, stderr, code }),
  );
}

/** The settings that lead to the test's database, also as an admin. */
export function connections({ settings }: TestDatabase): Partial<Settings> {
  const { replicaUrls, primaryUrls, dataKeys, adminUrl } = settings;
  return { replicaUrls, primaryUrls, dataKeys, adminUrl };
}
