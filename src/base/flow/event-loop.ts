import { setImmediate as nextTurn } from 'node:timers/promises';

/**
 * Resolves when the event loop has read what had arrived on the sockets: after a busy turn timers run before answers that
 * arrived long ago, which must count as in time. Three turns, because a connection pauses for one after a large read.
 */
export async function drainSocketReads(): Promise<void> {
  for (let turn = 0; turn < 3; turn++) await nextTurn();
}
