import { spawnSync } from 'node:child_process';
import { existsSync } from 'node:fs';
import { availableParallelism } from 'node:os';
import { childrenOf } from './process-cost.js';
import type { Stage } from './stage.js';

/** Whether processes can be kept on processors of their own here. */
export function canPin(): boolean {
  return availableParallelism() > 1 && spawnSync('taskset', ['--version']).status === 0;
}

/**
 * Runs `measure` while the gateway's event loop has the first processor to itself, and PostgreSQL, this process and all that it
 * starts have the others. So do the gateway's other threads, V8's collector and compiler above all: pinned beside the event loop
 * they took its processor for milliseconds, and PostgreSQL's processes did.
 */
export async function pinnedApart<T>(
  { gatewayPid, primaryPid, replicaPid }: Stage,
  measure: () => Promise<T>,
): Promise<T> {
  const last = availableParallelism() - 1;
  const pinAll = (processors: string): void => {
    const servers = [primaryPid, replicaPid].flatMap((pid) => [pid, ...childrenOf(pid)]);
    for (const pid of [...servers, process.pid, gatewayPid]) pin(pid, processors, ['-a']);
  };
  pinAll(`1-${last}`);
  pin(gatewayPid, '0');
  try {
    return await measure();
  } finally {
    pinAll(`0-${last}`);
  }
}

/** Keeps the first thread of a process on processors, such as "0-3"; with -a all of its threads (taskset(1)). */
function pin(pid: number, processors: string, options: readonly string[] = []): void {
  const { status, stderr } = spawnSync('taskset', [...options, '-c', '-p', processors, String(pid)], {
    encoding: 'utf8',
  });
  if (status !== 0 && existsSync(`/proc/${pid}`)) throw new Error(`taskset ended with code ${status}: ${stderr}`);
}
