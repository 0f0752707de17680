import { createHook } from 'node:async_hooks';
import { writeFileSync } from 'node:fs';
import { type HeapProfiler, Session } from 'node:inspector';

/** Counts of a process, between two signals. */
export interface Work {
  /** Allocated by JavaScript, also what was collected meanwhile. */
  readonly bytes: number;
  readonly promises: number;
  /** Reactions of promises and callbacks of queueMicrotask that ran. */
  readonly microtasks: number;
  /** Callbacks of process.nextTick. */
  readonly ticks: number;
}

// Loaded by `node --import` into a server. SIGUSR2 begins to count bytes; the second ends that and begins to count the rest, which allocates
// itself; the third writes the counts to the file WORK_FILE.
const counts = { promises: 0, microtasks: 0, ticks: 0 };
const session = new Session();
session.connect();
const reactions = new Set<number>();
const hook = createHook({
  init(id, type) {
    if (type === 'PROMISE') counts.promises++;
    if (type === 'TickObject') counts.ticks++;
    if (type === 'PROMISE' || type === 'Microtask') reactions.add(id);
  },
  before(id) {
    if (reactions.has(id)) counts.microtasks++;
  },
  destroy: (id) => reactions.delete(id),
});
let bytes = 0;
const steps = [beginBytes, endBytes, write];
process.on('SIGUSR2', () => steps.shift()?.());

function beginBytes(): void {
  const collected = { includeObjectsCollectedByMajorGC: true, includeObjectsCollectedByMinorGC: true };
  session.post('HeapProfiler.startSampling', { samplingInterval: 16_384, ...collected });
}

function endBytes(): void {
  session.post('HeapProfiler.stopSampling', (_, { profile }) => {
    bytes = bytesOf(profile.head);
    hook.enable();
  });
}

function write(): void {
  hook.disable();
  writeFileSync(process.env.WORK_FILE as string, JSON.stringify({ bytes, ...counts } satisfies Work));
}

function bytesOf({ selfSize, children }: HeapProfiler.SamplingHeapProfileNode): number {
  return children.reduce((sum, child) => sum + bytesOf(child), selfSize);
}
