import { type ChildProcess, spawn } from 'node:child_process';
import { writeFileSync } from 'node:fs';
import { setPriority } from 'node:os';
import { setTimeout as sleep } from 'node:timers/promises';
import { fileURLToPath } from 'node:url';

/** A process of the benchmark. Its stderr goes to that of the benchmark; its stdout does not. */
export interface Child {
  readonly pid: number;
  readonly running: boolean;
  /** SIGTERM, and SIGKILL when that does not help in time. */
  stop(): Promise<void>;
}

const stopMsMax = 30_000;

/** Runs a program of Node's, or any other when `program` is a path. */
export function startChild(program: URL | string, args: readonly string[], env: NodeJS.ProcessEnv): Child {
  const [file, all] = program instanceof URL ? [process.execPath, [fileURLToPath(program), ...args]] : [program, args];
  const child = spawn(file, all, { env: { ...process.env, ...env }, stdio: ['ignore', 'ignore', 'inherit'] });
  const ended = new Promise<void>((resolve) => {
    child.once('exit', () => resolve());
    child.once('error', () => resolve());
  });
  const isRunning = (): boolean => child.pid !== undefined && child.exitCode === null && child.signalCode === null;
  return {
    pid: child.pid ?? 0,
    get running() {
      return isRunning();
    },
    stop: () => stop(child, ended, isRunning),
  };
}

async function stop(child: ChildProcess, ended: Promise<void>, isRunning: () => boolean): Promise<void> {
  if (!isRunning()) return;
  child.kill('SIGTERM');
  await Promise.race([ended, sleep(stopMsMax, undefined, { ref: false })]);
  if (isRunning()) child.kill('SIGKILL');
  await ended;
}

/** Runs a program of Node's to its end and resolves with its stdout. `priority` is that of setpriority(2), 19 the lowest; it holds against every process. */
export async function runToEnd(
  program: URL | string,
  args: readonly string[],
  env: NodeJS.ProcessEnv,
  priority = 0,
): Promise<string> {
  const [file, all] = program instanceof URL ? [process.execPath, [fileURLToPath(program), ...args]] : [program, args];
  const isApart = priority !== 0;
  const child = spawn(file, all, {
    env: { ...process.env, ...env },
    stdio: ['ignore', 'pipe', 'inherit'],
    detached: isApart,
  });
  if (child.pid !== undefined && isApart) lowerPriority(child.pid, priority);
  let output = '';
  child.stdout.setEncoding('utf8').on('data', (text: string) => {
    output += text;
  });
  const code = await new Promise<number | null>((resolve, reject) => {
    child.once('close', resolve);
    child.once('error', reject);
  });
  if (code !== 0) throw new Error(`${file} ended with code ${code}.`);
  return output;
}

/**
 * Sets the priority of a process that is a session of its own. Where Linux groups processes by session, a priority counts within
 * the group only, and the group has its own (sched(7), "The autogroup feature").
 */
function lowerPriority(pid: number, priority: number): void {
  setPriority(pid, priority);
  try {
    writeFileSync(`/proc/${pid}/autogroup`, String(priority));
  } catch {} // the system has no such groups, or /proc cannot be written, as in a container
}
