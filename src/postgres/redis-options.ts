import type { RedisOptions } from 'ioredis';

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
