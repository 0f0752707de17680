import { inProgress } from './claim.js';
import type { Outcome } from './recall.js';
import type { WriteRequest } from './request.js';

/** A write that is running in this gateway. */
interface RunningWrite {
  readonly fingerprint: Buffer;
  readonly outcome: Promise<Outcome>;
}

/** Serializes writes with the same token and key, so that repetitions wait here, not on a connection to the primary. */
export class RunningWrites {
  /** By token and key. */
  readonly #running = new Map<string, RunningWrite>();
  readonly #waitMs: number;

  constructor(waitMs: number) {
    this.#waitMs = waitMs;
  }

  /**
   * Runs `work` when no write with the same key is running. An identical request gets the outcome of the running one; a
   * different request waits for its end. Throws idempotency_in_progress after `waitMs`.
   */
  async run({ caller, key, fingerprint }: WriteRequest, work: () => Promise<Outcome>): Promise<Outcome> {
    const name = `${caller.tokenId} ${key}`;
    const startedMs = performance.now();
    for (let other = this.#running.get(name); other !== undefined; other = this.#running.get(name)) {
      const leftMs = this.#waitMs - (performance.now() - startedMs);
      if (leftMs <= 0) throw inProgress();
      const outcome = await outcomeWithin(leftMs, other);
      if (outcome && other.fingerprint.equals(fingerprint)) return { ...outcome, replayed: true };
    }
    const outcome = work();
    this.#running.set(name, { fingerprint, outcome });
    try {
      return await outcome;
    } finally {
      this.#running.delete(name);
    }
  }
}

/** The outcome of the write; null when it failed or takes longer than `waitMs`. */
async function outcomeWithin(waitMs: number, { outcome }: RunningWrite): Promise<Outcome | null> {
  let timer: NodeJS.Timeout | undefined;
  const late = new Promise<null>((resolve) => {
    timer = setTimeout(resolve, waitMs, null);
  });
  const settled = await Promise.race([outcome.catch(() => null), late]);
  clearTimeout(timer);
  return settled;
}
