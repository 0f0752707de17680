import type { Gateway } from '../../../src/gateway.js';
import type { Settings } from '../../../src/settings.js';
import { canariesIn } from './canaries.js';
import { tokenMark } from './properties.js';

/**
 * Limits out of the way, and bounds small enough that pages are read in several chunks. Waiting is long, as the fuzzer
 * shares the gateway's process and processors.
 */
export const fuzzSettings: Partial<Settings> = {
  rateLimitPerMinute: 100_000_000,
  authFailuresPerMinute: 100_000_000,
  publicRequestsPerMinute: 100_000_000,
  logLevel: 'trace',
  trustedProxyHops: 1,
  chunkRowsMax: 50,
  largePagesPerToken: 100,
  largePagesPerWorkspace: 100,
  tokenCacheMax: 100,
  pageMemoryMax: 200,
  requestTimeoutMs: 2000,
  headersTimeoutMs: 2000,
  queueWaitMs: 10_000,
  probeDeadlineMs: 10_000,
  connectTimeoutMs: 10_000,
  freshnessWaitMs: 10_000,
  primaryReadsPerSecond: 10_000,
};

/** Metrics of the ops listener that differ from those of a gateway at rest. */
export async function metricsFaults({ opsUrl, replicas }: Gateway): Promise<string[]> {
  const [live, ready, metrics] = await Promise.all(
    ['/livez', '/readyz', '/metrics'].map(async (path) => {
      const response = await fetch(opsUrl + path);
      return { status: response.status, text: await response.text() };
    }),
  );
  const text = metrics?.text ?? '';
  const busy = text.match(/^gateway_(?:pool_in_flight|pool_waiting|large_pages)(?:\{.*\})? [1-9].*$/gm) ?? [];
  return [
    ...(live?.status === 200 ? [] : ['/livez']),
    ...(ready?.status === 200 ? [] : ['/readyz']),
    ...replicas.filter(({ state }) => !state.healthy).map(() => 'a replica was taken out'),
    ...busy,
    ...canariesIn(text).map(({ kind }) => `a canary ${kind} in the metrics`),
    ...(tokenMark.test(text) ? ['a token in the metrics'] : []),
  ];
}
