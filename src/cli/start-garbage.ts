import { setImmediate, setTimeout as sleep } from 'node:timers/promises';

/** The first requests go first: the collection takes the processor for some 50 ms, once. */
const delayMs = 1000;

/**
 * Gives back the memory of the start, some 18 MB: V8 grew its young generation for the code and the checks of the start, and
 * keeps it. Only a collection for lack of memory shrinks it, which Node offers through its inspector. Does nothing without a
 * least size among the flags (node-flags.ts): V8 would shrink it too far, and does not let it grow again.
 */
export async function collectStartGarbage(): Promise<void> {
  if (!process.execArgv.some((flag) => flag.startsWith('--min-semi-space-size'))) return;
  await sleep(delayMs, undefined, { ref: false });
  const { Session } = await import('node:inspector');
  const session = new Session();
  session.connect();
  await new Promise((resolve) => session.post('HeapProfiler.collectGarbage', resolve));
  await setImmediate(); // to disconnect inside the callback was seen to wait for ever for the lock that V8 holds there
  session.disconnect();
}
