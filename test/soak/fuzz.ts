import { parseArgs } from 'node:util';
import { startGateway } from '../../src/gateway.js';
import type { OpenApiDocument } from '../../src/openapi/document.js';
import { faultCluster } from '../support/fault-cluster.js';
import { disagreements, untouched } from '../support/fuzz/aftermath.js';
import { fuzz } from '../support/fuzz/fuzz.js';
import { fuzzSettings, metricsFaults } from '../support/fuzz/gateway.js';
import { LogWatch } from '../support/fuzz/log-watch.js';
import { makeWorld } from '../support/fuzz/world.js';
import type { Figures } from './run.js';

/**
 * A million requests of every kind; `--requests N` for another number, `--seed N` for others of them. The short form of
 * this is test/feature/fuzz.test.ts.
 */
export async function soakFuzz(): Promise<Figures> {
  const { values } = parseArgs({
    options: { requests: { type: 'string' }, seed: { type: 'string' } },
    allowPositionals: true,
  });
  const [requests, seed] = [Number(values.requests ?? 1_000_000), Number(values.seed ?? Date.now() % 1_000_000_000)];
  const setUp = await faultCluster({ replicas: 2 });
  try {
    const { dataKeys, ...others } = setUp.settings();
    const world = await makeWorld(setUp.sql, JSON.parse(dataKeys) as Record<string, string>, 24);
    await setUp.caughtUp();
    const log = new LogWatch(world);
    const gateway = await startGateway({ ...others, dataKeys, ...fuzzSettings }, log);
    const document = (await (await fetch(`${gateway.url}/api/v1/openapi.json`)).json()) as OpenApiDocument;
    const before = new Date();
    const stateBefore = await untouched(setUp.sql, before);
    const onProgress = (done: number): void => {
      if (done % 50_000 === 0) console.error(`${done} requests`);
    };
    const run = await fuzz({ origin: gateway.url, document, world, seed, requests, parallel: 16, onProgress });
    const stateAfter = await untouched(setUp.sql, before);
    const faults = [
      ...(run.failure === null ? [] : [run.failure]),
      ...log.faults,
      ...(await metricsFaults(gateway)),
      ...(await disagreements(setUp.sql)),
      ...stateAfter.filter((digest) => !stateBefore.includes(digest)).map((digest) => `changed: ${digest}`),
    ];
    await gateway.stop();
    for (const fault of faults) console.error(fault);
    const answers = [...run.statuses].sort(([a], [b]) => a - b).map(([status, count]) => [`Answers ${status}`, count]);
    return {
      ok: faults.length === 0 && run.requests >= requests,
      figures: {
        Seed: seed,
        'Requests sent': run.requests,
        ...Object.fromEntries(answers),
        'Log lines read': log.lines,
        'Workspaces with canaries': world.workspaces.length,
        'Resident memory of gateway and fuzzer at the end (MB)': Math.round(process.memoryUsage.rss() / 2 ** 20),
        'Duration (s)': Math.round(run.seconds),
        'Properties broken': faults.length,
      },
    };
  } finally {
    await setUp.stop();
  }
}
