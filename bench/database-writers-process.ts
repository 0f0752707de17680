import { randomUUID } from 'node:crypto';
import { type DatabaseTarget, openWriter } from './database-writer.js';
import { treeCpuMsOf } from './process-cost.js';
import type { WriteLoad, WriteResult } from './write-load.js';

/** Writers without a server: each sends its next transaction when the last is answered. */
export interface DatabaseWriteLoad extends Omit<WriteLoad, 'origin' | 'target'> {
  readonly target: DatabaseTarget;
  readonly workspace: string;
  readonly primaryPid: number;
  /** Before the load, not counted: this process compiles its code meanwhile. */
  readonly leadInSeconds: number;
}

/** Makes one write; rejects unless it succeeds. */
type Writer = () => Promise<unknown>;

// Process of the writers: the load as JSON in its argument, the result as JSON on its stdout.
const load = JSON.parse(process.argv[2] as string) as DatabaseWriteLoad;
const writers = await Promise.all(
  Array.from({ length: load.connections }, (_, i) => writerFor(load.customers[i % load.customers.length] as string)),
);
await runFor(load.leadInSeconds * 1000);
const [startedMs, clientBefore, primaryBeforeMs] = [
  performance.now(),
  process.cpuUsage(),
  treeCpuMsOf(load.primaryPid),
];
const times = await runFor(load.seconds * 1000);
const takenMs = performance.now() - startedMs;
const { user, system } = process.cpuUsage(clientBefore);
// The backends of the writers have not ended yet: the time of a process that ends meanwhile is not counted.
const primaryMs = treeCpuMsOf(load.primaryPid) - primaryBeforeMs;
const sorted = withWaits(times, (takenMs * load.connections) / times.length).sort((a, b) => a - b);
const at = (share: number): number => sorted[Math.floor(sorted.length * share)] ?? Number.NaN;
const result: WriteResult = {
  writes: times.length,
  perSecond: (times.length * 1000) / takenMs,
  p50Ms: at(0.5),
  p99Ms: at(0.99),
  clientCpuUs: (user + system) / times.length,
  serverCpuUs: null,
  primaryCpuUs: (1000 * primaryMs) / times.length,
};
process.stdout.write(JSON.stringify(result));
process.exit(0);

/** Times of all writes, in milliseconds. */
async function runFor(ms: number): Promise<number[]> {
  const endMs = performance.now() + ms;
  const taken: number[] = [];
  const repeat = async (write: Writer): Promise<void> => {
    for (let now = performance.now(); now < endMs; ) {
      await write();
      const done = performance.now();
      taken.push(done - now);
      now = done;
    }
  };
  await Promise.all(writers.map(repeat));
  return taken;
}

/**
 * With the waits of the writes that a slow one held up, as wrk counts them (stats_correct in its stats.c): a write as long as two
 * intervals would have made the next wait for the rest.
 */
function withWaits(times: readonly number[], intervalMs: number): number[] {
  return times.flatMap((ms) => {
    const waits = Math.max(0, Math.ceil(ms / intervalMs) - 2);
    return ms < 2 * intervalMs ? [ms] : Array.from({ length: waits + 1 }, (_, i) => ms - i * intervalMs);
  });
}

async function writerFor(customer: string): Promise<Writer> {
  const write = await openWriter(load.target, load.workspace, customer);
  const create = (id: string): Promise<void> => write(id, 'Koelcel', true);
  if (load.kind === 'create') return () => create(randomUUID());
  const id = randomUUID();
  await create(id);
  return () => write(id, `Koelcel ${randomUUID()}`, false);
}
