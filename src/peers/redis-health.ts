import { setTimeout as sleep } from 'node:timers/promises';
import type { Redis } from 'ioredis';
import { redisReason } from '../db/redis-options.js';
import type { Observe } from '../events.js';

/** Whether Redis answers and counts, as /readyz and the metrics show it. */
export interface RedisState {
  readonly healthy: boolean;
  /** Why it is away; null while it is healthy. */
  readonly reason: string | null;
}

export interface RedisHealth {
  readonly state: RedisState;
  stop(): void;
}

const checkMs = 1000;
const connecting: ReadonlySet<string> = new Set(['wait', 'connecting', 'connect']);

/** Answers of a Redis that has become a replica: another server takes the writes now. */
const replicaAnswers = /READONLY|MASTERDOWN/;

/**
 * Asks Redis every second by `tryCount`, and reports each change once: requests go on without Redis, so no client notices. Redis is
 * away when it has not answered for a second, because the 250 ms that a request waits for it can be too short on a busy machine, or
 * when it refuses to count: a replica answers PING. While it is a replica, the connection is made again every second.
 */
export function redisHealth(redis: Redis, tryCount: () => Promise<unknown>, observe: Observe): RedisHealth {
  let state: RedisState | undefined;
  let lastError = '';
  let asked: Promise<string | null> | null = null;
  redis.on('error', (error: NodeJS.ErrnoException) => {
    lastError = error.code ?? error.message;
  });
  const ask = async (): Promise<string | null> => {
    const reasonOf = (error: Error): string =>
      redis.status === 'ready' ? redisReason(error) : lastError || 'no connection';
    const failure = await tryCount().then(() => null, reasonOf);
    asked = null;
    return failure;
  };
  const check = async (): Promise<void> => {
    asked ??= ask(); // a question that a frozen Redis has not answered stays the only one
    const failure = await Promise.race([asked, sleep(checkMs, 'it does not answer', { ref: false })]);
    if (state === undefined && failure !== null && connecting.has(redis.status) && lastError === '') return;
    const before = state?.healthy ?? true;
    state = { healthy: failure === null, reason: failure };
    if (before && failure !== null) observe({ type: 'redis_away', reason: failure });
    if (!before && failure === null) observe({ type: 'redis_back' });
  };
  const leaveReplica = (): void => {
    if (replicaAnswers.test(state?.reason ?? '') && redis.status === 'ready') redis.disconnect(true);
  };
  const timer = setInterval(() => void check().then(leaveReplica), checkMs).unref();
  redis.on('ready', check);
  return {
    get state() {
      return state ?? { healthy: false, reason: 'not asked yet' };
    },
    stop: () => clearInterval(timer),
  };
}
