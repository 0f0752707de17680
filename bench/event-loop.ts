import type { Stage } from './stage.js';

/** Delay of the gateway's event loop, in milliseconds. */
export interface EventLoopDelay {
  readonly p99Ms: number;
  readonly maxMs: number;
}

/** Node measures by a timer of 10 ms, and counts them in. */
const timerMs = 10;

/** The delay since the last call: the gateway's measurement begins again with each reading of its metrics. */
export async function eventLoopDelay({ opsOrigin }: Pick<Stage, 'opsOrigin'>): Promise<EventLoopDelay> {
  const metrics = await (await fetch(`${opsOrigin}/metrics`)).text();
  const delayMs = (name: string): number => {
    const [, seconds] = new RegExp(`^nodejs_eventloop_lag_${name}_seconds (\\S+)$`, 'm').exec(metrics) ?? [];
    return Math.max(0, Number(seconds) * 1000 - timerMs);
  };
  return { p99Ms: delayMs('p99'), maxMs: delayMs('max') };
}
