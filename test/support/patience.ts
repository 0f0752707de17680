import { availableParallelism, loadavg } from 'node:os';
import { until as untilQuietly } from '../../demo/cluster/wait.js';

/** The most processes that waited for each processor so far: limits and the gateways' clocks follow it alike, so none shrinks. */
let crowd = 1;

/** A time on a machine that does other things, by that of a quiet one: no verdict depends on the speed of the machine. */
export function limitMs(quietMs: number): number {
  const [running = 0] = loadavg();
  crowd = Math.max(crowd, running / availableParallelism());
  return Math.ceil(quietMs * crowd);
}

export function until(condition: () => boolean | Promise<boolean>, quietMs: number, stepMs = 10): Promise<boolean> {
  return untilQuietly(condition, limitMs(quietMs), stepMs);
}
