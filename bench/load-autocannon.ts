import autocannon from 'autocannon';
import type { Load, LoadResult } from './load.js';

/** Process of the load generator where there is no wrk: the load as JSON in its argument, the result as JSON on its stdout. */
const { origin, paths, headers, connections, seconds } = JSON.parse(process.argv[2] as string) as Load;
let begun = 0;
const before = process.cpuUsage();
const result = await autocannon({
  url: origin,
  connections,
  duration: seconds,
  headers,
  setupClient: (client) => {
    // Each connection begins elsewhere, or all would ask for the same record at the same time.
    const from = Math.floor((paths.length * begun++) / connections);
    client.setRequests([...paths.slice(from), ...paths.slice(0, from)].map((path) => ({ method: 'GET', path })));
  },
});
const { user, system } = process.cpuUsage(before);
const failures = result.non2xx + result.errors + result.timeouts;
process.stdout.write(
  JSON.stringify({
    requests: result['2xx'],
    perSecond: result['2xx'] / result.duration,
    p50Ms: result.latency.p50,
    p99Ms: result.latency.p99,
    failures,
    bytes: result.throughput.total,
    generatorCpuMs: (user + system) / 1000,
  } satisfies LoadResult),
);
