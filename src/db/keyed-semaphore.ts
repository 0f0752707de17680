/** Gives the taken units back; must be called once. */
export type Release = () => void;

/** Bounds how many units each key holds at a time: the statements of a workspace, the large pages of a token. */
export class KeyedSemaphore {
  readonly #max: () => number;
  /** Units held, by key; keys without units are deleted. */
  readonly #held = new Map<string, number>();
  /** Waiters by key, in the order of their arrival. */
  readonly #waiters = new Map<string, Set<() => void>>();

  /** `max` returns the bound per key, which can change. */
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

  /** Takes units at once, even of a full key: a caller with a queue of its own checks `isFull` first. */
  take(key: string, units = 1): Release {
    this.#held.set(key, (this.#held.get(key) ?? 0) + units);
    return () => {
      const left = (this.#held.get(key) as number) - units;
      if (left > 0) this.#held.set(key, left);
      else this.#held.delete(key);
      this.#serve(key);
    };
  }

  /** Takes a unit, or null after `waitMs`. Waiters are served in the order of their arrival. */
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
