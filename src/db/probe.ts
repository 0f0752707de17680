import type { Connection } from './connection.js';
import type { TextRow } from './row.js';
import type { Statement } from './statement.js';

/** Asks a server one small question again and again, on a connection of its own, with a deadline over all of it. */
export class Probe {
  readonly #connect: () => Promise<Connection>;
  readonly #statement: Statement;
  readonly #deadlineMs: number;
  #connection: Connection | null = null;
  #closed = false;

  constructor(connect: () => Promise<Connection>, statement: Statement, deadlineMs: number) {
    this.#connect = connect;
    this.#statement = statement;
    this.#deadlineMs = deadlineMs;
  }

  /** The answer's row. Throws what kept the server from answering in time. */
  async ask(): Promise<TextRow> {
    const attempt = { over: false };
    let deadline: NodeJS.Timeout | undefined;
    const late = new Promise<never>((_, reject) => {
      deadline = setTimeout(() => afterReading(() => reject(new Error('probe deadline passed'))), this.#deadlineMs);
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
    this.#connection?.destroy();
  }

  /** A connection that died says nothing of its server; one that cannot be made does. */
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

/** When this process was too busy to look, the answer lies there unread: it counts. */
function afterReading(then: () => void): void {
  setImmediate(() => setImmediate(() => setImmediate(then)));
}
