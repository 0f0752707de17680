import { disturbedSettings, disturbPages } from '../support/disturbed-pages.js';
import { faultCluster } from '../support/fault-cluster.js';
import type { Figures } from './run.js';

/** A thousand pages disturbed in every way. The short form of this is test/fault/hundred-pages.test.ts. */
export async function soakPages(): Promise<Figures> {
  const setUp = await faultCluster();
  try {
    const gateway = await setUp.gateway(disturbedSettings, true);
    const startedMs = performance.now();
    const run = await disturbPages(setUp, gateway, '/installaties?perPage=800', 1000);
    for (const fault of run.faults) console.error(fault);
    return {
      ok: run.faults.length === 0 && run.resumed >= 1000,
      figures: {
        'Pages read while replicas were harmed': run.pages,
        'Pages continued after their replica failed them': run.resumed,
        'Pages not byte for byte as undisturbed, broken off, or paused for 2.5 s': run.faults.length,
        'Longest pause of a client (ms)': Math.round(run.longestGapMs),
        'Duration (s)': Math.round((performance.now() - startedMs) / 1000),
      },
    };
  } finally {
    await setUp.stop();
  }
}
