import test from 'ava';
import { syncStorm } from '../support/sync/storm.js';

test('copies by sync equal the views row by row, whatever writers and replicas do meanwhile', async (t) => {
  const { passes, changes, startedOver, wrong } = await syncStorm({
    rounds: 2,
    passesMin: 100,
    changesMin: 150,
    roundMs: 3000,
    restMs: 60,
    longMs: 2000,
  });
  t.log(`${passes} passes, ${changes} changes, started over ${startedOver} times`);
  t.deepEqual(wrong.slice(0, 10), []);
  t.is(startedOver, 0);
  t.true(passes >= 100, `${passes} passes`);
  t.true(changes >= 150, `${changes} changes`);
});
