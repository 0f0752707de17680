/** The result of checking a server, at the start or later. */
export interface CheckResult {
  /** Why the server must not be used; null for none. */
  readonly refusal: string | null;
  /** Views that could not be checked, for example because of a lock on a table: they must not be read there. */
  readonly uncheckedViews: ReadonlySet<string>;
}

/** Pause between two checks of a server. */
const pauseMs = 5000;

/** A server that could not be checked at the start, as a whole or but for some views: the check is repeated until it is complete. */
export class LateCheck {
  #result: CheckResult;
  readonly #check: () => Promise<CheckResult>;
  #running: Promise<void> | null = null;
  #checkedMs = Number.NEGATIVE_INFINITY;

  /** `first` is the result of the start. `check` never rejects. */
  constructor(first: CheckResult, check: () => Promise<CheckResult>) {
    this.#result = first;
    this.#check = check;
  }

  get result(): CheckResult {
    return this.#result;
  }

  get isComplete(): boolean {
    return this.#result.refusal === null && this.#result.uncheckedViews.size === 0;
  }

  /** Checks unless the last check was made within the pause. Resolves at once where only views are unchecked: the server can be used. */
  async repeat(): Promise<void> {
    if (this.#running === null && !this.isComplete && performance.now() - this.#checkedMs >= pauseMs)
      this.#running = this.#run();
    if (this.#result.refusal !== null) await this.#running;
  }

  async #run(): Promise<void> {
    this.#result = await this.#check();
    this.#checkedMs = performance.now();
    this.#running = null;
  }
}
