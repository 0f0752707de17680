export interface RateLimitResult {
  readonly quota: number;
  readonly isAllowed: boolean;
  readonly remaining: number;
  /** Rounded up, so that a client that waits this long is served. */
  readonly resetSeconds: number;
  readonly refused: number;
}

export interface Count {
  readonly consumed: number;
  readonly endsInMs: number;
}

/** A gateway's view of a window, from which a restarted counter learns its counts. */
export interface LocalWindow extends Count {
  readonly granted: number;
}

/** Calls `countNext` where all gateways reach it, in their parent or in Redis. Rejects if no answer comes in time. */
export type SharedCounter = (key: string, known: LocalWindow, requests: number) => Promise<Count>;

export interface SharedWindow {
  consumed: number;
  readonly granted: Map<number, number>;
}

/** Adds the requests. A counter that restarted is too low, so it takes at least what this gateway knows and what all gateways granted. */
export function countNext(shared: SharedWindow, gateway: number, known: LocalWindow, requests: number): number {
  shared.granted.set(gateway, Math.max(shared.granted.get(gateway) ?? 0, known.granted + requests));
  const granted = [...shared.granted.values()].reduce((sum, each) => sum + each, 0);
  shared.consumed = Math.max(shared.consumed + requests, known.consumed + requests, granted);
  return shared.consumed;
}

interface Window {
  endsAtMs: number;
  consumed: number;
  /** Requests that this gateway granted. */
  granted: number;
  /** Requests that this gateway refused while it counted alone. */
  refused: number;
}

export const windowSeconds = 60;
const windowMs = windowSeconds * 1000;
/** Bound of the windows in memory. The oldest one is forgotten, so its key counts from zero. */
const windowsMax = 100_000;
/** Gateways compute the end of a window from answers of different age, so its ends differ by less than this. */
const marginMs = 1000;

const openWindow = (endsInMs = windowMs): Window => {
  return { endsAtMs: Date.now() + endsInMs, consumed: 0, granted: 0, refused: 0 };
};

/** The windows of all keys, in the order of their beginning. */
class Windows {
  readonly #windows = new Map<string, Window>();

  /** Returns undefined if less than `leftMsMin` is left, or more than a window, because the clock was set back. */
  get(key: string, leftMsMin = 0): Window | undefined {
    const window = this.#windows.get(key);
    const leftMs = (window?.endsAtMs ?? 0) - Date.now();
    return leftMs > leftMsMin && leftMs <= windowMs ? window : undefined;
  }

  begin(key: string, endsInMs?: number): Window {
    this.#windows.delete(key);
    for (const [first, { endsAtMs }] of this.#windows) {
      if (endsAtMs > Date.now() && this.#windows.size < windowsMax) break;
      this.#windows.delete(first);
    }
    const window = openWindow(endsInMs);
    this.#windows.set(key, window);
    return window;
  }
}

/**
 * Counts requests per key and minute, together with the other gateways that share the counter. Example of three gateways and a quota of 60:
 * while the counter answers, the 61st request is refused whichever gateway gets it. While it is silent, each gateway grants up to 20.
 */
export class RateLimiter {
  readonly #windows = new Windows();

  /** `quota` applies to keys that have no quota of their own. */
  constructor(
    readonly quota: number,
    private readonly gateways = 1,
    private readonly counter?: SharedCounter,
  ) {}

  consume(key: string, ownQuota = this.quota): RateLimitResult | Promise<RateLimitResult> {
    return this.#count(key, 1, ownQuota);
  }

  /** Says whether the next request would be allowed, without counting one. */
  peek(key: string, ownQuota = this.quota): RateLimitResult | Promise<RateLimitResult> {
    return this.#count(key, 0, ownQuota);
  }

  #count(key: string, requests: 0 | 1, quota: number): RateLimitResult | Promise<RateLimitResult> {
    const { counter } = this;
    return counter === undefined
      ? this.#countAlone(key, requests, quota)
      : this.#countTogether(counter, key, requests, quota);
  }

  #countAlone(key: string, requests: 0 | 1, quota: number): RateLimitResult {
    const window = this.#windows.get(key) ?? (requests === 0 ? openWindow() : this.#windows.begin(key));
    const left = Math.min(Math.max(1, Math.floor(quota / this.gateways)) - window.granted, quota - window.consumed);
    if (requests === 1 && left > 0) {
      window.granted++;
      window.consumed++;
    } else if (requests === 1) window.refused++;
    return makeResult(quota, left > 0, left - requests, window.endsAtMs - Date.now(), window.refused);
  }

  async #countTogether(counter: SharedCounter, key: string, requests: 0 | 1, quota: number): Promise<RateLimitResult> {
    const { consumed, granted, endsAtMs } = this.#windows.get(key, marginMs) ?? openWindow();
    const known = { consumed, granted, endsInMs: Math.ceil(endsAtMs - Date.now()) };
    try {
      const counted = await counter(key, known, requests);
      const isAllowed = counted.consumed + 1 - requests <= quota;
      if (counted.consumed > 0) this.#learn(key, counted).granted += isAllowed ? requests : 0;
      return makeResult(quota, isAllowed, quota - counted.consumed, counted.endsInMs, counted.consumed - quota);
    } catch {
      return this.#countAlone(key, requests, quota);
    }
  }

  #learn(key: string, { consumed, endsInMs }: Count): Window {
    const endsAtMs = Date.now() + endsInMs;
    const known = this.#windows.get(key);
    const isSame = known !== undefined && endsAtMs <= known.endsAtMs + marginMs;
    const window = isSame ? known : this.#windows.begin(key, endsInMs);
    return Object.assign(window, { endsAtMs, consumed: Math.max(window.consumed, consumed) });
  }
}

function makeResult(quota: number, isAllowed: boolean, left: number, leftMs: number, refused: number): RateLimitResult {
  return {
    quota,
    isAllowed,
    remaining: Math.max(0, left),
    resetSeconds: Math.max(1, Math.ceil(leftMs / 1000)),
    refused: Math.max(0, refused),
  };
}
