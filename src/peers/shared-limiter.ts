import { LRUCache } from 'lru-cache';
import type { Awaitable } from '../awaitable.js';
import { atMost } from '../cache-bound.js';
import { type Limiter, type RateLimitResult, windowSeconds } from '../http/limits.js';

/** The count of a key in its window, as the shared counter has it. */
export interface Count {
  readonly consumed: number;
  /** Milliseconds until the window ends. */
  readonly endsInMs: number;
}

/** A gateway's knowledge of a window, sent to the counter because a restarted counter has lost its counts. */
export interface KnownCount extends Count {
  /** Requests that this gateway granted without the counter, and that the counter has not counted yet. */
  readonly unreported: number;
}

/**
 * A counter that all gateways share: adds `requests` and the unreported requests. Before it answers with a count that
 * lowers the `guaranteed` part of the remaining quota, it announces the count to all gateways. Rejects when the counter does
 * not answer.
 */
export type SharedCounter = (key: string, quota: number, known: KnownCount, requests: number) => Promise<Count>;

/** A limiter that learns from announcements. */
export interface SharedLimiter extends Limiter {
  learn(key: string, count: Count): void;
}

interface Window {
  endsAtMs: number;
  /** The highest count that this gateway got; 0 when the counter has been away since the window began. */
  consumed: number;
  /** When the counter was last asked. */
  askedMs: number;
  /** Requests that the counter has counted for this gateway, and that no client has made yet. */
  reserved: number;
  /** Reservations that the counter has not answered yet. */
  reserving: number;
  /** Requests granted and refused by this gateway alone. */
  granted: number;
  unreported: number;
  refused: number;
}

const windowsMax = 50_000;
const windowMs = windowSeconds * 1000;
/** Interval at which a gateway tries to report requests that it granted alone. */
const reportMs = 1000;
/** Answers take less time than this, so two ends that differ by more are those of different windows. */
const marginMs = 1000;
/** All gateways together reserve at most this part of the quota, so a quota of 100 per gateway is counted request by request. */
const reservedPart = 0.01;
/** A reservation is used without asking again for this long, so that a gateway knows the requests of the others. */
const reservedMs = 1000;

/**
 * The part of the remaining quota that every gateway knows to be left: the largest power of two in it. Each change of it is
 * announced before it takes effect, so that the gateways can divide it when the counter stops answering.
 */
function guaranteed(remaining: number): number {
  return remaining < 1 ? 0 : 2 ** Math.floor(Math.log2(remaining));
}

/** The next count of a key, and whether the counter must announce it before it answers. */
export function nextCount(
  quota: number,
  before: number,
  known: KnownCount,
  requests: number,
): { readonly consumed: number; readonly announce: boolean } {
  const isLost = before < known.consumed; // the counter was restarted: only the guaranteed part is certainly left
  const kept = isLost ? quota - guaranteed(quota - known.consumed) : before;
  const consumed = kept + known.unreported + requests;
  const isLower = before === 0 || guaranteed(quota - consumed) < guaranteed(quota - before);
  return { consumed, announce: consumed > before && isLower };
}

/**
 * Counts in the shared counter, which counts a part of a large quota in advance: a reservation, from which a gateway grants
 * requests without asking. So the gateways never grant more than the quota, and refuse when at most `reservedPart` of it is unused. While the counter does not answer, each of the `gateways` grants its share: of the whole quota in a window that
 * begins in that time, of the guaranteed part in a window that began before. So together they never grant more than the quota,
 * if the counter is away for all of them.
 */
export function sharedLimiter(quota: number, gateways: number, counter: SharedCounter): SharedLimiter {
  const windows = new LRUCache<string, Window>(atMost(windowsMax));
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
    else Object.assign(window, { endsAtMs, consumed: Math.max(window.consumed, consumed) });
  };
  /** Requests that this gateway may reserve beside those that it has reserved; below 0 when it has too many. */
  const reservable = ({ consumed, reserved, reserving }: Window): number =>
    Math.floor((guaranteed(quota - consumed) * reservedPart) / gateways) - reserved - reserving;
  /** Counts in the shared counter with a reservation, and reports the requests that this gateway granted alone, once. */
  const count = async (key: string, requests: 0 | 1): Promise<Count & { allowed: boolean }> => {
    const window = running(key, marginMs) ?? newWindow(performance.now() + windowMs, 0);
    const reserving = requests === 1 && window.consumed > 0 ? Math.max(0, reservable(window)) : 0;
    const { consumed: before, unreported: alone, endsAtMs } = window;
    window.unreported = 0;
    window.askedMs = performance.now();
    const known = { consumed: before, unreported: alone, endsInMs: Math.ceil(endsAtMs - window.askedMs) };
    window.reserving += reserving;
    try {
      const { consumed, endsInMs } = await counter(key, quota, known, requests + reserving);
      learn(key, { consumed, endsInMs });
      window.reserving -= reserving; // without an answer they stay deducted, because they may have been counted
      const own = consumed - reserving;
      window.reserved += Math.min(reserving, Math.max(0, quota - own));
      return { consumed: consumed - window.reserved, endsInMs, allowed: own + 1 - requests <= quota };
    } catch (error) {
      const current = running(key);
      if (current !== undefined) current.unreported += alone;
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
  /** Grants a request that was reserved since then; in the last second of a window none, because it could be used in the next. */
  const grantReserved = (key: string, requests: 0 | 1, askedMsMin: number): RateLimitResult | undefined => {
    const window = running(key, marginMs);
    if (window === undefined || window.reserved === 0 || window.askedMs < askedMsMin) return undefined;
    window.reserved -= requests;
    const { consumed, reserved, endsAtMs } = window;
    return resultOf({ consumed: consumed - reserved, endsInMs: endsAtMs - performance.now() }, true);
  };
  const ask = async (key: string, requests: 0 | 1): Promise<RateLimitResult> => {
    const answer = await count(key, requests).catch(() => null);
    if (answer?.allowed) return resultOf(answer, true);
    return grantReserved(key, requests, 0) ?? (answer === null ? decideAlone(key, requests) : resultOf(answer, false));
  };
  const decide = (key: string, requests: 0 | 1): Awaitable<RateLimitResult> =>
    grantReserved(key, requests, performance.now() - reservedMs) ?? ask(key, requests);
  return { quota, learn, consume: (key) => decide(key, 1), peek: (key) => decide(key, 0) };
}

function newWindow(endsAtMs: number, consumed: number): Window {
  return { endsAtMs, consumed, askedMs: 0, reserved: 0, reserving: 0, granted: 0, unreported: 0, refused: 0 };
}
