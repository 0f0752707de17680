import { readdirSync, readFileSync, writeFileSync } from 'node:fs';

/** /proc counts CPU time in hundredths of a second (USER_HZ). */
const msPerTick = 10;

/** CPU time a process has used so far, user and system, in milliseconds (proc_pid_stat(5), fields 14 and 15). */
export function cpuMsOf(pid: number): number {
  const fields = statOf(pid);
  return fields === null ? Number.NaN : (ticks(fields, 14) + ticks(fields, 15)) * msPerTick;
}

/** The same for a process and all its children, those that have ended included: a PostgreSQL server. */
export function treeCpuMsOf(pid: number): number {
  const root = statOf(pid);
  if (root === null) return Number.NaN;
  let sum = ticks(root, 14) + ticks(root, 15) + ticks(root, 16) + ticks(root, 17);
  for (const name of readdirSync('/proc')) {
    if (!/^\d+$/.test(name)) continue;
    const fields = statOf(Number(name));
    if (fields !== null && ticks(fields, 4) === pid) sum += ticks(fields, 14) + ticks(fields, 15);
  }
  return sum * msPerTick;
}

/** Process ids of the children of a process that run. */
export function childrenOf(pid: number): number[] {
  const pids = readdirSync('/proc').filter((name) => /^\d+$/.test(name));
  return pids.map(Number).filter((child) => ticks(statOf(child) ?? [], 4) === pid);
}

/** CPU time of a process's children that have ended. */
export function cpuMsOfEndedChildren(pid: number): number {
  const fields = statOf(pid);
  return fields === null ? Number.NaN : (ticks(fields, 16) + ticks(fields, 17)) * msPerTick;
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

/** The most it had since `resetPeak`. */
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
