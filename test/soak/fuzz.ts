import { parseArgs } from 'node:util';
import { faultCluster } from '../support/fault-cluster.js';
import { fuzzGateway } from '../support/fuzz/gateway.js';
import type { Figures } from './figures.js';

/** A million requests of every kind, or `--requests N`, by `--seed N`. The short form is test/feature/fuzz.test.ts. */
export async function soakFuzz(): Promise<Figures> {
  const { values } = parseArgs({
    options: { requests: { type: 'string' }, seed: { type: 'string' } },
    allowPositionals: true,
  });
  const [requests, seed] = [Number(values.requests ?? 1_000_000), Number(values.seed ?? Date.now() % 1_000_000_000)];
  const setUp = await faultCluster({ replicas: 2 });
  try {
    const onProgress = (done: number): void => {
      if (done % 50_000 === 0) console.error(`${done} requests`);
    };
    const run = await fuzzGateway({ ...setUp, settings: setUp.settings(), seed, requests, onProgress });
    for (const fault of run.faults) console.error(fault);
    const answers = [...run.statuses].sort(([a], [b]) => a - b).map(([status, count]) => [`Answers ${status}`, count]);
    return {
      ok: run.faults.length === 0 && run.requests >= requests,
      figures: {
        Seed: seed,
        'Requests sent': run.requests,
        ...Object.fromEntries(answers),
        'Log lines read': run.logLines,
        'Workspaces with canaries': run.workspaces,
        'Resident memory of gateway and fuzzer at the end (MB)': Math.round(process.memoryUsage.rss() / 2 ** 20),
        'Duration (s)': Math.round(run.seconds),
        'Properties broken': run.faults.length,
      },
    };
  } finally {
    await setUp.stop();
  }
}
