import test from 'ava';
import { crashWrites } from '../support/crash/writes.js';

test('every write has its effect exactly once, however often the primary is killed and COMMIT answers are lost', async (t) => {
  const report = await crashWrites({ writes: 800, clients: 8, upMs: [300, 1000], killsMax: 8, shareLost: 0.1 });
  t.log(report);
  t.deepEqual(report.disagreements, []);
  t.is(report.creates + report.updates + report.refused, 800);
  t.true(report.kills >= 3, `${report.kills} kills`);
  t.true(report.commitsLost >= 10, `${report.commitsLost} answers lost`);
  t.true(report.replays >= 10, `${report.replays} replays`);
  t.true(report.updates > 50 && report.creates > 50);
});
