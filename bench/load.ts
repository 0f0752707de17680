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
  /** Of the generator, as for setpriority(2); default 0. */
  readonly priority?: number;
}

/** Measurements of the load generator, and its own processor time. */
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

/** The same, and its cost to the server and its database: the replica, or the primary for writes. */
export interface LoadCost extends LoadResult {
  readonly serverCpuMs: number;
  readonly databaseCpuMs: number;
  readonly rssMb: number;
}

/** The program, or null where it is not installed. */
export function installedWrk(): string | null {
  const { WRK_BIN: wrk = 'wrk' } = process.env;
  return spawnSync(wrk, ['-v']).error === undefined ? wrk : null;
}

/** wrk needs a tenth of autocannon's processor time, which matters because the generator shares its cores with the servers it measures. */
export function generator(): { readonly name: 'wrk' | 'autocannon'; readonly run: (load: Load) => Promise<string> } {
  const wrk = installedWrk();
  if (wrk !== null) {
    const program = new URL('./load-wrk.js', import.meta.url);
    return { name: 'wrk', run: (load) => runToEnd(program, [wrk, JSON.stringify(load)], {}, load.priority) };
  }
  const program = new URL('./load-autocannon.js', import.meta.url);
  return { name: 'autocannon', run: (load) => runToEnd(program, [JSON.stringify(load)], {}, load.priority) };
}

/** A request refused because no connection became free in time: seldom, unless something else keeps the machine busy. */
const failedShareMax = 0.02;
const attemptsMax = 3;

/**
 * One run of the load generator, in a process of its own. A run in which more than one request in fifty failed is made
 * again; throws when that does not help.
 */
export async function runLoad(load: Load, serverPid: number, replicaPid: number): Promise<LoadCost> {
  for (let attempt = 1; ; attempt++) {
    const cost = await runLoadOnce(load, serverPid, replicaPid);
    const { failures, requests } = cost;
    if (requests > 0 && failures <= requests * failedShareMax) return cost;
    const what = `${failures} requests to ${load.origin}${load.paths[0]} failed, ${requests} did not`;
    if (attempt === attemptsMax) throw new Error(`${what}.`);
    process.stderr.write(`  ${what}: once more\n`);
  }
}

/** The same, however many requests failed. */
export function runLoadOnce(load: Load, serverPid: number, replicaPid: number): Promise<LoadCost> {
  return costOf(() => generator().run(load), serverPid, replicaPid);
}

/** Runs a generator that prints its result as JSON. */
export async function costOf(run: () => Promise<string>, serverPid: number, databasePid: number): Promise<LoadCost> {
  const serverMs = cpuMsOf(serverPid);
  const databaseMs = treeCpuMsOf(databasePid);
  const result = JSON.parse(await run()) as LoadResult;
  return {
    ...result,
    serverCpuMs: cpuMsOf(serverPid) - serverMs,
    databaseCpuMs: treeCpuMsOf(databasePid) - databaseMs,
    rssMb: rssMbOf(serverPid),
  };
}
