import { LRUCache } from 'lru-cache';
import { atMost } from '../cache-bound.js';
import { isLater, type WalPosition, type WritePosition } from './wal-position.js';

/** Exchanges last writes with the other gateways. Neither call rejects, and both are bounded in time. */
export interface OtherGateways {
  publishWrite(workspace: string, position: WritePosition): Promise<void>;
  lastWrite(workspace: string): Promise<WritePosition | undefined> | undefined;
}

/**
 * The last write of each workspace, for read-your-writes. Positions only move forward. Writes that any gateway answered before
 * this one started lie at or before the floor: the first position that this gateway sampled on the primary.
 */
export class WritePositions {
  readonly #last = new LRUCache<string, WritePosition>({ ...atMost(10_000), ttl: 3_600_000 });
  readonly #floor: () => WritePosition | undefined;
  #others: OtherGateways | null = null;

  /** `floor` counts as a write of every workspace; undefined until the primary has answered. */
  constructor(floor: () => WritePosition | undefined = () => undefined) {
    this.#floor = floor;
  }

  /** Publishes writes to the other gateways from now on, and reads theirs. */
  share(others: OtherGateways): void {
    this.#others = others;
  }

  /**
   * The position that a replica must have replayed for the workspace's next read; undefined when there is none. A promise where other
   * gateways must be asked; otherwise none, because each turn of the microtask queue costs a detail.
   */
  of(workspace: string): WritePosition | undefined | Promise<WritePosition | undefined> {
    return (
      this.#others?.lastWrite(workspace)?.then((published) => {
        if (published !== undefined) this.learn(workspace, published);
        return this.#known(workspace);
      }) ?? this.#known(workspace)
    );
  }

  /** Remembers a write of this gateway; resolves when the other gateways know it, which must be before the client is answered. */
  async record(workspace: string, walPosition: WalPosition): Promise<void> {
    const position = { atMs: Date.now(), ...walPosition };
    this.learn(workspace, position);
    await this.#others?.publishWrite(workspace, position);
  }

  /** Remembers the position of a write through any gateway. */
  learn(workspace: string, position: WritePosition): void {
    const known = this.#last.get(workspace);
    if (known === undefined || isLater(position, known)) this.#last.set(workspace, position);
  }

  #known(workspace: string): WritePosition | undefined {
    const [last, floor] = [this.#last.get(workspace), this.#floor()];
    return last !== undefined && (floor === undefined || isLater(last, floor)) ? last : floor;
  }
}
