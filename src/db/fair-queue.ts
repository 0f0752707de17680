/**
 * Waiters by workspace, served in turn: one of each workspace, then the next of each. A workspace with a thousand waiters
 * delays a workspace with one waiter by a single turn.
 */
export class FairQueue<T> {
  /** In the order of their turns. A Set keeps the order of arrival and deletes from the middle cheaply. */
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

  /** Whether the waiter was still in the queue. */
  delete(workspace: string, waiter: T): boolean {
    const queue = this.#queues.get(workspace);
    if (!queue?.delete(waiter)) return false;
    if (queue.size === 0) this.#queues.delete(workspace);
    this.#size--;
    return true;
  }

  /** Takes the next in turn among the workspaces that `isAllowed`; the others keep their turn. */
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

  /** Takes all. */
  *drain(): Generator<T> {
    for (let waiter = this.take(() => true); waiter !== undefined; waiter = this.take(() => true)) yield waiter;
  }
}
