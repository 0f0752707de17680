import { LRUCache } from 'lru-cache';
import { sameHistory, type WalPosition, type WritePosition } from './wal-position.js';

/** The other gateways, as far as writes go. Neither call rejects, and both are bounded in time. */
export interface OtherGateways {
  publishWrite(workspace: string, position: WritePosition): Promise<void>;
  lastWrite(workspace: string): Promise<WritePosition | undefined> | undefined;
}

/** The last write of each workspace, for read-your-writes. Positions only move forward. */
export class WritePositions {
  readonly #last = new LRUCache<string, WritePosition>({ max: 10_000, ttl: 3_600_000 });
  #others: OtherGateways | null = null;

  /** From now on writes are published to other gateways, and theirs count here. */
  share(others: OtherGateways): void {
    this.#others = others;
  }

  /** The workspace's last write through any gateway. */
  async of(workspace: string): Promise<WritePosition | undefined> {
    const published = await this.#others?.lastWrite(workspace);
    if (published !== undefined) this.learn(workspace, published);
    return this.#last.get(workspace);
  }

  /** Remembers a write of this gateway; resolves when the other gateways know it, so that the client can be answered. */
  async record(workspace: string, walPosition: WalPosition): Promise<void> {
    const position = { ...walPosition, atMs: Date.now() };
    this.learn(workspace, position);
    await this.#others?.publishWrite(workspace, position);
  }

  /** Remembers the position of a write through any gateway. */
  learn(workspace: string, position: WritePosition): void {
    const known = this.#last.get(workspace);
    if (known === undefined || isLater(position, known)) this.#last.set(workspace, position);
  }
}

/** By position where the two can be compared, else by the clock. */
function isLater(a: WritePosition, b: WritePosition): boolean {
  return sameHistory(a, b) ? a.lsn >= b.lsn : a.atMs >= b.atMs;
}
