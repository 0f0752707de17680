import { LRUCache } from 'lru-cache';
import { atMost } from '../base/cache-bound.js';
import { isLater, type Lsn, sameHistory, type WalPosition, type WritePosition } from './wal-position.js';

/** The primary's position at a moment. Its `lsn` is flushed to disk: replicas can have replayed it. */
export interface PositionSample extends WalPosition {
  /** The position at which the next record goes: all that was visible at that moment lies before it, flushed or not. */
  readonly insertLsn: Lsn;
  /** The moment on the gateway's clock, epoch milliseconds. */
  readonly atMs: number;
  /** The same moment on the clock that never steps (performance.now()): when the system's clock is set, no replica lags. */
  readonly tickMs: number;
}

/** How current a replica is, by its replay position. */
export interface Currency {
  /** The moment up to which the replica is known to be current, epoch milliseconds; null when it is not known. */
  readonly asOfMs: number | null;
  /**
   * Time since the primary flushed what the replica has replayed; Infinity when that is longer than samples are kept, null while
   * no position of the primary is known.
   */
  readonly lagMs: number | null;
}

/**
 * The heartbeat: positions of the primary, sampled over time. A replica that has replayed a sample's `insertLsn` is current up
 * to the moment of the sample: with synchronous_commit = off, commits are visible on the primary before they are flushed.
 * Lag goes by flushed positions, because replicas get no others: an open transaction may leave records unflushed for 15 s. An idle primary does not move, so its replicas do not look stale, as by
 * pg_last_xact_replay_timestamp() they would; and nothing is written for it. While the primary is away the newest sample
 * stays: lag and `Data-As-Of` stand still, which is the truth.
 */
export class Heartbeat {
  readonly #samples: PositionSample[] = [];
  /** The first sample of all: every write that was answered before this process started lies at or before it. */
  first: PositionSample | undefined;
  readonly #keptMs: number;

  constructor(keptMs: number) {
    this.#keptMs = keptMs;
  }

  get newest(): PositionSample | undefined {
    return this.#samples.at(-1);
  }

  add(sample: PositionSample): void {
    this.first ??= sample;
    const { newest } = this;
    const continues = newest !== undefined && sameHistory(newest, sample) && sample.lsn >= newest.lsn;
    if (!continues) this.#samples.length = 0; // samples of another history prove nothing of this one
    this.#samples.push(sample);
    while ((this.#samples[0] as PositionSample).tickMs < sample.tickMs - this.#keptMs) this.#samples.shift();
  }

  currency(replayed: Lsn): Currency {
    const { newest } = this;
    if (newest === undefined) return { asOfMs: null, lagMs: null };
    const flushed = this.#samples.findLast(({ lsn }) => lsn <= replayed);
    const visible = this.#samples.findLast(({ insertLsn }) => insertLsn <= replayed);
    const lagMs = flushed === undefined ? Number.POSITIVE_INFINITY : newest.tickMs - flushed.tickMs;
    return { asOfMs: visible?.atMs ?? null, lagMs };
  }
}

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

  /** The position that a replica must have replayed for the workspace's next read; undefined when there is none. */
  of(workspace: string): WritePosition | undefined | Promise<WritePosition | undefined> {
    const asking = this.#others?.lastWrite(workspace);
    return asking === undefined ? this.#known(workspace) : this.#learnt(workspace, asking);
  }

  async #learnt(workspace: string, asking: Promise<WritePosition | undefined>): Promise<WritePosition | undefined> {
    const published = await asking;
    if (published !== undefined) this.learn(workspace, published);
    return this.#known(workspace);
  }

  #known(workspace: string): WritePosition | undefined {
    const [last, floor] = [this.#last.get(workspace), this.#floor()];
    return last !== undefined && (floor === undefined || isLater(last, floor)) ? last : floor;
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
}
