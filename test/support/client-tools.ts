import { execFile, spawnSync } from 'node:child_process';
import { existsSync, mkdtempSync, rmSync, symlinkSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { promisify } from 'node:util';
import { projectRoot } from '../../src/base/paths.js';

export const toolsFolder = join(projectRoot, 'test/tools');
export const toolsInstalled = existsSync(join(toolsFolder, 'node_modules'));
export const toolsMissing = toolsInstalled ? '' : ' (skipped: run npm install --prefix test/tools)';

export interface ProgramOptions {
  readonly env?: Readonly<Record<string, string>>;
  readonly cwd?: string;
}

export async function output(program: string, args: readonly string[], options: ProgramOptions = {}): Promise<string> {
  const { PATH, HOME } = process.env;
  const { stdout } = await promisify(execFile)(program, args, {
    cwd: options.cwd ?? toolsFolder,
    env: { PATH, HOME, ...options.env },
    timeout: 120_000,
    maxBuffer: 64 * 1024 * 1024,
  }).catch((error: Error & { stdout: string; stderr: string }) => {
    throw new Error(`${error.message}\n${error.stdout}${error.stderr}`);
  });
  return stdout;
}

export function programMissing(program: string, ...args: readonly string[]): string {
  return spawnSync(program, args).status === 0 ? '' : ` (skipped: ${program} ${args.join(' ')} fails on this machine)`;
}

export function tool(name: string): string {
  return join(toolsFolder, 'node_modules/.bin', name);
}

const folders: string[] = [];
process.once('exit', () => folders.map((folder) => rmSync(folder, { recursive: true })));

/** Makes a folder of files with the packages beside them, which goes with the process. */
export function workFolder(files: Readonly<Record<string, string>>, packages = toolsFolder): string {
  const folder = mkdtempSync(join(tmpdir(), 'gateway-clients-'));
  folders.push(folder);
  symlinkSync(join(packages, 'node_modules'), join(folder, 'node_modules'));
  for (const [name, text] of Object.entries(files)) writeFileSync(join(folder, name), text);
  return folder;
}
