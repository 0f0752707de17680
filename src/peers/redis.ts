import { Redis } from 'ioredis';
import { RateLimiterRedis } from 'rate-limiter-flexible';
import { formatPosition, parsePosition } from '../db/wal-position.js';
import type { Observe } from '../events.js';
import { type Limiter, limiterOf, memoryLimiter, windowSeconds } from '../http/limits.js';
import { type Peers, peerWaitMs } from './peers.js';

/** After a failure Redis is not asked for this long, so that a black hole costs one request 50 ms and not every one. */
const restMs = 1000;
/** A write position is of no use once every replica has replayed it, or is out. */
const positionTtlSeconds = 3600;

/**
 * Gateways on many machines, sharing through Redis or Valkey. When it is away each enforces its share of the limits, never
 * more than all of them together may; requests are not refused for it and wait at most 50 ms.
 */
export function redisPeers(url: string, instances: number, observe: Observe): Peers {
  const redis = new Redis(url, {
    enableOfflineQueue: false,
    maxRetriesPerRequest: 0,
    connectTimeout: 1000,
    retryStrategy: (attempt) => Math.min(attempt * 100, 1000),
    connectionName: 'workspace-data-gateway',
  });
  redis.on('error', () => {}); // told below, by the request that finds it away
  let restUntilMs = 0;
  /** Asks Redis, bounded; `otherwise` when it is away. */
  const ask = async <T>(question: () => Promise<T>, otherwise: () => T | Promise<T>): Promise<T> => {
    if (redis.status !== 'ready' || performance.now() < restUntilMs) return otherwise();
    try {
      return await within(peerWaitMs, question());
    } catch {
      restUntilMs = performance.now() + restMs;
      observe({ type: 'redis_failed' });
      return otherwise();
    }
  };
  return {
    limiter: (name, quota) => sharedLimiter(name, quota, redis, instances, ask),
    publishWrite: (workspace, position) =>
      ask(
        async () => {
          await redis.set(positionKey(workspace), formatPosition(position), 'EX', positionTtlSeconds);
        },
        () => {},
      ),
    lastWrite: (workspace) =>
      ask(
        async () => {
          const text = await redis.get(positionKey(workspace));
          return text === null ? undefined : parsePosition(text);
        },
        () => undefined,
      ),
    close: () => redis.disconnect(),
  };
}

type Ask = <T>(question: () => Promise<T>, otherwise: () => T | Promise<T>) => Promise<T>;

/** Counts in Redis; its share of the quota here while Redis is away. */
function sharedLimiter(name: string, quota: number, redis: Redis, instances: number, ask: Ask): Limiter {
  const shared = limiterOf(
    quota,
    new RateLimiterRedis({
      storeClient: redis,
      keyPrefix: `gateway:${name}`,
      points: quota,
      duration: windowSeconds,
      rejectIfRedisNotReady: true,
    }),
  );
  const local = memoryLimiter(name, Math.max(1, Math.floor(quota / instances)));
  return {
    quota,
    consume: (key) =>
      ask(
        () => shared.consume(key),
        () => local.consume(key),
      ),
    peek: (key) =>
      ask(
        () => shared.peek(key),
        () => local.peek(key),
      ),
  };
}

function positionKey(workspace: string): string {
  return `gateway:written:${workspace}`;
}

async function within<T>(ms: number, work: Promise<T>): Promise<T> {
  let timer: NodeJS.Timeout | undefined;
  const late = new Promise<never>((_, reject) => {
    timer = setTimeout(() => reject(new Error(`no answer within ${ms} ms`)), ms);
  });
  try {
    return await Promise.race([work, late]);
  } finally {
    clearTimeout(timer);
  }
}
