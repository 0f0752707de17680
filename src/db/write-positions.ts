import { LRUCache } from 'lru-cache';
import type { WalPosition } from './primary.js';

/** What a read of a workspace must have seen: its last write, or the version that refused it. */
export interface WritePosition extends WalPosition {
  /** When the write was answered, epoch milliseconds. */
  readonly atMs: number;
}

/** The other gateways, as far as writes go. Neither call rejects, and both are bounded in time. */
export interface OtherGateways {
  publishWrite(workspace: string, position: WritePosition): Promise<void>;
  lastWrite(workspace: string): Promise<WritePosition | undefined> | undefined;
}

/** The last write of each workspace, for read-your-writes. Positions only move forward. */
export class WritePositions {
  readonly #last = new LRUCache<string, WritePosition>({ max: 10_000, ttl: 3_600_000 });

  #others: OtherGateways | null = null;

  /** From now on writes are told to other gateways, and theirs count here. */
  share(others: OtherGateways): void {
    this.#others = others;
  }

  /** The workspace's last write, whichever gateway did it. */
  async of(workspace: string): Promise<WritePosition | undefined> {
    const theirs = await this.#others?.lastWrite(workspace);
    if (theirs !== undefined) this.learn(workspace, theirs);
    return this.#last.get(workspace);
  }

  /** Remembers a write of this gateway; resolves when the others know of it, so that the client can be answered. */
  async record(workspace: string, place: WalPosition): Promise<void> {
    const position = { ...place, atMs: Date.now() };
    this.learn(workspace, position);
    await this.#others?.publishWrite(workspace, position);
  }

  /** A position, of this gateway's or of another's write. */
  learn(workspace: string, position: WritePosition): void {
    const before = this.#last.get(workspace);
    if (before !== undefined && sameHistory(before, position) && before.lsn > position.lsn) return;
    if (before !== undefined && !sameHistory(before, position) && before.atMs > position.atMs) return;
    this.#last.set(workspace, position);
  }
}

/** Whether positions can be compared: only within one timeline of one cluster. */
export function sameHistory(a: Omit<WalPosition, 'lsn'>, b: Omit<WalPosition, 'lsn'>): boolean {
  return a.timeline === b.timeline && a.systemIdentifier === b.systemIdentifier;
}
