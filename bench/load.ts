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

const program = new URL('./load-process.js', import.meta.url);

/** One run of the load generator, in a process of its own. Throws when a request failed. */
export async function runLoad(load: Load, serverPid: number, replicaPid: number): Promise<LoadCost> {
  const server = cpuMsOf(serverPid);
  const replica = treeCpuMsOf(replicaPid);
  const result = JSON.parse(await runToEnd(program, [JSON.stringify(load)], {})) as LoadResult;
  if (result.failures > 0 || result.requests === 0)
    throw new Error(`${result.failures} of the requests to ${load.origin}${load.paths[0]} failed.`);
  return {
    ...result,
    serverCpuMs: cpuMsOf(serverPid) - server,
    replicaCpuMs: treeCpuMsOf(replicaPid) - replica,
    rssMb: rssMbOf(serverPid),
  };
}
