import { execFile, execFileSync, spawn } from 'node:child_process';
import { closeSync, openSync, readdirSync, readFileSync, readlinkSync, readSync } from 'node:fs';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { promisify } from 'node:util';
import { until } from './wait.js';

/** A process that works on a data directory. Roots are the postmaster and initdb; all others descend from one. */
export interface ServerProcess {
  pid: number;
  root: boolean;
  command: string;
}

/**
 * The processes at work on a data directory, found by command line and descent rather than by postmaster.pid: that file
 * is absent while a server starts, and a stale one may name another program's process. `dir` must be a real path.
 */
export function listProcesses(dir: string): ServerProcess[] {
  const all = process.platform === 'linux' ? listFromProc() : listFromPs();
  const found = new Map<number, ServerProcess>();
  for (const { pid, command, cwd } of all) {
    const root = command.includes(` -D ${dir} `);
    // A backend that outlived its postmaster (it was frozen at the time) is known by its working directory only.
    if (root || cwd() === dir) found.set(pid, { pid, root, command });
  }
  for (let size = -1; size !== found.size; ) {
    size = found.size;
    for (const { pid, parent, command } of all) {
      if (found.has(parent) && !found.has(pid)) found.set(pid, { pid, root: false, command });
    }
  }
  return [...found.values()];
}

/** Sends a signal; false when there is no such process (any more). */
export function sendSignal(pid: number, name: NodeJS.Signals | 0): boolean {
  if (!(pid > 0)) return false; // 0 would mean our own process group
  try {
    return process.kill(pid, name);
  } catch {
    return false;
  }
}

/** Kills everything at work on the directory, as a power cut would. Throws when something is left after 5 s. */
export async function killAll(dir: string): Promise<void> {
  const gone = await until(() => {
    // Stopped first: a running postmaster would start new children when one dies.
    for (const { pid, root } of listProcesses(dir)) if (root) sendSignal(pid, 'SIGSTOP');
    const left = listProcesses(dir);
    for (const { pid } of left) sendSignal(pid, 'SIGKILL');
    return left.length === 0;
  }, 5000);
  if (!gone) throw new Error(`Processes of ${dir} survive SIGKILL: ${listProcesses(dir).map(({ pid }) => pid)}`);
  await releaseSharedMemory(dir);
}

/** Immediate shutdown (SIGQUIT) of whatever works on the directory, also when frozen; SIGKILL after `graceMs`. */
export async function endAll(dir: string, graceMs: number): Promise<void> {
  for (const { pid, root, command } of listProcesses(dir)) {
    if (root) sendSignal(pid, /initdb\b/.test(command.split(' ')[0] ?? '') ? 'SIGKILL' : 'SIGQUIT');
    sendSignal(pid, 'SIGCONT');
  }
  await until(() => listProcesses(dir).length === 0, graceMs, 25);
  await killAll(dir);
}

/**
 * A killed server leaves its System V segment behind, and macOS has room for 32 of those. Only to be called for a server
 * that ran since this machine booted: line 7 of postmaster.pid, "key id", means something else by the next boot.
 */
async function releaseSharedMemory(dir: string): Promise<void> {
  const id = readLines(join(dir, 'postmaster.pid'))[6]?.trim().split(/\s+/)[1];
  if (!id) return;
  await promisify(execFile)('ipcrm', ['-m', id]).catch(() => undefined); // without ipcrm the segment stays
}

/** The lines of a small file; none when it cannot be read. */
export function readLines(file: string): string[] {
  try {
    return readFileSync(file, 'latin1').split('\n');
  } catch {
    return [];
  }
}

/** Identifies one process for ever: process ids are reused, an id with its start time is not. Undefined when it does not run. */
export function getProcessIdentity(pid: number): string | undefined {
  if (process.platform === 'linux') {
    const stat = readProcStat(pid);
    return stat && `${pid} ${stat[19]}`;
  }
  return sendSignal(pid, 0) ? `${pid}` : undefined;
}

