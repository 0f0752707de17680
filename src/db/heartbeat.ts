import type { Lsn } from './wal-position.js';

/** Where the primary was, and when: everything committed before `atMs` (gateway's clock, epoch) lies at or before `lsn`. */
export interface PositionSample {
  readonly atMs: number;
  /** The same moment on the clock that never steps (performance.now()). */
  readonly tickMs: number;
  readonly lsn: Lsn;
  /** Positions of another timeline, or of another cluster, cannot be compared with this one. */
  readonly timeline: string;
  readonly systemIdentifier: string;
}

/** What a replica's replay position says of it. */
export interface Currency {
  /** The moment up to which the replica is known to be current, epoch milliseconds; null when it is not known. */
  readonly asOfMs: number | null;
  /** How far it is behind the newest known position of the primary; Infinity when it is further behind than remembered. */
  readonly lagMs: number;
}

/**
 * The heartbeat: positions of the primary, sampled over time. A replica that has replayed a sample is current up to the
 * moment it was taken. An idle primary does not move, so its replicas do not look stale, which
 * pg_last_xact_replay_timestamp() would make them; and nothing is written for it. When the primary is away the newest sample
 * stays: lag stands still and `Data-As-Of` stops, which is the truth.
 */
export class Heartbeat {
  readonly #samples: PositionSample[] = [];
  readonly #keptMs: number;

  constructor(keptMs: number) {
    this.#keptMs = keptMs;
  }

  get newest(): PositionSample | undefined {
    return this.#samples.at(-1);
  }

  add(sample: PositionSample): void {
    const newest = this.newest;
    if (newest && !continues(newest, sample)) this.#samples.length = 0; // what came before proves nothing of this history
    this.#samples.push(sample);
    while ((this.#samples[0] as PositionSample).atMs < sample.atMs - this.#keptMs) this.#samples.shift();
  }

  currency(replayed: Lsn): Currency {
    const newest = this.newest;
    if (!newest) return { asOfMs: null, lagMs: 0 };
    for (let i = this.#samples.length - 1; i >= 0; i--) {
      const sample = this.#samples[i] as PositionSample;
      if (sample.lsn <= replayed) return { asOfMs: sample.atMs, lagMs: newest.atMs - sample.atMs };
    }
    return { asOfMs: null, lagMs: Number.POSITIVE_INFINITY };
  }
}

function continues(before: PositionSample, after: PositionSample): boolean {
  return (
    after.lsn >= before.lsn && after.timeline === before.timeline && after.systemIdentifier === before.systemIdentifier
  );
}
