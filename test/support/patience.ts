import { availableParallelism, loadavg } from 'node:os';
import { until as untilQuietly } from '../../demo/cluster/wait.js';

/**
 * A time limit for a test on a machine that does other things: the limit of a quiet one, times the processes that wait for each processor. No
 * verdict depends on the speed of the machine.
 */
export function limitMs(quietMs: number): number {
  const [running = 0] = loadavg();
  return Math.ceil(quietMs * Math.max(1, running / availableParallelism()));
}

/** Resolves with whether the condition held before the time was over. */
export function until(condition: () => boolean | Promise<boolean>, quietMs: number, stepMs = 10): Promise<boolean> {
  return untilQuietly(condition, limitMs(quietMs), stepMs);
}