interface ListedProcess {
  pid: number;
  parent: number;
  command: string;
  cwd: () => string | undefined;
}

function listFromProc(): ListedProcess[] {
  const listed: ListedProcess[] = [];
  for (const name of readdirSync('/proc')) {
    const pid = Number(name);
    if (!Number.isInteger(pid)) continue;
    const command = `${readProcText(pid, 'cmdline').replaceAll('\0', ' ')} `;
    if (!command.includes('postgres') && !command.includes('initdb')) continue;
    const parent = Number(readProcStat(pid)?.[1]);
    listed.push({
      pid,
      parent,
      command,
      cwd: () => (command.startsWith('postgres') ? readWorkingFolder(pid) : undefined),
    });
  }
  return listed;
}

const bytes = Buffer.alloc(65_536);

/** The start of a file in /proc/<pid>; empty for a process that has ended. Without the calls of readFileSync, which take twice as long. */
function readProcText(pid: number, name: string): string {
  try {
    const file = openSync(`/proc/${pid}/${name}`, 'r');
    try {
      return bytes.toString('latin1', 0, readSync(file, bytes, 0, bytes.length, null));
    } finally {
      closeSync(file);
    }
  } catch {
    return '';
  }
}

/** The fields of /proc/<pid>/stat (proc(5)) after the name, thus counted from field 3; undefined for a dead process. */
function readProcStat(pid: number): string[] | undefined {
  const line = readProcText(pid, 'stat');
  const fields = line.slice(line.lastIndexOf(')') + 2).split(' ');
  return line === '' || fields[0] === 'Z' ? undefined : fields;
}

function readWorkingFolder(pid: number): string | undefined {
  try {
    return readlinkSync(`/proc/${pid}/cwd`);
  } catch {
    return undefined; // another account's process, in a container without CAP_SYS_PTRACE
  }
}

function listFromPs(): ListedProcess[] {
  const text = execFileSync('ps', ['-axo', 'pid=,ppid=,command='], { encoding: 'utf8', maxBuffer: 1 << 24 });
  return text.split('\n').flatMap((line) => {
    const [, pid, parent, command] = /^\s*(\d+)\s+(\d+)\s+(.*)$/.exec(line) ?? [];
    return command ? [{ pid: Number(pid), parent: Number(parent), command: `${command} `, cwd: () => undefined }] : [];
  });
}

/** Messages to the reaper: real paths of data directories and of folders to remove at the end. */
export type ReaperMessage = { started: string } | { stopped: string } | { temporary: string };

/** The process that stops servers and removes folders after this one ends; see reaper.ts. */
export interface Reaper {
  pid: number;
  tell(message: ReaperMessage): void;
  /** Lets the reaper stop and remove the rest, and waits for it; throws after 15 s. */
  end(): Promise<void>;
}

/** Starts a reaper. It is detached, or Ctrl-C in a terminal would end it together with us. */
export function startReaper(): Reaper {
  const script = fileURLToPath(new URL('./reaper.js', import.meta.url));
  const options = { env: { PATH: process.env.PATH, NODE_OPTIONS: '' }, cwd: '/', detached: true };
  const child = spawn(process.execPath, [script], { ...options, stdio: ['pipe', 'ignore', 'ignore'] });
  const { pid, stdin } = child;
  if (!pid) throw new Error(`Cannot start ${process.execPath} ${script}`);
  stdin.on('error', () => undefined); // a killed reaper: only stop() stops servers then
  child.unref(); // neither it nor its pipe keeps our process alive
  (stdin as typeof stdin & { unref(): void }).unref();
  return {
    pid,
    tell: (message) => stdin.write(`${JSON.stringify(message)}\n`),
    async end() {
      stdin.end();
      const ended = (): boolean => child.exitCode !== null || child.signalCode !== null;
      if (!(await until(ended, 15_000))) throw new Error(`The clean-up process ${pid} does not end.`);
    },
  };
}
