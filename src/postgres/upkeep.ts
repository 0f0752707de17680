import { correctionOf, sqlStateOf } from '../errors.js';
import type { Observe } from '../events.js';
import type { Primary } from './primary.js';
import type { TextRow } from './row.js';
import type { Statement } from './statement.js';

/**
 * Runs a statement on the primary that no client waits for; a failure gives no rows, because the next run repeats it. One that no
 * repetition removes, such as a missing grant, is an event.
 */
async function runUpkeep(
  primary: Primary,
  statement: Statement,
  values: Readonly<Record<string, string>>,
  observe: Observe,
): Promise<readonly TextRow[]> {
  try {
    return await primary.execute(statement, values);
  } catch (error) {
    const correction = correctionOf(error);
    const code = sqlStateOf(error) ?? '';
    if (correction !== undefined) observe({ type: 'upkeep_failed', statement: statement.name, code, correction });
    return [];
  }
}

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
