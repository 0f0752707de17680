import { danglingIn, pulledCopies } from '../support/pull/copies.js';
import type { Figures } from './figures.js';

/** Passes of `pull` under writers, after each of which no reference of the copy may lead nowhere. */
export async function soakPullReferences(wanted = 1_000): Promise<Figures> {
  const all = await pulledCopies();
  const startedMs = performance.now();
  const writers = await all.writers();
  let [passes, failed, dangling] = [0, 0, 0];
  try {
    writers.resume();
    for (; passes < wanted; passes++) {
      const copy = all.copies[passes % 2] as (typeof all.copies)[number];
      const { code, stderr } = await all.pull(copy);
      if (code !== 0) {
        failed++;
        console.error(stderr);
      }
      dangling += await danglingIn(copy);
      if (passes % 50 === 49) console.error(`${passes + 1} passes, ${dangling} dangling references`);
    }
  } finally {
    await writers.pause();
    await all.stop();
  }
  return {
    ok: failed === 0 && dangling === 0,
    figures: {
      Passes: passes,
      'Passes that failed': failed,
      'Changes meanwhile': writers.changes(),
      'References that lead nowhere': dangling,
      'Duration (s)': Math.round((performance.now() - startedMs) / 1000),
    },
  };
}
