import { until } from '../../demo/cluster/wait.js';
import { faults, pairs } from '../support/oncall/faults.js';
import { type Fault, startWorld, tryFaults } from '../support/oncall/world.js';
import type { Figures } from './figures.js';

const seconds = (ms: number | null, otherwise: string): string =>
  ms === null ? otherwise : `${(ms / 1000).toFixed(1)} s`;

/**
 * Faults under load, one by one and two at once: each is named within a minute, harms no other route, and is over within a minute of its
 * remedy.
 */
export async function soakOncall(): Promise<Figures> {
  const world = await startWorld({ fitnessIntervalMs: 30_000, lagMaxMs: 10_000, statementTimeoutMs: 10_000 });
  const only = process.env.ONLY === undefined ? null : new RegExp(process.env.ONLY);
  const tried = [...Object.keys(faults).map((name) => [name]), ...pairs].filter(
    (names) => only?.test(names.join(' and ')) ?? true,
  );
  const figures: Record<string, string> = {};
  try {
    for (const names of tried) {
      const all = names.map((name) => faults[name] as Fault);
      const { namedMs, words, collateral, wellMs } = await tryFaults(world, all, until);
      const harm = collateral.length > 0 ? `harms ${collateral.join(', ')}` : 'harms no other';
      const outcome = [seconds(namedMs, 'not named'), harm, seconds(wellMs, 'not well')];
      figures[names.join(' and ')] = outcome.join(' · ');
      console.error(names.join(' and '), '·', outcome.join(' · '), '·', words.join(' | '));
      if (wellMs === null) console.error(JSON.stringify(await world.status().catch(String)));
    }
  } finally {
    await world.stop();
  }
  return { ok: Object.values(figures).every((figure) => !/not named|harms [^n]|not well/.test(figure)), figures };
}
