import { type ChildProcess, spawn } from 'node:child_process';
import { join } from 'node:path';
import { nodeEnvironment, nodeFlags } from '../../bundle/node-flags.js';
import { projectRoot } from '../../src/base/paths.js';
import type { Settings } from '../../src/settings.js';
import { environmentOf, tuningFlags } from './environment.js';
import { lateOptimizing } from './late-optimizing.js';

export interface ServeProcess {
  readonly child: ChildProcess;
  readonly url: string;
  readonly opsUrl: string;
  readonly exited: Promise<number | string>;
  log(): string;
  stop(signal?: NodeJS.Signals): Promise<number | string>;
}

export interface ServeOptions {
  readonly flags?: readonly string[];
  readonly env?: Readonly<Record<string, string>>;
  readonly main?: string;
  readonly node?: string;
  readonly onSpawn?: (child: ChildProcess) => void;
}

export const asInProduction: ServeOptions = { flags: nodeFlags, env: nodeEnvironment };

export async function serveProcess(
  settings: Partial<Settings>,
  {
    flags = lateOptimizing,
    env = {},
    main = join(projectRoot, 'dist/src/main.js'),
    node = process.execPath,
    onSpawn = () => undefined,
  }: ServeOptions = {},
): Promise<ServeProcess> {
  const args = [...flags, ...tuningFlags(settings), main, 'serve'];
  const child = spawn(node, args, {
    env: { ...env, PATH: process.env.PATH, ...environmentOf(settings) },
    stdio: ['ignore', 'pipe', 'pipe', 'ipc'],
    detached: true, // a process group of its own, so that no worker outlives it and holds the pipes open
  });
  onSpawn(child);
  let output = '';
  for (const stream of [child.stdout, child.stderr])
    stream?.on('data', (chunk: Buffer) => (output += chunk.toString()));
  const exited = new Promise<number | string>((resolve) => {
    child.once('exit', (code, signal) => {
      killGroup(child.pid as number);
      resolve(code ?? signal ?? 'nothing');
    });
  });
  const ready = new Promise<{ url: string; opsUrl: string }>((resolve, reject) => {
    child.on('message', (message: { type: string; url: string; opsUrl: string }) => {
      if (message.type === 'ready') resolve(message);
    });
    void exited.then((end) => reject(new Error(`serve ended with ${end}:\n${output}`)));
  });
  const { url, opsUrl } = await ready;
  const stop: ServeProcess['stop'] = (signal = 'SIGTERM') => {
    child.kill(signal);
    return exited;
  };
  return { child, url, opsUrl, exited, log: () => output, stop };
}

/** Kills a process that was started detached, and all that it started in its group. */
export function killGroup(leader: number): void {
  try {
    process.kill(-leader, 'SIGKILL');
  } catch {
    // All of them have ended.
  }
}
