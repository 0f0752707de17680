import type { WritePosition } from '../postgres/wal-position.js';

/** A number of rows, and how current the server was that counted them. */
export interface Count {
  readonly rows: number;
  /** The moment up to which the server was known to be current, epoch milliseconds; null when unknown. */
  readonly asOfMs: number | null;
  /** The workspace's last write when the count began, which the server had replayed. */
  readonly lastWrite: WritePosition | undefined;
}

/** The count that answers a request. */
export interface Total extends Count {
  /** Whether another request had begun the count. */
  readonly isShared: boolean;
}

interface Running {
  readonly result: Promise<Count>;
  readonly abort: (reason: unknown) => void;
  /** Requests that wait for the result. */
  waiting: number;
}

/**
 * Counts under way, so that no two of one key run at the same time: counting millions of rows takes a connection and a core of
 * the replica for its whole duration. The key names workspace, resource and filters.
 */
export class RunningCounts {
  readonly #running = new Map<string, Running>();

  /**
   * Waits for the running count of the key, or starts one when there is none, or when the result is not what `isCurrent` asks for.
   * The signal that `start` gets aborts when the last request that waits has aborted.
   */
  async share(
    key: string,
    signal: AbortSignal,
    isCurrent: (count: Count) => boolean,
    start: (signal: AbortSignal) => Promise<Count>,
  ): Promise<Total> {
    for (;;) {
      const running = this.#running.get(key);
      if (running === undefined) return { ...(await joined(this.#start(key, start), signal)), isShared: false };
      const count = await joined(running, signal);
      if (isCurrent(count)) return { ...count, isShared: true };
    }
  }

  #start(key: string, start: (signal: AbortSignal) => Promise<Count>): Running {
    const controller = new AbortController();
    const forget = (): void => {
      if (this.#running.get(key) === running) this.#running.delete(key);
    };
    const running: Running = {
      result: start(controller.signal).finally(forget),
      abort: (reason) => {
        forget(); // at once, so that no request joins a count that ends without a result
        controller.abort(reason);
      },
      waiting: 0,
    };
    this.#running.set(key, running);
    return running;
  }
}

/** The result of a count; rejects when the signal aborts, and aborts the count if no other request waits for it. */
function joined(running: Running, signal: AbortSignal): Promise<Count> {
  running.waiting++;
  return new Promise((resolve, reject) => {
    const leave = (): void => {
      reject(signal.reason as Error);
      if (--running.waiting === 0) running.abort(signal.reason);
    };
    running.result.then(resolve, reject).finally(() => signal.removeEventListener('abort', leave));
    if (signal.aborted) leave();
    else signal.addEventListener('abort', leave, { once: true });
  });
}
