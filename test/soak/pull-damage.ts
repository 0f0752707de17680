import { damages, pulledCopies, silentChanges } from '../support/pull/copies.js';
import type { Figures } from './figures.js';

const perRound = 50;
const pick = (statements: Readonly<Record<string, string>>): string =>
  Object.values(statements)[Math.floor(Math.random() * Object.keys(statements).length)] as string;

/** Silent changes, damage in the copies, and runs killed by -9; each round ends with a comparison with a fresh copy. */
export async function soakPullDamage(wanted = 10_000): Promise<Figures> {
  const all = await pulledCopies();
  const startedMs = performance.now();
  try {
    let [changes, damaged, killed, rounds] = [0, 0, 0, 0];
    const wrong = await all.differences();
    for (; changes + damaged < wanted; rounds++) {
      const isDamaging = rounds % 2 === 1;
      for (let i = 0; i < perRound; i += 10) {
        for (let n = 0; n < 10; n++) changes += (await all.setUp.sql(pick(silentChanges), [all.workspace])).length;
        for (const copy of all.copies) {
          const some = Array.from({ length: isDamaging ? 10 : 0 }, () => pick(damages));
          damaged += some.length;
          await copy.sql(...some);
          if ((await all.pull(copy, isDamaging ? ['--verify'] : [], Math.random() * 1500)).code === null) killed++;
        }
      }
      const found = await all.differences(isDamaging ? ['--verify'] : []);
      wrong.push(...found);
      if (rounds % 10 === 9) console.error(`${changes} changes, ${damaged} damages, ${wrong.length} undetected`);
    }
    for (const each of wrong) console.error(each);
    return {
      ok: wrong.length === 0,
      figures: {
        Rounds: rounds,
        Changes: changes,
        Damages: damaged,
        'Runs killed': killed,
        'Tables that differ from a fresh copy': wrong.length,
        'Duration (s)': Math.round((performance.now() - startedMs) / 1000),
      },
    };
  } finally {
    await all.stop();
  }
}
