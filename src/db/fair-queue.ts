/**
 * Waiters by whom they wait for, served in turn: one of each, then the next of each. Somebody with a thousand waiters
 * thus delays somebody with one by a single turn.
 */
export class FairQueue<T> {
  /** In the order of their turns. A Set keeps arrival order and forgets one in the middle cheaply. */
  readonly #queues = new Map<string, Set<T>>();
  #size = 0;

  get size(): number {
    return this.#size;
  }

  add(whose: string, waiter: T): void {
    const queue = this.#queues.get(whose);
    if (queue) queue.add(waiter);
    else this.#queues.set(whose, new Set([waiter]));
    this.#size++;
  }

  /** Whether it was still waiting. */
  delete(whose: string, waiter: T): boolean {
    const queue = this.#queues.get(whose);
    if (!queue?.delete(waiter)) return false;
    if (queue.size === 0) this.#queues.delete(whose);
    this.#size--;
    return true;
  }

  /** Takes the next in turn among those whose turn `mayBe` allows. */
  take(mayBe: (whose: string) => boolean): T | undefined {
    for (const [whose, queue] of this.#queues) {
      if (!mayBe(whose)) continue;
      const [waiter] = queue as Set<T> & Iterable<T>;
      this.#queues.delete(whose);
      queue.delete(waiter as T);
      if (queue.size > 0) this.#queues.set(whose, queue); // behind the others
      this.#size--;
      return waiter;
    }
    return undefined;
  }

  /** Takes the newest of whoever has most waiters: who crowds the queue makes room in it. */
  takeNewestOfMost(): T | undefined {
    let most: [string, Set<T>] | undefined;
    for (const entry of this.#queues) if (entry[1].size > (most?.[1].size ?? 0)) most = entry;
    if (most === undefined) return undefined;
    const newest = [...most[1]].at(-1) as T;
    this.delete(most[0], newest);
    return newest;
  }

  /** Takes all. */
  *drain(): Generator<T> {
    for (let waiter = this.take(() => true); waiter !== undefined; waiter = this.take(() => true)) yield waiter;
  }
}
