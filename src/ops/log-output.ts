import { write, writeSync } from 'node:fs';
import { setTimeout as sleep } from 'node:timers/promises';
import type { Observe } from '../events.js';

/** Characters of lines that wait at most, beside as many in the write under way. */
const waitingMax = 500_000;
/** Time in which lines are collected for one write. */
const collectMs = 10;
/** Pause before a write is tried again that the descriptor did not take, for example because the pipe is full. */
const retryMs = 100;
/** Time that a write may take at the end of the process. */
const endMsMax = 1000;

const nothing = Buffer.alloc(0);

/**
 * Writes log lines to a descriptor without ever waiting for their reader: threads of libuv write, because a descriptor that a
 * forked worker shares can be a blocking one. Lines beyond the bound are dropped and counted.
 */
export class LogOutput {
  readonly #descriptor: number;
  readonly #observe: Observe;
  #waiting = '';
  /** The rest of the write under way or to be repeated. */
  #batch: Buffer = nothing;
  #writingSinceMs: number | null = null;
  #timer: NodeJS.Timeout | null = null;
  #dropped = 0;
  #isReaderGone = false;

  constructor(descriptor: number, observe: Observe) {
    this.#descriptor = descriptor;
    this.#observe = observe;
    process.once('exit', this.#atExit);
  }

  /** Takes a line; returns at once. */
  write(line: string): void {
    if (this.#isReaderGone || this.#waiting.length + line.length > waitingMax) {
      this.#dropped++;
      return this.#observe({ type: 'log_line_dropped' });
    }
    this.#waiting += line;
    if (this.#writingSinceMs === null) this.#timer ??= setTimeout(this.#begin, collectMs);
  }

  /** Resolves when all lines are written, after a second at the latest. */
  async close(): Promise<void> {
    const deadlineMs = performance.now() + endMsMax;
    while (this.#writingSinceMs !== null || this.#timer !== null) {
      if (performance.now() > deadlineMs) return;
      await sleep(collectMs);
    }
    process.off('exit', this.#atExit);
  }

  readonly #begin = (): void => {
    this.#timer = null;
    this.#writingSinceMs = performance.now();
    if (this.#batch.length === 0) {
      this.#batch = Buffer.from(this.#waiting);
      this.#waiting = '';
      if (this.#dropped > 0) this.#reportDropped(); // now, because there is room for its line
    }
    write(this.#descriptor, this.#batch, this.#handleEnd);
  };

  #reportDropped(): void {
    const lines = this.#dropped;
    this.#dropped = 0;
    this.#observe({ type: 'log_resumed', lines });
  }

  readonly #handleEnd = (error: NodeJS.ErrnoException | null, bytes: number): void => {
    this.#writingSinceMs = null;
    this.#isReaderGone = error?.code === 'EPIPE';
    if (this.#isReaderGone) [this.#batch, this.#waiting] = [nothing, ''];
    else if (error === null) this.#batch = this.#batch.subarray(bytes);
    if (this.#batch.length + this.#waiting.length > 0)
      this.#timer ??= setTimeout(this.#begin, error === null ? 0 : retryMs);
  };

  /** Writes the lines that wait at an exit without close(), unless an earlier write has not ended. */
  readonly #atExit = (): void => {
    // Node waits for its threads, and so for ever for a thread that waits for the reader of a blocking pipe.
    if (this.#writingSinceMs !== null && performance.now() - this.#writingSinceMs >= endMsMax)
      process.kill(process.pid, 'SIGKILL');
    if (this.#batch.length > 0) return;
    try {
      writeSync(this.#descriptor, this.#waiting);
    } catch {
      // The lines are lost: the process ends.
    }
  };
}
