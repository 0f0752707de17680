import suite from 'ava';
import { faults, partOf } from '../support/oncall/faults.js';
import { startWorld, tryFaults, type World } from '../support/oncall/world.js';
import { eventually } from '../support/workspace.js';

// Each remedy of docs/operate/troubleshooting.md that can be run: the fault is made while clients read and write, the status names it and
// leads to its part, the remedy is run as it is written there, and all is well. `npm run soak -- oncall` has the other faults, and pairs.

let world: World;
suite.before(async () => {
  world = await startWorld({ lagMaxMs: 6000, fitnessIntervalMs: 1000 });
});
suite.after.always(() => world?.stop());

for (const [name, fault] of Object.entries(faults)) {
  const { part, remedy } = fault;
  if (part === null || remedy === undefined) continue;
  suite.serial(`${name}: the status names it, and its remedy cures`, async (t) => {
    t.true(partOf(part).includes(remedy.replace('(pid)', '(')), 'the page has the remedy');
    const { namedMs, wellMs, words } = await tryFaults(world, [fault]);
    t.not(namedMs, null, `not named: ${JSON.stringify(await world.status())}`);
    t.not(wellMs, null, `not well after ${words}: ${JSON.stringify(await world.status())}`);
  });
}

suite.serial('after all remedies all is well', async (t) => {
  await eventually(t, 'the end', async () => (await world.status()).summary === 'All is well.', 120_000);
  t.pass();
});
