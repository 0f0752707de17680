import { type ChildProcess, spawn } from 'node:child_process';
import { join } from 'node:path';
import { projectRoot } from '../../src/paths.js';
import type { Settings } from '../../src/settings.js';
import { environmentOf, tuningFlags } from './environment.js';
import { lateOptimizing } from './late-optimizing.js';

/** A `serve` of its own process, as an operator runs it. */
export interface ServeProcess {
  readonly child: ChildProcess;
  readonly url: string;
  readonly opsUrl: string;
  /** Everything it wrote to stdout and stderr so far. */
  output(): string;
  /** Sends the signal and resolves with the exit code; null when the signal ended it. */
  stop(signal?: NodeJS.Signals): Promise<number | null>;
}

/** Starts `serve` with the settings as environment; rejects with its output when it ends before it serves. `onSpawn` gets the process at once. */
export async function serveProcess(
  settings: Partial<Settings>,
  onSpawn: (child: ChildProcess) => void = () => undefined,
): Promise<ServeProcess> {
  const flags = [...lateOptimizing, ...tuningFlags(settings)];
  const child = spawn(process.execPath, [...flags, join(projectRoot, 'dist/src/main.js'), 'serve'], {
    env: { PATH: process.env.PATH, ...environmentOf(settings) },
    stdio: ['ignore', 'pipe', 'pipe', 'ipc'],
    detached: true, // a process group of its own, so that no worker outlives it and holds the pipes open
  });
  onSpawn(child);
  let output = '';
  for (const stream of [child.stdout, child.stderr])
    stream?.on('data', (chunk: Buffer) => (output += chunk.toString()));
  const exited = new Promise<number | null>((resolve) => {
    child.once('exit', (code) => {
      killGroup(child.pid as number);
      resolve(code);
    });
  });
  const ready = new Promise<{ url: string; opsUrl: string }>((resolve, reject) => {
    child.on('message', (message: { type: string; url: string; opsUrl: string }) => {
      if (message.type === 'ready') resolve(message);
    });
    void exited.then((code) => reject(new Error(`serve ended with ${code}:\n${output}`)));
  });
  const { url, opsUrl } = await ready;
  const stop = (signal: NodeJS.Signals = 'SIGTERM'): Promise<number | null> => {
    child.kill(signal);
    return exited;
  };
  return { child, url, opsUrl, output: () => output, stop };
}

/** Kills a process that was started detached, and all that it started in its group. */
export function killGroup(leader: number): void {
  try {
    process.kill(-leader, 'SIGKILL');
  } catch {
    // All of them have ended.
  }
}
