import { spawnSync } from 'node:child_process';
import { availableParallelism } from 'node:os';

/** Whether processes can be kept on processors of their own here. */
export function canPin(): boolean {
  return availableParallelism() > 1 && spawnSync('taskset', ['--version']).status === 0;
}

/** Runs `measure` while the gateway has the first processor, and this process with all that it starts the others. */
export async function pinnedApart<T>(gatewayPid: number, measure: () => Promise<T>): Promise<T> {
  const last = availableParallelism() - 1;
  pin(gatewayPid, '0');
  pin(process.pid, `1-${last}`);
  try {
    return await measure();
  } finally {
    for (const pid of [gatewayPid, process.pid]) pin(pid, `0-${last}`);
  }
}

/** Keeps all threads of a process on processors, such as "0-3" (taskset(1)). */
function pin(pid: number, processors: string): void {
  const { status, stderr } = spawnSync('taskset', ['-a', '-c', '-p', processors, String(pid)], { encoding: 'utf8' });
  if (status !== 0) throw new Error(`taskset ended with code ${status}: ${stderr}`);
}
