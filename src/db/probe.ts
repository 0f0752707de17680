import type { Connect, Connection } from './connection.js';
import type { TextRow } from './row.js';
import type { Statement } from './statement.js';

/** How a server is probed; times in milliseconds. */
export interface ProbeBounds {
  readonly intervalMs: number;
  readonly deadlineMs: number;
}

/** Asks a server one small statement again and again, on a connection of its own, with a deadline over all of it. */
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
    this.#timer = setTimeout(() => void this.repeat(work), this.#bounds.intervalMs).unref();
  }

  /** The answer's row. Throws the reason why the server did not answer in time. */
  async ask(): Promise<TextRow> {
    const attempt = { over: false };
    let deadline: NodeJS.Timeout | undefined;
    const late = new Promise<never>((_, reject) => {
      const miss = (): void => reject(new Error('probe deadline passed'));
      deadline = setTimeout(() => afterReading(miss), this.#bounds.deadlineMs);
    });
    try {
      return await Promise.race([this.#answer(attempt), late]);
    } catch (error) {
      this.#connection?.destroy();
      this.#connection = null;
      throw error;
    } finally {
      attempt.over = true;
      clearTimeout(deadline);
    }
  }

  close(): void {
    this.#closed = true;
    clearTimeout(this.#timer);
    this.#connection?.destroy();
  }

  /** A connection that died proves nothing about its server; one that cannot be made does. */
  async #answer(attempt: { readonly over: boolean }): Promise<TextRow> {
    if (this.#connection?.usable) {
      const answer = await this.#run(this.#connection).catch(() => null);
      if (answer !== null || attempt.over) return answer ?? [];
    }
    const fresh = await this.#connect();
    if (attempt.over || this.#closed) {
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

/** While this process was busy an answer may have arrived unread: it counts, so the sockets are read first. */
function afterReading(then: () => void): void {
  setImmediate(() => setImmediate(() => setImmediate(then)));
}
