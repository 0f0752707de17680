import test from 'ava';
import { restartDelayMs } from '../../src/workers/supervisor.js';

test('the delay of a restart doubles with each early death up to 30 s, and half of it is random', (t) => {
  const bounds = [1, 2, 3, 5, 6, 60].map((deaths) => [restartDelayMs(deaths, 1), restartDelayMs(deaths, 0)]);
  t.deepEqual(bounds, [
    [500, 1000],
    [1000, 2000],
    [2000, 4000],
    [8000, 16_000],
    [15_000, 30_000],
    [15_000, 30_000],
  ]);
});
