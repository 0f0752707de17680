/** Gives back what was taken; to be called once. */
export type Release = () => void;

/** Bounds how many units each key holds at a time: the statements of a workspace, the large pages of a token. */
export class KeyedSemaphore {
  readonly #max: () => number;
  /** Units held, of the keys that hold any. */
  readonly #held = new Map<string, number>();
  /** In the order of their arrival, per key. */
  readonly #waiters = new Map<string, Set<() => void>>();

  /** `max` is the bound per key; asked each time, as it may change. */
  constructor(max: () => number) {
    this.#max = max;
  }

  /** Units held by all keys together. */
  get held(): number {
    let sum = 0;
    for (const units of this.#held.values()) sum += units;
    return sum;
  }

  isFull(key: string): boolean {
    return (this.#held.get(key) ?? 0) >= this.#max();
  }

  /** Takes units at once, also of a key that is full: callers that have a queue of their own ask `isFull` first. */
  take(key: string, units = 1): Release {
    this.#held.set(key, (this.#held.get(key) ?? 0) + units);
    return () => {
      const left = (this.#held.get(key) as number) - units;
      if (left > 0) this.#held.set(key, left);
      else this.#held.delete(key);
      this.#serve(key);
    };
  }

  /** Takes one unit, waiting at most `waitMs` for it; null when the time is up. First come, first served. */
  acquire(key: string, waitMs: number): Promise<Release | null> {
    if (!this.isFull(key)) return Promise.resolve(this.take(key));
    return new Promise((resolve) => {
      const waiters = this.#waiters.get(key) ?? new Set();
      this.#waiters.set(key, waiters);
      const leave = (): void => {
        clearTimeout(timer);
        waiters.delete(start);
        if (waiters.size === 0) this.#waiters.delete(key);
      };
      const start = (): void => {
        leave();
        resolve(this.take(key));
      };
      const timer = setTimeout(() => {
        leave();
        resolve(null);
      }, waitMs);
      waiters.add(start);
    });
  }

  #serve(key: string): void {
    for (const start of this.#waiters.get(key) ?? []) {
      if (this.isFull(key)) return;
      start();
    }
  }
}
