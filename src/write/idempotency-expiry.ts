import type { Primary } from '../db/primary.js';
import type { Statement } from '../db/statement.js';
import { runUpkeep } from '../db/upkeep.js';
import type { Observe } from '../events.js';

const rowsPerRun = 500;
/** Pause between two runs while expired rows are left: 2,500 rows a second, more than the writes of one gateway add. */
const backlogPauseMs = 200;

/** Deletes the oldest expired rows, `rowsPerRun` at most, and returns their number. */
const expire: Statement = {
  name: 'idempotency.expire',
  text: `select gateway.expire_idempotency_keys(${rowsPerRun})`,
  parameters: [],
};

/**
 * Deletes expired stored answers on a timer, so that they are deleted also while no client writes. Each pause is random,
 * between half of `intervalMs` and all of it, so that gateways that started together do not run together. A run ends before
 * the next is scheduled, and the next run repeats one that failed.
 */
export class IdempotencyExpiry {
  readonly #primary: Primary;
  readonly #intervalMs: number;
  readonly #observe: Observe;
  #timer: NodeJS.Timeout | undefined;
  #closed = false;

  constructor(primary: Primary, intervalMs: number, observe: Observe) {
    this.#primary = primary;
    this.#observe = observe;
    this.#intervalMs = intervalMs;
    this.#schedule(false);
  }

  close(): void {
    this.#closed = true;
    clearTimeout(this.#timer);
  }

  #schedule(isBacklog: boolean): void {
    if (this.#closed) return;
    const pauseMs = isBacklog ? backlogPauseMs : this.#intervalMs * (0.5 + Math.random() / 2);
    this.#timer = setTimeout(() => void this.#run().then((more) => this.#schedule(more)), pauseMs).unref();
  }

  /** Returns whether expired rows may be left. */
  async #run(): Promise<boolean> {
    const [row] = await runUpkeep(this.#primary, expire, {}, this.#observe);
    return Number(row?.[0]) === rowsPerRun;
  }
}
