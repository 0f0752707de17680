import { type RateLimiterAbstract, RateLimiterMemory, RateLimiterRes } from 'rate-limiter-flexible';

/** What is left of a limit after a request was counted. */
export interface RateLimitResult {
  readonly allowed: boolean;
  readonly remaining: number;
  /** Whole seconds until the window ends, rounded up: waiting that long is enough. */
  readonly resetSeconds: number;
  /** How many requests of this window were refused. */
  readonly refused: number;
}

/** Counts something per key in windows of a minute. */
export interface Limiter {
  readonly quota: number;
  consume(key: string): Promise<RateLimitResult>;
  /** Whether the key is over the limit already; counts nothing. */
  exhausted(key: string): Promise<boolean>;
}

export const windowSeconds = 60;

/** A limiter of this process. */
export function memoryLimiter(name: string, quota: number): Limiter {
  return limiterOf(quota, new RateLimiterMemory({ keyPrefix: name, points: quota, duration: windowSeconds }));
}

/** A limiter that counts wherever the library's limiter counts. Rejects when that place cannot be asked. */
export function limiterOf(quota: number, limiter: RateLimiterAbstract): Limiter {
  return {
    quota,
    consume: (key) => limiter.consume(key).then(resultOf(quota, true), resultOf(quota, false)),
    exhausted: async (key) => ((await limiter.get(key))?.remainingPoints ?? quota) <= 0,
  };
}

function resultOf(quota: number, allowed: boolean): (result: unknown) => RateLimitResult {
  return (result) => {
    if (!(result instanceof RateLimiterRes)) throw result;
    return {
      allowed,
      refused: Math.max(0, result.consumedPoints - quota),
      remaining: result.remainingPoints,
      resetSeconds: Math.max(1, Math.ceil(result.msBeforeNext / 1000)),
    };
  };
}

const throttleMs = 200;

/**
 * Lets those wait who go on although they are refused: whoever asks again at once, on hundreds of connections, would keep
 * the event loop busy with refusing. The first refusals, which is all that a client sees that heeds them, come at once.
 */
export async function throttleRepeatedRefusals({ quota }: Limiter, { refused }: RateLimitResult): Promise<void> {
  if (refused > quota) await new Promise((resolve) => setTimeout(resolve, throttleMs));
}

/** `RateLimit-Policy` and `RateLimit` (draft-ietf-httpapi-ratelimit-headers). */
export function rateLimitHeaders(
  limiter: Limiter,
  { remaining, resetSeconds }: RateLimitResult,
): Record<string, string> {
  return {
    'RateLimit-Policy': `"default";q=${limiter.quota};w=${windowSeconds}`,
    RateLimit: `"default";r=${Math.max(0, remaining)};t=${resetSeconds}`,
  };
}
