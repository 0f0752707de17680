/**
 * Waiters by key, served in turn: the first of each key, then the second of each. A key with a thousand waiters delays another
 * by a single turn.
 */
export class FairQueue<T> {
  /** In the order of their turns. A Set keeps the order of arrival, and deletes a waiter in constant time. */
  readonly #queues = new Map<string, Set<T>>();
  #size = 0;

  get size(): number {
    return this.#size;
  }

  add(key: string, waiter: T): void {
    const queue = this.#queues.get(key);
    if (queue) queue.add(waiter);
    else this.#queues.set(key, new Set([waiter]));
    this.#size++;
  }

  /** Removes the waiter; returns whether it was still in the queue. */
  delete(key: string, waiter: T): boolean {
    const queue = this.#queues.get(key);
    if (!queue?.delete(waiter)) return false;
    if (queue.size === 0) this.#queues.delete(key);
    this.#size--;
    return true;
  }

  /** Takes the first waiter of the next key for which `isAllowed` is true; the other keys keep their turn. */
  take(isAllowed: (first: T) => boolean): T | undefined {
    for (const [key, queue] of this.#queues) {
      const [first] = queue as Set<T> & Iterable<T>;
      if (!isAllowed(first as T)) continue;
      this.#queues.delete(key);
      queue.delete(first as T);
      if (queue.size > 0) this.#queues.set(key, queue); // its next turn is the last
      this.#size--;
      return first;
    }
    return undefined;
  }

  /** Evicts the newest waiter of the key with the longest queue. */
  evictNewestOfLongest(): T | undefined {
    let longest: [string, Set<T>] | undefined;
    for (const entry of this.#queues) if (entry[1].size > (longest?.[1].size ?? 0)) longest = entry;
    if (longest === undefined) return undefined;
    const newest = [...longest[1]].at(-1) as T;
    this.delete(longest[0], newest);
    return newest;
  }

  /** Takes all waiters, in turn. */
  *drain(): Generator<T> {
    for (let waiter = this.take(() => true); waiter !== undefined; waiter = this.take(() => true)) yield waiter;
  }
}
