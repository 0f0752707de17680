import { LRUCache } from 'lru-cache';
import { isLater, type WalPosition, type WritePosition } from './wal-position.js';

/** The other gateways, as far as writes go. Neither call rejects, and both are bounded in time. */
export interface OtherGateways {
  publishWrite(workspace: string, position: WritePosition): Promise<void>;
  lastWrite(workspace: string): Promise<WritePosition | undefined> | undefined;
}

/**
 * The last write of each workspace, for read-your-writes. Positions only move forward. Writes that were answered before
 * this gateway started, through it or through gateways that are gone, lie at or before its floor: the primary's position
 * when it was first seen.
 */
export class WritePositions {
  readonly #last = new LRUCache<string, WritePosition>({ max: 10_000, ttl: 3_600_000 });
  readonly #floor: () => WritePosition | undefined;
  #others: OtherGateways | null = null;

  /** `floor` counts as a write of every workspace; undefined while the primary has not answered. */
  constructor(floor: () => WritePosition | undefined = () => undefined) {
    this.#floor = floor;
  }

  /** From now on writes are published to other gateways, and theirs count here. */
  share(others: OtherGateways): void {
    this.#others = others;
  }

  /** The position that the workspace's next read must have seen; undefined where there is none. */
  async of(workspace: string): Promise<WritePosition | undefined> {
    const published = await this.#others?.lastWrite(workspace);
    if (published !== undefined) this.learn(workspace, published);
    const [last, floor] = [this.#last.get(workspace), this.#floor()];
    return last !== undefined && (floor === undefined || isLater(last, floor)) ? last : floor;
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
