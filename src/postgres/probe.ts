import { drainSocketReads } from '../flow/event-loop.js';
import type { Connect, Connection } from './connection.js';
import type { TextRow } from './row.js';
import type { Statement } from './statement.js';

/** How a server is probed; times in milliseconds. */
export interface ProbeBounds {
  readonly probeIntervalMs: number;
  readonly probeDeadlineMs: number;
}

/** Runs a small statement on a server again and again, on a connection of its own, each time within a deadline. */
export class Probe {
  readonly #connect: Connect;
  readonly #statement: Statement;
  readonly #bounds: ProbeBounds;
  #connection: Connection | null = null;
  #timer: NodeJS.Timeout | undefined;
  #closed = false;

  constructor(connect: Connect, statement: Statement, bounds: ProbeBounds) {
    this.#connect = connect;
    this.#statement = statement;
    this.#bounds = bounds;
  }

  get closed(): boolean {
    return this.#closed;
  }

  /** Runs `work` now, and again an interval after its end, until closed. Resolves after the first time. */
  async repeat(work: () => Promise<void>): Promise<void> {
    await work();
    if (this.#closed) return;
    this.#timer = setTimeout(() => void this.repeat(work), this.#bounds.probeIntervalMs).unref();
  }

  /** Runs the statement and returns its row. Throws the reason why the server did not answer in time. */
  async ask(): Promise<TextRow> {
    const attempt = { isOver: false };
    let deadline: NodeJS.Timeout | undefined;
    const late = new Promise<never>((_, reject) => {
      const miss = (): void => reject(new Error('probe deadline passed'));
      deadline = setTimeout(() => void drainSocketReads().then(miss), this.#bounds.probeDeadlineMs);
    });
    try {
      return await Promise.race([this.#answer(attempt), late]);
    } catch (error) {
      this.#connection?.destroy();
      this.#connection = null;
      throw error;
    } finally {
      attempt.isOver = true;
      clearTimeout(deadline);
    }
  }

  close(): void {
    this.#closed = true;
    clearTimeout(this.#timer);
    this.#connection?.destroy();
  }

  /** Runs the statement; on a new connection when the old one failed, because a server is down only when it refuses a new one. */
  async #answer(attempt: { readonly isOver: boolean }): Promise<TextRow> {
    if (this.#connection?.usable) {
      const answer = await this.#run(this.#connection).catch(() => null);
      if (answer !== null || attempt.isOver) return answer ?? [];
    }
    const fresh = await this.#connect();
    if (attempt.isOver || this.#closed) {
      fresh.destroy();
      return [];
    }
    this.#connection = fresh;
    return this.#run(fresh);
  }

  async #run(connection: Connection): Promise<TextRow> {
    let answer: TextRow = [];
    await connection.run({ statement: this.#statement, workspace: null, values: {} }, (row) => {
      answer = row.texts();
    });
    return answer;
  }
}

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
