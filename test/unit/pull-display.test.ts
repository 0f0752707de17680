import test from 'ava';
import { makeWaitFilter } from '../../pull/src/display.js';

/** Says which of these waits, each with the moment at which it begins, are told. */
function told(waits: readonly (readonly [atMs: number, waitMs: number])[]): number[] {
  let nowMs = 0;
  const isTold = makeWaitFilter(() => nowMs);
  return waits.flatMap(([atMs, waitMs]) => {
    nowMs = atMs;
    return isTold(waitMs) ? [atMs] : [];
  });
}

test('pull says why it waits within ten seconds, also where each wait is short', (t) => {
  const refusedAgain = Array.from({ length: 20 }, (_, i) => [2500 + 3500 * i, 1000] as const);
  t.deepEqual(told(refusedAgain), [6000, 37_500, 69_000]);
});

test('a long wait is told at once, a short one that helped is not', (t) => {
  t.deepEqual(told([[1000, 5000]]), [1000]);
  t.deepEqual(told([[1000, 0]]), [1000]);
  t.deepEqual(
    told([
      [1000, 500],
      [60_000, 500],
      [120_000, 500],
    ]),
    [],
  );
});
