import { type RedisTarget, redisOptions, redisReason } from '../postgres/redis-options.js';
import { failure, type Item, verdict } from './finding.js';

/** Sets a key, as the scripts of peers/redis.ts do. */
const trial = `redis.call('set', KEYS[1], 1, 'PX', 1)`;

/** Checks that Redis answers, accepts the login and the certificate, and runs scripts that write, which count limits and keep writes. */
export async function checkRedis(target: RedisTarget, connectTimeoutMs: number): Promise<Item> {
  const { Redis } = await import('ioredis'); // only here: a gateway without Redis does not load it
  const redis = new Redis(target.redisUrl, {
    ...redisOptions(target),
    sentinelRetryStrategy: () => null,
    lazyConnect: true,
    connectTimeout: connectTimeoutMs,
    commandTimeout: connectTimeoutMs,
    maxRetriesPerRequest: 0,
    retryStrategy: () => null,
    connectionName: 'gateway-check',
  });
  let reason = '';
  redis.on('error', (error: Error & { code?: string }) => {
    reason = error.message || error.code || '';
  });
  try {
    await redis.connect();
    await redis.ping();
    await redis.select(redis.options.db ?? 0); // ioredis goes on in database 0 where this one is missing
    await redis.eval(trial, 1, 'gateway:check');
    return verdict('redis', [], 'It answers, accepts the login and runs scripts that write.');
  } catch (error) {
    return failure('redis', `It does not answer as it must: ${reason || redisReason(error as Error)}.`);
  } finally {
    redis.disconnect();
  }
}
