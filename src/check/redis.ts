import type { RedisOptions } from 'ioredis';
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

/** Where Redis is: the settings of these names. */
export interface RedisTarget {
  readonly redisUrl: string;
  readonly redisCa: string;
  readonly redisSentinels: string;
  readonly redisSentinelName: string;
}

type AddressOptions = Pick<
  RedisOptions,
  'tls' | 'sentinels' | 'sentinelCommandTimeout' | 'name' | 'sentinelTLS' | 'enableTLSForSentinelMode'
>;

/** How long a Sentinel may take to name the Redis; then the next one is asked. */
const sentinelMsMax = 1000;

/** Options of a connection to Redis beside its URL, from which ioredis takes login, database and, without Sentinels, the address. */
export function redisOptions({ redisUrl, redisCa, redisSentinels, redisSentinelName }: RedisTarget): AddressOptions {
  const tls = redisUrl.startsWith('rediss:') ? { ...(redisCa !== '' && { ca: redisCa }) } : undefined;
  const sentinels = redisSentinels.split(/[\s,]+/).filter(Boolean);
  return {
    ...(tls && { tls }),
    ...(sentinels.length > 0 && {
      sentinels: sentinels.map((address) => {
        const [, host = '', port] = /^\[?(.*?)\]?(?::(\d+))?$/.exec(address) as unknown as [string, string, string?];
        return { host, port: Number(port ?? 26379) };
      }),
      sentinelCommandTimeout: sentinelMsMax,
      name: redisSentinelName,
      ...(tls && { sentinelTLS: tls, enableTLSForSentinelMode: true }),
    }),
  };
}

/** The reason in an error of Redis, without the script that met it. */
export function redisReason({ message }: Error): string {
  return message.replace(/\.? script: .*$/s, '');
}
