import { spawn } from 'node:child_process';
import { readdirSync, readFileSync, writeFileSync } from 'node:fs';
import { setPriority } from 'node:os';
import { setTimeout as sleep } from 'node:timers/promises';
import { fileURLToPath } from 'node:url';

/** A process of the benchmark. Its stderr goes to that of the benchmark; its stdout does not. */
export interface Child {
  readonly pid: number;
  readonly running: boolean;
  /** Sends SIGTERM, and SIGKILL when that does not help in time. */
  stop(): Promise<void>;
}

const stopMsMax = 30_000;
/** /proc counts processor time in hundredths of a second (USER_HZ). */
const msPerTick = 10;

/** Runs a program of Node's, or any other when `program` is a path. */
export function startChild(program: URL | string, args: readonly string[], env: NodeJS.ProcessEnv): Child {
  const [file, all] = commandOf(program, args);
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
    async stop() {
      if (!isRunning()) return;
      child.kill('SIGTERM');
      await Promise.race([ended, sleep(stopMsMax, undefined, { ref: false })]);
      if (isRunning()) child.kill('SIGKILL');
      await ended;
    },
  };
}

/**
 * Runs a program of Node's with a JSON value as its argument, and resolves with the JSON value that it prints. `priority` is that of
 * setpriority(2), 19 the lowest.
 */
export async function runToEnd<T>(program: URL, argument: unknown, priority = 0): Promise<T> {
  return JSON.parse(await outputOf(program, [JSON.stringify(argument)], { priority })) as T;
}

/** Runs a program to its end and resolves with its stdout. */
export async function outputOf(
  program: URL | string,
  args: readonly string[],
  { env = {}, priority = 0 }: { env?: NodeJS.ProcessEnv; priority?: number } = {},
): Promise<string> {
  const [file, all] = commandOf(program, args);
  const detached = priority !== 0;
  const child = spawn(file, all, { env: { ...process.env, ...env }, stdio: ['ignore', 'pipe', 'inherit'], detached });
  if (child.pid !== undefined && detached) lowerPriority(child.pid, priority);
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

function commandOf(program: URL | string, args: readonly string[]): [file: string, args: readonly string[]] {
  return program instanceof URL ? [process.execPath, [fileURLToPath(program), ...args]] : [program, args];
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

/** Processor time a process has used so far, user and system, in milliseconds (proc_pid_stat(5), fields 14 and 15). */
export function cpuMsOf(pid: number): number {
  const fields = statOf(pid);
  return fields === null ? Number.NaN : (ticks(fields, 14) + ticks(fields, 15)) * msPerTick;
}

/** Counts processor time of a process and all its children, including ended ones: a PostgreSQL server. */
export function treeCpuMsOf(pid: number): number {
  const root = statOf(pid);
  if (root === null) return Number.NaN;
  let sum = ticks(root, 14) + ticks(root, 15) + ticks(root, 16) + ticks(root, 17);
  for (const name of readdirSync('/proc')) {
    const fields = /^\d+$/.test(name) ? statOf(Number(name)) : null;
    if (fields !== null && ticks(fields, 4) === pid) sum += ticks(fields, 14) + ticks(fields, 15);
  }
  return sum * msPerTick;
}

/** The environment with which a process was started (proc_pid_environ(5)). */
export function environmentOf(pid: number): NodeJS.ProcessEnv {
  const entries = readFileSync(`/proc/${pid}/environ`, 'utf8').split('\0').filter(Boolean);
  return Object.fromEntries(entries.map((entry) => entry.split(/=(.*)/s).slice(0, 2)));
}

/** Memory a process has in RAM now, in MB (10⁶ bytes). */
export function rssMbOf(pid: number): number {
  return statusMb(pid, 'VmRSS');
}

/** The most memory since `resetPeak`. */
export function peakMbOf(pid: number): number {
  return statusMb(pid, 'VmHWM');
}

/** Starts a new peak (proc_pid_clear_refs(5)). */
export function resetPeak(pid: number): void {
  writeFileSync(`/proc/${pid}/clear_refs`, '5');
}

/** Fields by their number in the manual, from 1; the second is the name, which may hold spaces. */
function statOf(pid: number): string[] | null {
  try {
    const text = readFileSync(`/proc/${pid}/stat`, 'latin1');
    return ['', String(pid), '', ...text.slice(text.lastIndexOf(')') + 2).split(' ')];
  } catch {
    return null; // it has ended, or this is not Linux
  }
}

function ticks(fields: readonly string[], number: number): number {
  return Number(fields[number]);
}

function statusMb(pid: number, name: string): number {
  const line = new RegExp(`^${name}:\\s+(\\d+) kB`, 'm').exec(readFileSync(`/proc/${pid}/status`, 'latin1'));
  return line === null ? Number.NaN : (Number(line[1]) * 1024) / 1e6;
}
