import { setTimeout as sleep } from 'node:timers/promises';
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

export const windowSeconds = 60;

/** Requests of a key since its window began. */
interface Window {
  consumed: number;
  /** Epoch milliseconds. */
  readonly endsAtMs: number;
}

const windowMs = windowSeconds * 1000;
/** Keys of a limiter in memory: beyond them the key whose window began first starts from zero. */
const windowsMax = 100_000;
const forgetMs = 1000;

/** A limiter of this process. It answers without a promise. */
export function memoryLimiter(quota: number): Limiter {
  /** In the order in which they began, and so in which they end. */
  const windows = new Map<string, Window>();
  const windowOf = (key: string): Window => {
    const window = windows.get(key);
    return window !== undefined && isOpen(window) ? window : { consumed: 0, endsAtMs: Date.now() + windowMs };
  };
  const begin = (key: string, window: Window): void => {
    if (windows.size === 0) setTimeout(forgetEnded, forgetMs).unref();
    windows.delete(key);
    if (windows.size >= windowsMax) windows.delete(windows.keys().next().value as string);
    windows.set(key, window);
  };
  /** By the clock and not by the next request, because after a flood of keys none may come. */
  const forgetEnded = (): void => {
    for (const [key, window] of windows) {
      if (isOpen(window)) break;
      windows.delete(key);
    }
    if (windows.size > 0) setTimeout(forgetEnded, forgetMs).unref();
  };
  const resultOf = ({ consumed, endsAtMs }: Window, allowed: boolean): RateLimitResult => ({
    allowed,
    remaining: Math.max(0, quota - consumed),
    resetSeconds: Math.max(1, Math.ceil((endsAtMs - Date.now()) / 1000)),
    refused: Math.max(0, consumed - quota),
  });
  return {
    quota,
    consume: (key) => {
      const window = windowOf(key);
      if (window.consumed++ === 0) begin(key, window);
      return resultOf(window, window.consumed <= quota);
    },
    peek: (key) => {
      const window = windowOf(key);
      return resultOf(window, window.consumed < quota);
    },
  };
}

/** Whether the window has not ended; more than a whole window is left where the clock was set back. */
function isOpen({ endsAtMs }: Window): boolean {
  const leftMs = endsAtMs - Date.now();
  return leftMs > 0 && leftMs <= windowMs;
}

const throttleMs = 200;

/**
 * Delays a refusal by 200 ms once the key was refused `quota` times, so that clients that ignore Retry-After on hundreds of
 * connections cannot saturate the event loop. A client that heeds Retry-After gets its few refusals at once.
 */
export async function throttleRepeatedRefusals({ quota }: Limiter, { refused }: RateLimitResult): Promise<void> {
  if (refused > quota) await sleep(throttleMs);
}

/** `RateLimit-Policy` and `RateLimit` (draft-ietf-httpapi-ratelimit-headers) of the limits that counted a request: names and values in turns. */
export function rateLimitHeaders(
  limits: readonly (readonly [policy: string, limiter: Limiter, result: RateLimitResult])[],
): string[] {
  const policies = limits.map(([name, { quota }]) => `"${name}";q=${quota};w=${windowSeconds}`);
  const left = limits.map(([name, , { remaining, resetSeconds }]) => `"${name}";r=${remaining};t=${resetSeconds}`);
  return ['RateLimit-Policy', policies.join(', '), 'RateLimit', left.join(', ')];
}
