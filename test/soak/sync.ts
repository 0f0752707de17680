import { syncStorm } from '../support/sync/storm.js';
import type { Figures } from './figures.js';

/** Copies by sync under writers and faults, with transactions of a minute. The short form of this is test/fault/sync.test.ts. */
export async function soakSync(): Promise<Figures> {
  const startedMs = performance.now();
  const { passes, changes, startedOver, wrong } = await syncStorm({
    rounds: 5,
    passesMin: 10_000,
    changesMin: 1_000_000,
    roundMs: 180_000,
    longMs: 60_000,
    largeMs: 100,
    onRound: (report) => console.error(JSON.stringify(report)),
  });
  for (const each of wrong) console.error(each);
  return {
    ok: wrong.length === 0,
    figures: {
      Passes: passes,
      Changes: changes,
      'Passes that had to start over': startedOver,
      'Duration (s)': Math.round((performance.now() - startedMs) / 1000),
      'Rows lost, extra or older than the list': wrong.length,
    },
  };
}
