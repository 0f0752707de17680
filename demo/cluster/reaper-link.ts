import { spawn } from 'node:child_process';
import { fileURLToPath } from 'node:url';
import { until } from './wait.js';

/** Messages to the reaper: real paths of data directories and of folders to remove at the end. */
export type ReaperMessage = { started: string } | { stopped: string } | { temporary: string };

/** The process that stops servers and removes folders after this one ends; see reaper.ts. */
export interface Reaper {
  pid: number;
  tell(message: ReaperMessage): void;
  /** Lets it stop and remove the rest, and waits for that; throws after 15 s. */
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
