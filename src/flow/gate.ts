import { drainSocketReads } from './event-loop.js';

/** Gives the taken units back; must be called once. */
export type Release = () => void;

/** Bounds of a gate. */
export interface GateBounds {
  /** Units that a key may hold at a time; can change. */
  readonly share: (key: string) => number;
  /** Entries that may wait, of all keys together; default: no bound. */
  readonly queueMax?: number;
  /** Whether any entry may begin now, beside the shares; default: yes. */
  readonly isOpen?: () => boolean;
  /** The error of an entry that is evicted from a full queue, or that has waited too long. */
  readonly refusal: (reason: 'full' | 'late') => Error;
}

/** How an entry waits. */
export interface Waiting {
  readonly waitMs: number;
  /** Aborts the wait. */
  readonly signal?: AbortSignal | undefined;
  /** The lane in which it waits: lanes are served in turn. */
  readonly lane: string;
  /** Whether it waits although the queue is full. */
  readonly isExempt?: boolean;
}

interface Waiter {
  readonly mayBegin: () => boolean;
  readonly begin: () => void;
  readonly fail: (error: Error) => void;
}

/** Bounds what each key holds at a time; what is beyond waits in a bounded queue, the lanes in turn, until a deadline. */
export class Gate {
  readonly #bounds: GateBounds;
  /** Units held, by key; keys without units are deleted. */
  readonly #held = new Map<string, number>();
  readonly #queue = new FairQueue<Waiter>();

  constructor(bounds: GateBounds) {
    this.#bounds = bounds;
  }

  /** Units held by all keys together. */
  get held(): number {
    return [...this.#held.values()].reduce((sum, units) => sum + units, 0);
  }

  get waiting(): number {
    return this.#queue.size;
  }

  isFull(key: string): boolean {
    return (this.#held.get(key) ?? 0) >= this.#bounds.share(key);
  }

  /** Takes units at once, even of a full key. */
  take(key: string, units = 1): Release {
    this.#held.set(key, (this.#held.get(key) ?? 0) + units);
    return () => {
      const left = (this.#held.get(key) as number) - units;
      if (left > 0) this.#held.set(key, left);
      else this.#held.delete(key);
      this.serve();
    };
  }

  /** Takes a unit of each key, now or after a wait. */
  async enter(keys: readonly string[], waiting: Waiting): Promise<Release> {
    const mayBegin = (): boolean => !keys.some((key) => this.isFull(key));
    const take = (): Release => {
      const releases = keys.map((key) => this.take(key));
      return () => {
        for (const release of releases) release();
      };
    };
    return mayBegin() ? take() : this.wait(mayBegin, async () => take(), waiting);
  }

  /** Waits until the entry may begin, and begins it at once, so that what it takes is taken before the next one is considered. */
  wait<T>(mayBegin: () => boolean, begin: () => Promise<T>, { lane, waitMs, signal, isExempt }: Waiting): Promise<T> {
    return new Promise((resolve, reject) => {
      // In a busy process the answers that make room have arrived, and are read first.
      const giveUp = (): void => void drainSocketReads().then(() => leave(this.#bounds.refusal('late')));
      const timer = setTimeout(giveUp, waitMs);
      const abort = (): void => leave(signal?.reason as Error);
      signal?.addEventListener('abort', abort, { once: true });
      const stopWaiting = (): void => {
        clearTimeout(timer);
        signal?.removeEventListener('abort', abort);
      };
      const waiter: Waiter = {
        mayBegin,
        begin: () => {
          stopWaiting();
          begin().then(resolve, reject);
        },
        fail: (error) => {
          stopWaiting();
          reject(error);
        },
      };
      const leave = (error: Error): void => {
        if (this.#queue.delete(lane, waiter)) waiter.fail(error);
      };
      this.#queue.add(lane, waiter);
      const { queueMax = Number.POSITIVE_INFINITY, refusal } = this.#bounds;
      if (this.#queue.size > queueMax && !isExempt) this.#queue.evictNewestOfLongest()?.fail(refusal('full'));
    });
  }

  /** Begins waiting entries that may begin now. */
  serve(): void {
    while (this.#queue.size > 0 && this.#bounds.isOpen?.() !== false) {
      const waiter = this.#queue.take(({ mayBegin }) => mayBegin());
      if (waiter === undefined) return;
      waiter.begin();
    }
  }

  failAll(error: Error): void {
    for (let each = this.#queue.take(() => true); each; each = this.#queue.take(() => true)) each.fail(error);
  }
}

/**
 * Waiters by lane, served in turn: the first of each lane, then the second of each. A lane with a thousand waiters delays another
 * by a single turn.
 */
export class FairQueue<T> {
  /** In the order of their turns. A Set keeps the order of arrival, and deletes a waiter in constant time. */
  readonly #lanes = new Map<string, Set<T>>();
  #size = 0;

  get size(): number {
    return this.#size;
  }

  add(lane: string, waiter: T): void {
    const waiters = this.#lanes.get(lane);
    if (waiters) waiters.add(waiter);
    else this.#lanes.set(lane, new Set([waiter]));
    this.#size++;
  }

  /** Removes the waiter; returns whether it was still in the queue. */
  delete(lane: string, waiter: T): boolean {
    const waiters = this.#lanes.get(lane);
    if (!waiters?.delete(waiter)) return false;
    if (waiters.size === 0) this.#lanes.delete(lane);
    this.#size--;
    return true;
  }

  /** Takes the first waiter of the next lane for which `isAllowed` is true; the other lanes keep their turn. */
  take(isAllowed: (first: T) => boolean): T | undefined {
    for (const [lane, waiters] of this.#lanes) {
      const [first] = waiters as Set<T> & Iterable<T>;
      if (!isAllowed(first as T)) continue;
      this.#lanes.delete(lane);
      waiters.delete(first as T);
      if (waiters.size > 0) this.#lanes.set(lane, waiters); // its next turn is the last
      this.#size--;
      return first;
    }
    return undefined;
  }

  /** Evicts the newest waiter of the lane with the longest queue. */
  evictNewestOfLongest(): T | undefined {
    let longest: [string, Set<T>] | undefined;
    for (const entry of this.#lanes) if (entry[1].size > (longest?.[1].size ?? 0)) longest = entry;
    if (longest === undefined) return undefined;
    const newest = [...longest[1]].at(-1) as T;
    this.delete(longest[0], newest);
    return newest;
  }
}

/** How long after its last use a key counts as active. */
const activeMs = 1000;

/** The keys, such as workspaces, that were served last. While there are several, each must leave room for the others. */
export class ActiveKeys {
  readonly #lastMs = new Map<string, number>();
  #prunedMs = 0;

  /** Notes that the key is served now. */
  touch(key: string): void {
    const nowMs = performance.now();
    this.#lastMs.set(key, nowMs);
    if (nowMs - this.#prunedMs < activeMs / 4) return;
    this.#prunedMs = nowMs;
    for (const [other, lastMs] of this.#lastMs) if (nowMs - lastMs > activeMs) this.#lastMs.delete(other);
  }

  get areSeveral(): boolean {
    return this.#lastMs.size > 1;
  }
}
