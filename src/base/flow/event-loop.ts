import { setImmediate as nextTurn } from 'node:timers/promises';

/** Timers run before answers that arrived long ago. Three turns, as a connection pauses one. */
export async function drainSocketReads(): Promise<void> {
  for (let turn = 0; turn < 3; turn++) await nextTurn();
}
