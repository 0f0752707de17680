import { LRUCache } from 'lru-cache';
import { limitEntries } from '../base/cache-bound.js';
import { isLater, isSameHistory, type Lsn, type WalPosition, type WritePosition } from './wal-position.js';

/** A position of the primary. `lsn` is flushed, so replicas can have replayed it. */
export interface PositionSample extends WalPosition {
  /** Everything visible at that moment lies before this position, flushed or not. */
  readonly insertLsn: Lsn;
  readonly atMs: number;
  /** Measured by performance.now(), so that no replica lags when the system's clock is set. */
  readonly tickMs: number;
}

export interface Currency {
  readonly asOfMs: number | null;
  /** Infinity beyond the kept samples, null without a position of the primary. */
  readonly lagMs: number | null;
}

/**
 * Samples positions of the primary. A replica that has replayed `insertLsn` is current up to that moment, even with synchronous_commit =
 * off; lag is measured by flushed positions, because records may stay unflushed for 15 s. While the primary is unreachable lag and
 * `Data-As-Of` freeze.
 */
export class Heartbeat {
  readonly #samples: PositionSample[] = [];
  /** Every write that was answered before this process started lies at or before the first sample. */
  first: PositionSample | undefined;

  constructor(private readonly keptMs: number) {}

  get newest(): PositionSample | undefined {
    return this.#samples.at(-1);
  }

  add(sample: PositionSample): void {
    this.first ??= sample;
    const { newest } = this;
    const continues = newest !== undefined && isSameHistory(newest, sample) && sample.lsn >= newest.lsn;
    if (!continues) this.#samples.length = 0; // samples of another history say nothing about this one
    this.#samples.push(sample);
    while ((this.#samples[0] as PositionSample).tickMs < sample.tickMs - this.keptMs) this.#samples.shift();
  }

  estimateCurrency(replayed: Lsn): Currency {
    const { newest } = this;
    if (newest === undefined) return { asOfMs: null, lagMs: null };
    const flushed = this.#samples.findLast(({ lsn }) => lsn <= replayed);
    const visible = this.#samples.findLast(({ insertLsn }) => insertLsn <= replayed);
    const lagMs = flushed === undefined ? Number.POSITIVE_INFINITY : newest.tickMs - flushed.tickMs;
    return { asOfMs: visible?.atMs ?? null, lagMs };
  }
}

/** The gateways that share write positions with this one. No call rejects, and each ends after about 250 ms. */
export interface OtherGateways {
  /** Resolves when the other gateways know the write. */
  publishWrite(workspace: string, position: WritePosition): Promise<void>;
  /** Undefined without a write, or without an answer in time. */
  readLastWrite(workspace: string): Promise<WritePosition | undefined> | undefined;
}

/** Keeps each workspace's last write for read-your-writes. Positions only move forward. Earlier writes lie at or before the floor. */
export class WritePositions {
  readonly #last = new LRUCache<string, WritePosition>({ ...limitEntries(10_000), ttl: 3_600_000 });
  #others: OtherGateways | null = null;

  /** `floor`, the first sample, counts as a write of every workspace; undefined until the primary has answered. */
  constructor(private readonly floor: () => WritePosition | undefined = () => undefined) {}

  /** Publishes writes from now on, and reads the others' writes. */
  join(others: OtherGateways): void {
    this.#others = others;
  }

  /** A replica must have replayed this position for the workspace's next read. */
  findLastWrite(workspace: string): WritePosition | undefined | Promise<WritePosition | undefined> {
    const asking = this.#others?.readLastWrite(workspace);
    if (asking === undefined) return this.#getLastKnown(workspace);
    return asking.then((published) => {
      if (published !== undefined) this.learn(workspace, published);
      return this.#getLastKnown(workspace);
    });
  }

  #getLastKnown(workspace: string): WritePosition | undefined {
    const [last, floor] = [this.#last.get(workspace), this.floor()];
    return last !== undefined && (floor === undefined || isLater(last, floor)) ? last : floor;
  }

  /** Resolves when the other gateways know the write, which must be before the client is answered. */
  async noteWrite(workspace: string, walPosition: WalPosition): Promise<void> {
    const position = { atMs: Date.now(), ...walPosition };
    this.learn(workspace, position);
    await this.#others?.publishWrite(workspace, position);
  }

  learn(workspace: string, position: WritePosition): void {
    const known = this.#last.get(workspace);
    if (known === undefined || isLater(position, known)) this.#last.set(workspace, position);
  }
}
