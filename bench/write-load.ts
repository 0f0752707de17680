import { runToEnd } from './child.js';
import { costOf } from './load.js';

/** Creates or updates of installations: each connection sends its next one when the last is answered. */
export interface WriteLoad {
  readonly kind: 'create' | 'update';
  readonly origin: string;
  readonly connections: number;
  readonly seconds: number;
  /** Customers that new installations belong to. */
  readonly customers: readonly string[];
  readonly target: HttpTarget;
}

/** A server that creates at a path; updates are PATCHes of the gateway. */
export interface HttpTarget {
  readonly path: string;
  readonly headers: Readonly<Record<string, string>>;
  /** Name of the member with the customer's id. */
  readonly customer: string;
  /** Members of every record, and whether the client makes the id. */
  readonly members: Readonly<Record<string, string | boolean>>;
  readonly makesIds: boolean;
}

export interface WriteResult {
  readonly writes: number;
  readonly perSecond: number;
  readonly p50Ms: number;
  readonly p99Ms: number;
  /** Processor time that each write cost the client, the server (null: there is none) and the primary, in microseconds. */
  readonly clientCpuUs: number;
  readonly serverCpuUs: number | null;
  readonly primaryCpuUs: number;
}

const program = new URL('./writes-wrk.js', import.meta.url);

/** Writes through a server with wrk, which takes the least of the processors that it shares with the server; throws when a write failed. */
export async function runWrites(
  wrk: string,
  load: WriteLoad,
  serverPid: number,
  primaryPid: number,
): Promise<WriteResult> {
  const cost = await costOf(() => runToEnd(program, [wrk, JSON.stringify(load)], {}), serverPid, primaryPid);
  const { requests: writes, failures, perSecond, p50Ms, p99Ms } = cost;
  if (failures > 0) throw new Error(`${failures} ${load.kind}s at ${load.origin} failed, ${writes} did not.`);
  const each = (ms: number): number => (1000 * ms) / writes;
  return {
    ...{ writes, perSecond, p50Ms, p99Ms },
    clientCpuUs: each(cost.generatorCpuMs),
    serverCpuUs: each(cost.serverCpuMs),
    primaryCpuUs: each(cost.databaseCpuMs),
  };
}
