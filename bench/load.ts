import { spawnSync } from 'node:child_process';
import { runToEnd } from './child.js';
import { cpuMsOf, rssMbOf, treeCpuMsOf } from './process-cost.js';

/** A load: keep-alive connections that each send the next request when the last is answered. */
export interface Load {
  readonly origin: string;
  readonly paths: readonly string[];
  readonly headers: Readonly<Record<string, string>>;
  readonly connections: number;
  readonly seconds: number;
}

/** What the load generator saw, and what it used itself. */
export interface LoadResult {
  /** Those that were answered well. */
  readonly requests: number;
  readonly perSecond: number;
  readonly p50Ms: number;
  readonly p99Ms: number;
  readonly failures: number;
  readonly bytes: number;
  readonly generatorCpuMs: number;
}

/** The same with what it cost the server and the replica. */
export interface LoadCost extends LoadResult {
  readonly serverCpuMs: number;
  readonly replicaCpuMs: number;
  readonly rssMb: number;
}

/** wrk costs a tenth of what autocannon does, which counts where the generator shares its cores with what it measures. */
export function generator(): { readonly name: 'wrk' | 'autocannon'; readonly run: (load: Load) => Promise<string> } {
  const { WRK_BIN: wrk = 'wrk' } = process.env;
  if (spawnSync(wrk, ['-v']).error === undefined) {
    const program = new URL('./load-wrk.js', import.meta.url);
    return { name: 'wrk', run: (load) => runToEnd(program, [wrk, JSON.stringify(load)], {}) };
  }
  const program = new URL('./load-autocannon.js', import.meta.url);
  return { name: 'autocannon', run: (load) => runToEnd(program, [JSON.stringify(load)], {}) };
}

/** What a busy machine may cost: a request refused because no connection became free in time. */
const failedShareMax = 0.05;

/** One run of the load generator, in a process of its own. Throws when more than one request in twenty failed. */
export async function runLoad(load: Load, serverPid: number, replicaPid: number): Promise<LoadCost> {
  const server = cpuMsOf(serverPid);
  const replica = treeCpuMsOf(replicaPid);
  const result = JSON.parse(await generator().run(load)) as LoadResult;
  if (result.failures > result.requests * failedShareMax || result.requests === 0)
    throw new Error(`${result.failures} of the requests to ${load.origin}${load.paths[0]} failed.`);
  return {
    ...result,
    serverCpuMs: cpuMsOf(serverPid) - server,
    replicaCpuMs: treeCpuMsOf(replicaPid) - replica,
    rssMb: rssMbOf(serverPid),
  };
}
