import { availableParallelism, loadavg } from 'node:os';
import { until as untilQuietly } from '../../demo/cluster/wait.js';

/** The most processes that waited for each processor so far: limits and the gateways' clocks follow it alike, so none shrinks. */
let crowd = 1;

/** Lengthens the time of a quiet machine for one that does other things, so that no verdict depends on its speed. */
export function limitMs(quietMs: number): number {
  const [running = 0] = loadavg();
  crowd = Math.max(crowd, running / availableParallelism());
  return Math.ceil(quietMs * crowd);
}

export function until(condition: () => boolean | Promise<boolean>, quietMs: number, stepMs = 10): Promise<boolean> {
  return untilQuietly(condition, limitMs(quietMs), stepMs);
}
