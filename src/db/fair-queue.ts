/**
 * Waiters by workspace, served in turn: the first of each workspace, then the second of each. A workspace with a thousand
 * waiters delays another workspace by a single turn.
 */
export class FairQueue<T> {
  /** In the order of their turns. A Set keeps the order of arrival, and deletes a waiter in constant time. */
  readonly #queues = new Map<string, Set<T>>();
  #size = 0;

  get size(): number {
    return this.#size;
  }

  add(workspace: string, waiter: T): void {
    const queue = this.#queues.get(workspace);
    if (queue) queue.add(waiter);
    else this.#queues.set(workspace, new Set([waiter]));
    this.#size++;
  }

  /** Removes the waiter; returns whether it was still in the queue. */
  delete(workspace: string, waiter: T): boolean {
    const queue = this.#queues.get(workspace);
    if (!queue?.delete(waiter)) return false;
    if (queue.size === 0) this.#queues.delete(workspace);
    this.#size--;
    return true;
  }

  /** Takes the first waiter of the next workspace for which `isAllowed` is true; the other workspaces keep their turn. */
  take(isAllowed: (workspace: string) => boolean): T | undefined {
    for (const [workspace, queue] of this.#queues) {
      if (!isAllowed(workspace)) continue;
      const [waiter] = queue as Set<T> & Iterable<T>;
      this.#queues.delete(workspace);
      queue.delete(waiter as T);
      if (queue.size > 0) this.#queues.set(workspace, queue); // its next turn is the last
      this.#size--;
      return waiter;
    }
    return undefined;
  }

  /** Evicts the newest waiter of the workspace with the longest queue. */
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
