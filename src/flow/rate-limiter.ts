import type { Awaitable } from '../awaitable.js';

/** State of a limit after a request was counted. */
export interface RateLimitResult {
  readonly allowed: boolean;
  readonly remaining: number;
  /** Seconds until the window ends, rounded up, so that a client that waits so long is served. */
  readonly resetSeconds: number;
  /** Number of requests refused in this window. */
  readonly refused: number;
}

/** Counts requests per key in windows of a minute. */
export interface Limiter {
  readonly quota: number;
  consume(key: string): Awaitable<RateLimitResult>;
  /** The state of the key, and whether another request would be allowed; counts nothing. */
  peek(key: string): Awaitable<RateLimitResult>;
}

/** The count of a key in its window, as the shared counter has it. */
export interface Count {
  readonly consumed: number;
  /** Milliseconds until the window ends. */
  readonly endsInMs: number;
}

/** A gateway's knowledge of a window. The counter is told of it because a restarted counter has lost its counts. */
export interface KnownCount extends Count {
  /** Requests that this gateway granted, with the counter or without it. */
  readonly granted: number;
}

/** A counter that all gateways share: answers `countNext` of the key. Rejects when it does not answer. */
export type SharedCounter = (key: string, known: KnownCount, requests: number) => Promise<Count>;

/** Counts of a key that a shared counter keeps: of all requests, and of those that each gateway granted. */
export interface Kept {
  consumed: number;
  readonly granted: Map<number, number>;
}

/** Counts requests of a gateway. The count is at least what that gateway knows, and what all gateways that asked have granted. */
export function countNext(kept: Kept, gateway: number, known: KnownCount, requests: number): number {
  kept.granted.set(gateway, Math.max(kept.granted.get(gateway) ?? 0, known.granted + requests));
  const granted = [...kept.granted.values()].reduce((sum, each) => sum + each, 0);
  kept.consumed = Math.max(kept.consumed + requests, known.consumed + requests, granted);
  return kept.consumed;
}

interface Window {
  /** Epoch milliseconds. */
  endsAtMs: number;
  /** The highest count that is known. */
  consumed: number;
  /** Requests that this gateway granted, and those that it refused alone. */
  granted: number;
  refused: number;
}

export const windowSeconds = 60;
const windowMs = windowSeconds * 1000;
/** Keys of a limiter: beyond them the key whose window began first starts from zero. */
const windowsMax = 100_000;
const forgetMs = 1000;
/** Answers of the counter take less time than this, so two ends that differ by more are those of different windows. */
const marginMs = 1000;

/**
 * A limiter of this process, which answers without a promise, or of `gateways` processes that share a counter. These grant the quota
 * exactly. While the counter does not answer, each of them grants its share of the quota, and no more than it knows to be left.
 */
export function rateLimiter(
  quota: number,
  shared?: { readonly gateways: number; readonly counter: SharedCounter },
): Limiter {
  /** In the order in which they began, and so about in that in which they end. */
  const windows = new Map<string, Window>();
  /** The window of the key, unless it has ended or less of it is left. More than a whole one is left where the clock was set back. */
  const windowOf = (key: string, leftMsMin = 0): Window | undefined => {
    const window = windows.get(key);
    const leftMs = (window?.endsAtMs ?? 0) - Date.now();
    return leftMs > leftMsMin && leftMs <= windowMs ? window : undefined;
  };
  const begin = (key: string, endsAtMs = Date.now() + windowMs): Window => {
    if (windows.size === 0) setTimeout(forgetEnded, forgetMs).unref();
    windows.delete(key);
    if (windows.size >= windowsMax) windows.delete(windows.keys().next().value as string);
    const window = { endsAtMs, consumed: 0, granted: 0, refused: 0 };
    windows.set(key, window);
    return window;
  };
  /** By the clock and not by the next request, because after a flood of keys none may come. */
  const forgetEnded = (): void => {
    for (const key of windows.keys()) {
      if (windowOf(key) !== undefined) break;
      windows.delete(key);
    }
    if (windows.size > 0) setTimeout(forgetEnded, forgetMs).unref();
  };
  const resultOf = (consumed: number, endsInMs: number, allowed: boolean, refused = 0): RateLimitResult => ({
    allowed,
    remaining: Math.max(0, quota - consumed),
    resetSeconds: Math.max(1, Math.ceil(endsInMs / 1000)),
    refused: Math.max(refused, consumed - quota),
  });
  const endsInMs = (window: Window | undefined): number => (window ? window.endsAtMs - Date.now() : windowMs);
  const countHere = (key: string, requests: 0 | 1): RateLimitResult => {
    const window = requests === 0 ? windowOf(key) : (windowOf(key) ?? begin(key));
    const consumed = (window?.consumed ?? 0) + requests;
    if (window !== undefined) window.consumed = consumed;
    return resultOf(consumed, endsInMs(window), consumed + 1 - requests <= quota);
  };
  if (shared === undefined) return { quota, consume: (key) => countHere(key, 1), peek: (key) => countHere(key, 0) };

  const { gateways, counter } = shared;
  const countAlone = (key: string, requests: 0 | 1): RateLimitResult => {
    const window = windowOf(key) ?? begin(key);
    const left = Math.min(Math.floor(quota / gateways) - window.granted, quota - window.consumed);
    if (requests === 1 && left > 0) {
      window.granted++;
      window.consumed++;
    } else if (requests === 1) window.refused++;
    return resultOf(quota - Math.max(0, left - requests), endsInMs(window), left > 0, window.refused);
  };
  const learn = (key: string, { consumed, endsInMs }: Count): Window => {
    const endsAtMs = Date.now() + endsInMs;
    const known = windowOf(key);
    const window = known !== undefined && endsAtMs <= known.endsAtMs + marginMs ? known : begin(key, endsAtMs);
    return Object.assign(window, { endsAtMs, consumed: Math.max(window.consumed, consumed) });
  };
  const count = async (key: string, requests: 0 | 1): Promise<RateLimitResult> => {
    const known = windowOf(key, marginMs);
    const { consumed = 0, granted = 0 } = known ?? {};
    try {
      const counted = await counter(key, { consumed, granted, endsInMs: Math.ceil(endsInMs(known)) }, requests);
      const allowed = counted.consumed + 1 - requests <= quota;
      if (counted.consumed > 0) learn(key, counted).granted += allowed ? requests : 0;
      return resultOf(counted.consumed, counted.endsInMs, allowed);
    } catch {
      return countAlone(key, requests);
    }
  };
  return { quota, consume: (key) => count(key, 1), peek: (key) => count(key, 0) };
}
