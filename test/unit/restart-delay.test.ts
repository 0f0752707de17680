import test from 'ava';
import { restartDelayMs } from '../../src/workers/supervisor.js';

const boundsOf = (failedStarts: number, isAnyReady: boolean): number[] =>
  [1, 0].map((random) => restartDelayMs(failedStarts, random, isAnyReady));

test('the delay of a restart doubles with each failed start up to 30 s, and half of it is random', (t) => {
  const bounds = [1, 2, 3, 5, 6, 60].map((failedStarts) => boundsOf(failedStarts, true));
  t.deepEqual(bounds, [
    [500, 1000],
    [1000, 2000],
    [2000, 4000],
    [8000, 16_000],
    [15_000, 30_000],
    [15_000, 30_000],
  ]);
});

test('while no worker is ready a failed start is repeated within a second', (t) => {
  t.deepEqual(boundsOf(1, false), [500, 1000]);
  t.deepEqual(boundsOf(60, false), [500, 1000]);
});
