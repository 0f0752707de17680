import { LRUCache } from 'lru-cache';
import { type Limiter, type RateLimitResult, windowSeconds } from '../http/limits.js';

/** The count of a key in its window, by the counter that all gateways share. */
export interface Count {
  readonly consumed: number;
  /** Milliseconds until the window ends. */
  readonly endsInMs: number;
}

/** A gateway's knowledge of a window, which it tells the counter: a counter that was restarted has lost its own. */
export interface KnownCount extends Count {
  /** Requests that this gateway granted by itself and that the counter has not counted yet. */
  readonly unreported: number;
}

/**
 * A counter that all gateways share: counts `requests` more (0 or 1) and what the gateway knows. Before it answers with a
 * count that takes the remaining quota to a lower `guaranteed` amount, it announces the count to all gateways. Rejects when
 * it does not answer.
 */
export type SharedCounter = (key: string, quota: number, known: KnownCount, requests: 0 | 1) => Promise<Count>;

/** A limiter that learns from announcements. */
export interface SharedLimiter extends Limiter {
  learn(key: string, count: Count): void;
}

interface Window {
  readonly endsAtMs: number;
  /** The highest count that this gateway was told; 0 where the counter was away from the beginning. */
  readonly consumed: number;
  /** Requests granted and refused by this gateway alone. */
  granted: number;
  unreported: number;
  refused: number;
}

const windowsMax = 50_000;
const windowMs = windowSeconds * 1000;
/** Interval at which a gateway tries to report requests that it granted alone. */
const reportMs = 1000;
/** Answers travel shorter than this, so ends of windows that differ by more belong to different windows. */
const marginMs = 1000;

/**
 * Part of the remaining quota that all gateways know to be there: the largest power of two in it. As each change of it is
 * announced before it takes effect, the gateways may share it out whenever the counter stops to answer.
 */
function guaranteed(remaining: number): number {
  return remaining < 1 ? 0 : 2 ** Math.floor(Math.log2(remaining));
}

/** The next count of a key, and whether it must be announced before it is answered. */
export function nextCount(
  quota: number,
  before: number,
  known: KnownCount,
  requests: number,
): { readonly consumed: number; readonly announce: boolean } {
  const isLost = before < known.consumed; // then the guaranteed rest is all that is certainly left
  const kept = isLost ? quota - guaranteed(quota - known.consumed) : before;
  const consumed = kept + known.unreported + requests;
  const isLower = before === 0 || guaranteed(quota - consumed) < guaranteed(quota - before);
  return { consumed, announce: consumed > before && isLower };
}

/**
 * Counts in the shared counter. While that does not answer, each of the `gateways` grants its share: of the whole quota in
 * windows that begin meanwhile, of the guaranteed rest in a window that began before. So all together never grant more
 * than the quota, as long as the counter is away for all of them.
 */
export function sharedLimiter(quota: number, gateways: number, counter: SharedCounter): SharedLimiter {
  const windows = new LRUCache<string, Window>({ max: windowsMax });
  const unreported = new Set<string>();
  const running = (key: string, leftMsMin = 0): Window | undefined => {
    const window = windows.get(key);
    return window !== undefined && window.endsAtMs - performance.now() > leftMsMin ? window : undefined;
  };
  const learn = (key: string, { consumed, endsInMs }: Count): void => {
    if (consumed === 0) return;
    const endsAtMs = performance.now() + endsInMs;
    const window = running(key);
    if (window === undefined || endsAtMs > window.endsAtMs + marginMs) windows.set(key, newWindow(endsAtMs, consumed));
    else windows.set(key, { ...window, endsAtMs, consumed: Math.max(window.consumed, consumed) });
  };
  /** Counts in the shared counter; what this gateway granted alone is reported with it, once. */
  const count = async (key: string, requests: 0 | 1): Promise<Count> => {
    const window = running(key, marginMs) ?? newWindow(performance.now() + windowMs, 0);
    const told = { ...window, endsInMs: Math.ceil(window.endsAtMs - performance.now()) };
    window.unreported = 0;
    try {
      const answer = await counter(key, quota, told, requests);
      learn(key, answer);
      return answer;
    } catch (error) {
      const still = running(key);
      if (still !== undefined) still.unreported += told.unreported;
      throw error;
    }
  };
  const report = async (): Promise<void> => {
    for (const key of unreported) {
      if ((running(key)?.unreported ?? 0) > 0 && (await count(key, 0).catch(() => null)) === null) break;
      unreported.delete(key);
    }
    if (unreported.size > 0) setTimeout(report, reportMs).unref();
  };
  const share = ({ consumed }: Window): number =>
    Math.floor((consumed === 0 ? quota : guaranteed(quota - consumed)) / gateways);
  const resultOf = ({ consumed, endsInMs }: Count, allowed: boolean): RateLimitResult => ({
    allowed,
    remaining: Math.max(0, quota - consumed),
    resetSeconds: Math.max(1, Math.ceil(endsInMs / 1000)),
    refused: Math.max(0, consumed - quota),
  });
  const decideAlone = (key: string, requests: 0 | 1): RateLimitResult => {
    const window = running(key) ?? newWindow(performance.now() + windowMs, 0);
    const allowed = window.granted < share(window);
    if (requests === 1) {
      windows.set(key, window);
      window[allowed ? 'granted' : 'refused']++;
      if (allowed) window.unreported++;
      if (unreported.size === 0) setTimeout(report, reportMs).unref();
      unreported.add(key);
    }
    const count = { consumed: quota - share(window) + window.granted, endsInMs: window.endsAtMs - performance.now() };
    return { ...resultOf(count, allowed), refused: window.refused };
  };
  return {
    quota,
    learn,
    async consume(key) {
      const answer = await count(key, 1).catch(() => null);
      return answer === null ? decideAlone(key, 1) : resultOf(answer, answer.consumed <= quota);
    },
    async peek(key) {
      const answer = await count(key, 0).catch(() => null);
      return answer === null ? decideAlone(key, 0) : resultOf(answer, answer.consumed < quota);
    },
  };
}

function newWindow(endsAtMs: number, consumed: number): Window {
  return { endsAtMs, consumed, granted: 0, unreported: 0, refused: 0 };
}
