import type { Primary } from '../db/primary.js';
import type { Statement } from '../db/statement.js';

const rowsMax = 500;
const everyMs = 60_000;

/** Deletes expired keys, `rowsMax` at most, and says how many those were. */
const expire: Statement = {
  name: 'idempotency.expire',
  text: `select gateway.expire_idempotency_keys(${rowsMax})`,
  parameters: [],
};

/**
 * The clean-up of expired keys: after a write, at most once a minute, and after every write while there is more to do; so
 * it always outruns the writes. It needs no cron: where nothing is written nothing expires that anybody waits for.
 */
export class IdempotencyExpiry {
  readonly #primary: Primary;
  #dueMs = Number.NEGATIVE_INFINITY;
  #running = false;

  constructor(primary: Primary) {
    this.#primary = primary;
  }

  /** Starts a clean-up when one is due; its failure is nobody's: the next one does the work. */
  afterWrite(): void {
    if (this.#running || performance.now() < this.#dueMs) return;
    this.#running = true;
    this.#cleanUp().finally(() => {
      this.#running = false;
    });
  }

  async #cleanUp(): Promise<void> {
    this.#dueMs = performance.now() + everyMs;
    const [row] = await this.#primary.execute(expire).catch(() => []);
    if (Number(row?.[0]) === rowsMax) this.#dueMs = Number.NEGATIVE_INFINITY;
  }
}
