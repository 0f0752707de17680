import type { Primary } from '../db/primary.js';
import type { Statement } from '../db/statement.js';

/** Keys are promised for 24 hours; an hour more keeps clocks and running retries out of it. */
const expire: Statement = {
  name: 'idempotency.expire',
  text: `delete from gateway.idempotency where (token_id, key) in (
    select token_id, key from gateway.idempotency where created_at < now() - interval '25 hours'
    order by created_at limit 500 for update skip locked)`,
  parameters: [],
};
const everyMs = 60_000;

/**
 * The clean-up of expired keys: after a write, at most once a minute, a bounded number of rows. It needs no cron: where
 * nothing is written nothing expires that anybody waits for.
 */
export class IdempotencyExpiry {
  readonly #primary: Primary;
  #lastMs = Number.NEGATIVE_INFINITY;

  constructor(primary: Primary) {
    this.#primary = primary;
  }

  /** Starts a clean-up when one is due; its failure is nobody's: the next one does the work. */
  afterWrite(): void {
    const now = performance.now();
    if (now - this.#lastMs < everyMs) return;
    this.#lastMs = now;
    this.#primary.execute(expire).catch(() => {});
  }
}
