import { drainSocketReads } from './event-loop.js';

/** Gives the units back. The holder must call it once. */
export type Release = () => void;

export interface GateBounds {
  readonly share: (key: string) => number;
  /** Bound of the waiting entries of all keys together. */
  readonly queueMax: number;
  /** Is called before a waiting entry begins. Returns false if none can begin now, whatever its share; absent: each can. */
  readonly makeRoom?: () => boolean;
  /** Makes the error for an entry that is evicted from a full queue, or that waited too long. */
  readonly makeRefusal: (reason: 'full' | 'late', group?: unknown) => Error;
}

export interface GateEntry {
  readonly waitMs: number;
  readonly signal?: AbortSignal | undefined;
  /** Entries of a lane begin in the order in which they came. */
  readonly lane: string;
  /** `failAll` can fail the entries of a group together. */
  readonly group?: unknown;
  /** A full queue evicts no exempt entry. */
  readonly isExempt?: boolean;
}

interface Waiter extends Pick<GateEntry, 'group'> {
  readonly isExempt: boolean;
  readonly mayBegin: () => boolean;
  readonly begin: () => void;
  readonly fail: (error: Error) => void;
}

/**
 * Bounds the units that each key holds. An entry without room waits, with a deadline, in the bounded queue of its lane. The lanes take
 * turns, so a long lane delays another one by a single entry.
 *
 * Example: a workspace may hold two units, and the server has three connections. A sends five statements: A1 and A2 begin, A3 to A5 wait
 * in the lane of A. B sends three: B1 takes the last connection, B2 and B3 wait. When A1 ends, A3 begins and the lane of A goes to the
 * end; when the next connection is free, B2 begins, although A4 and A5 have waited for longer.
 */
export class Gate {
  readonly #held = new Map<string, number>();
  /** The lanes are in the order of their turns. */
  readonly #lanes = new Map<string, Set<Waiter>>();
  waiting = 0;

  constructor(private readonly bounds: GateBounds) {}

  get held(): number {
    return [...this.#held.values()].reduce((sum, units) => sum + units, 0);
  }

  isFull(key: string): boolean {
    return (this.#held.get(key) ?? 0) >= this.bounds.share(key);
  }

  /** Takes units at once, even if the key is full. */
  take(key: string, units = 1): Release {
    this.#held.set(key, (this.#held.get(key) ?? 0) + units);
    return () => {
      const left = (this.#held.get(key) as number) - units;
      if (left > 0) this.#held.set(key, left);
      else this.#held.delete(key);
      this.serve();
    };
  }

  async enter(keys: readonly string[], waiting: GateEntry): Promise<Release> {
    waiting.signal?.throwIfAborted();
    const mayBegin = (): boolean => !keys.some((key) => this.isFull(key));
    const take = (): Release => {
      const releases = keys.map((key) => this.take(key));
      return () => {
        for (const release of releases) release();
      };
    };
    return mayBegin() ? take() : this.wait(mayBegin, async () => take(), waiting);
  }

  /**
   * Waits in the queue; the caller has seen that it cannot begin now. Calls `begin` at a turn of the lane at which it is true. `begin` must
   * take its units before it returns its promise, because the next lane counts them. Rejects with the error of `begin`, with a refusal
   * after the deadline or an eviction, and with the reason of the signal.
   */
  wait<T>(
    mayBegin: () => boolean,
    begin: () => Promise<T>,
    { lane, group, waitMs, signal, isExempt = false }: GateEntry,
  ): Promise<T> {
    return new Promise((resolve, reject) => {
      // The sockets are read before the entry is refused: answers that arrived while the process was busy make room.
      const giveUp = (): void => void drainSocketReads().then(() => leave(this.bounds.makeRefusal('late', group)));
      const timer = setTimeout(giveUp, waitMs);
      const abort = (): void => leave(signal?.reason as Error);
      signal?.addEventListener('abort', abort, { once: true });
      const stopWaiting = (): void => {
        clearTimeout(timer);
        signal?.removeEventListener('abort', abort);
      };
      const waiter: Waiter = {
        group,
        isExempt,
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
        if (this.#remove(lane, waiter)) waiter.fail(error);
      };
      const waiters = this.#lanes.get(lane) ?? new Set();
      this.#lanes.set(lane, waiters.add(waiter));
      this.waiting++;
      if (this.waiting > this.bounds.queueMax && !isExempt) this.#evict();
    });
  }

  /** Begins what may begin. Must be called when room was made other than by a release. */
  serve(): void {
    for (const [lane, waiters] of this.#lanes) {
      const [first] = waiters;
      if (!first?.mayBegin()) continue;
      if (this.bounds.makeRoom?.() === false) return;
      this.#remove(lane, first);
      if (this.#lanes.delete(lane)) this.#lanes.set(lane, waiters); // the lane goes to the end, also of this loop
      first.begin();
    }
  }

  /** Rejects all waiting entries, or all of a group. */
  failAll(error: Error, group?: unknown): void {
    for (const [lane, waiters] of [...this.#lanes])
      for (const waiter of [...waiters])
        if ((group ?? waiter.group) === waiter.group && this.#remove(lane, waiter)) waiter.fail(error);
  }

  /** Refuses the newest waiter of the longest lane, unless its entries are exempt. */
  #evict(): void {
    const lanes = [...this.#lanes].filter(([, [first]]) => !first?.isExempt);
    const [lane, waiters] = lanes.reduce((longest, each) => (each[1].size > longest[1].size ? each : longest));
    const newest = [...waiters].at(-1) as Waiter;
    this.#remove(lane, newest);
    newest.fail(this.bounds.makeRefusal('full', newest.group));
  }

  #remove(lane: string, waiter: Waiter): boolean {
    const waiters = this.#lanes.get(lane);
    if (!waiters?.delete(waiter)) return false;
    if (waiters.size === 0) this.#lanes.delete(lane);
    this.waiting--;
    return true;
  }
}

const activeMs = 1000;

/** Keeps the keys served lately; while there are several, each must leave room for the others. */
export class ActiveKeys {
  readonly #lastMs = new Map<string, number>();
  #prunedMs = 0;

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
