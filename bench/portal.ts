import { runToEnd } from './child.js';
import { treeCpuMsOf } from './process-cost.js';

/** A reading of work orders, in order, as JSON. */
export interface Reading {
  readonly mode: 'keyset' | 'portal';
  readonly url: string;
  readonly workspace: string;
  readonly rows: number;
  /** Rows per statement, or per read of the portal. */
  readonly chunkRows: number;
}

export interface ReadingResult {
  readonly wallMs: number;
  readonly cpuMs: number;
  readonly peakMb: number;
  readonly rows: number;
  readonly bytes: number;
}

const program = new URL('./portal-process.js', import.meta.url);

/** One reading in a process of its own, with its cost to the replica. Throws when rows are missing. */
export async function read(reading: Reading, replicaPid: number): Promise<ReadingResult & { replicaCpuMs: number }> {
  const before = treeCpuMsOf(replicaPid);
  const result = JSON.parse(await runToEnd(program, [JSON.stringify(reading)], {})) as ReadingResult;
  if (result.rows !== reading.rows)
    throw new Error(`Only ${result.rows} of ${reading.rows} rows were read by ${reading.mode}.`);
  return { ...result, replicaCpuMs: treeCpuMsOf(replicaPid) - before };
}
