import type { Primary } from '../db/primary.js';
import type { Statement } from '../db/statement.js';
import { runUpkeep } from '../db/upkeep.js';
import type { Observe } from '../events.js';

/** Tokens noted between two writes; further ones are noted after the next. */
const tokensMax = 10_000;

const noteUses: Statement = {
  name: 'token.uses',
  text: 'select gateway.note_token_uses($1::uuid[])',
  parameters: ['ids'],
};

/**
 * Stores on the primary which tokens were used, for `tokens list`: one statement for all tokens of an interval, and none on the
 * way of a request. Uses are lost with a statement that fails, because a token that goes on being used is noted again.
 */
export class TokenUses {
  readonly #primary: Primary;
  readonly #observe: Observe;
  readonly #used = new Set<string>();
  readonly #timer: NodeJS.Timeout;

  constructor(primary: Primary, intervalMs: number, observe: Observe) {
    this.#primary = primary;
    this.#observe = observe;
    this.#timer = setInterval(() => void this.#store(), intervalMs).unref();
  }

  note(tokenId: string): void {
    if (this.#used.size < tokensMax) this.#used.add(tokenId);
  }

  close(): void {
    clearInterval(this.#timer);
  }

  async #store(): Promise<void> {
    if (this.#used.size === 0) return;
    const ids = `{${[...this.#used].join(',')}}`;
    this.#used.clear();
    await runUpkeep(this.#primary, noteUses, { ids }, this.#observe);
  }
}
