import { type Lsn, sameHistory, type WalPosition } from './wal-position.js';

/** The primary's position at a moment: everything committed before `atMs` (gateway's clock, epoch) lies at or before it. */
export interface PositionSample extends WalPosition {
  readonly atMs: number;
  /** The same moment on the clock that never steps (performance.now()). */
  readonly tickMs: number;
}

/** How current a replica is, by its replay position. */
export interface Currency {
  /** The moment up to which the replica is known to be current, epoch milliseconds; null when it is not known. */
  readonly asOfMs: number | null;
  /** Its distance from the newest known position of the primary; Infinity when that is longer than samples are kept. */
  readonly lagMs: number;
}

/**
 * The heartbeat: positions of the primary, sampled over time. A replica that has replayed a sample is current up to the
 * moment of the sample. An idle primary does not move, so its replicas do not look stale, as by
 * pg_last_xact_replay_timestamp() they would; and nothing is written for it. While the primary is away the newest sample
 * stays: lag and `Data-As-Of` stand still, which is the truth.
 */
export class Heartbeat {
  readonly #samples: PositionSample[] = [];
  #first: PositionSample | undefined;
  readonly #keptMs: number;

  constructor(keptMs: number) {
    this.#keptMs = keptMs;
  }

  /** The first sample of all: every write that was answered before this process started lies at or before it. */
  get first(): PositionSample | undefined {
    return this.#first;
  }

  get newest(): PositionSample | undefined {
    return this.#samples.at(-1);
  }

  add(sample: PositionSample): void {
    this.#first ??= sample;
    const { newest } = this;
    const continues = newest !== undefined && sameHistory(newest, sample) && sample.lsn >= newest.lsn;
    if (!continues) this.#samples.length = 0; // samples of another history prove nothing of this one
    this.#samples.push(sample);
    while ((this.#samples[0] as PositionSample).atMs < sample.atMs - this.#keptMs) this.#samples.shift();
  }

  currency(replayed: Lsn): Currency {
    const { newest } = this;
    if (newest === undefined) return { asOfMs: null, lagMs: 0 };
    const reached = this.#samples.findLast(({ lsn }) => lsn <= replayed);
    if (reached === undefined) return { asOfMs: null, lagMs: Number.POSITIVE_INFINITY };
    return { asOfMs: reached.atMs, lagMs: newest.atMs - reached.atMs };
  }
}
