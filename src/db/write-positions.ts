import { LRUCache } from 'lru-cache';
import type { Lsn } from './lsn.js';

/** What a read of a workspace must have seen: its last write. */
export interface WritePosition {
  /** Null when the primary did not say: then only a replica known current after `atMs` will do. */
  readonly lsn: Lsn | null;
  /** When the write was answered, epoch milliseconds. */
  readonly atMs: number;
}

/** The last write of each workspace, for read-your-writes. Positions only move forward. */
export class WritePositions {
  readonly #last = new LRUCache<string, WritePosition>({ max: 10_000, ttl: 3_600_000 });

  of(workspace: string): WritePosition | undefined {
    return this.#last.get(workspace);
  }

  record(workspace: string, lsn: Lsn | null): void {
    const before = this.#last.get(workspace);
    if (lsn !== null && before?.lsn != null && before.lsn > lsn) return;
    this.#last.set(workspace, { lsn, atMs: Date.now() });
  }
}
