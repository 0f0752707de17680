import { generator, type Load, type LoadResult } from './load.js';
import { PageClient } from './page-client.js';
import { childrenOf, cpuMsOf, treeCpuMsOf } from './process-cost.js';

/** The processes that answer a load. */
export interface Arrangement {
  readonly name: string;
  readonly origin: string;
  /** Of each gateway the process that was started: itself, or the parent of its workers. */
  readonly gatewayPids: readonly number[];
  /** Postmasters. */
  readonly replicaPids: readonly number[];
}

/** Requests that were answered well. */
export type Done = Pick<LoadResult, 'requests' | 'perSecond' | 'bytes'>;

/** Requests with the processor time that they took, in milliseconds. */
export interface Usage extends Done {
  /** Of each gateway, or of each worker of the only one. */
  readonly partsMs: readonly number[];
  /** Of gateways, workers and parents. */
  readonly gatewayMs: number;
  readonly replicasMs: readonly number[];
}

/** The processor time of `work` on the arrangement. */
export async function usageOf({ gatewayPids, replicaPids }: Arrangement, work: () => Promise<Done>): Promise<Usage> {
  const workers = gatewayPids.flatMap(childrenOf);
  const parts = workers.length > 0 ? workers : gatewayPids;
  const read = (): number[][] => [parts.map(cpuMsOf), gatewayPids.map(treeCpuMsOf), replicaPids.map(treeCpuMsOf)];
  const before = read();
  const { requests, perSecond, bytes } = await work();
  const [partsMs = [], all = [], replicasMs = []] = read().map((values, i) =>
    values.map((value, j) => value - (before[i]?.[j] ?? 0)),
  );
  return { requests, perSecond, bytes, partsMs, gatewayMs: sum(all), replicasMs };
}

const attemptsMax = 3;

/** Does the work again when a request is refused, as a busy machine can have it; throws when that does not help. */
export async function repeated<T>(work: () => Promise<T>): Promise<T> {
  for (let attempt = 1; ; attempt++) {
    try {
      return await work();
    } catch (error) {
      if (attempt === attemptsMax) throw error;
      process.stderr.write(`  ${(error as Error).message}: once more\n`);
    }
  }
}

const failedShareMax = 0.02;

/** As many small requests as the generator makes in the time. Throws when more than one in fifty fails. */
export async function manyRequests(load: Load): Promise<Done> {
  const result = JSON.parse(await generator().run(load)) as LoadResult;
  const { requests, failures } = result;
  if (requests > 0 && failures <= requests * failedShareMax) return result;
  throw new Error(`${failures} requests for ${load.paths[0]} failed, ${requests} did not.`);
}

/** A number of large pages on several connections at once; each answer is dropped. */
export async function largePages(
  target: { readonly origin: string; readonly token: string },
  path: string,
  { connections, each }: { readonly connections: number; readonly each: number },
): Promise<Done> {
  const startedMs = performance.now();
  const bytes = await Promise.all(
    Array.from({ length: connections }, async () => {
      const client = await PageClient.connect(target);
      let read = 0;
      for (let i = 0; i < each; i++) read += (await client.get(path)).bytes;
      client.close();
      return read;
    }),
  );
  const requests = connections * each;
  return { requests, perSecond: (requests / (performance.now() - startedMs)) * 1000, bytes: sum(bytes) };
}

export function sum(values: readonly number[]): number {
  return values.reduce((all, value) => all + value, 0);
}

/** The processor time of the least loaded part against that of the most loaded; 1 is even. */
export function balance(values: readonly number[]): number {
  return Math.min(...values) / Math.max(...values);
}
