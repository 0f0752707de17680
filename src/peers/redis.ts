import { Redis } from 'ioredis';
import { type RedisTarget, redisOptions } from '../db/redis-options.js';
import { formatPosition, parsePosition } from '../db/wal-position.js';
import type { Observe } from '../events.js';
import { rateLimiter, type SharedCounter } from '../flow/rate-limiter.js';
import { Answers } from './answers.js';
import type { Peers } from './peers.js';
import { redisHealth } from './redis-health.js';

/** Long enough that every replica has replayed the position, or is out. */
const positionTtlSeconds = 3600;
/** `nextCount` of flow/rate-limiter.ts, atomic in Redis. */
const countScript = `
  local known, unreported, requests = tonumber(ARGV[1]), tonumber(ARGV[2]), tonumber(ARGV[3])
  local before = tonumber(redis.call('get', KEYS[1]) or '0')
  local consumed = math.max(before, known) + unreported + requests
  local ends_in_ms = redis.call('pttl', KEYS[1])
  if ends_in_ms < 1 then ends_in_ms = tonumber(ARGV[4]) end
  if consumed > before then redis.call('set', KEYS[1], consumed, 'PX', ends_in_ms) end
  return {consumed, ends_in_ms}`;

/** Keeps the later of two positions by `isLater` of wal-position.ts: a gateway that is late must not replace the write of another. */
const publishScript = `
  local function is_later(a, b)
    if a[2] ~= b[2] or a[3] ~= b[3] then return a[4] >= b[4] end
    if #a[1] ~= #b[1] then return #a[1] > #b[1] end
    return a[1] >= b[1]
  end
  local kept = redis.call('get', KEYS[1])
  if not kept or is_later(cjson.decode(ARGV[1]), cjson.decode(kept)) then
    redis.call('set', KEYS[1], ARGV[1], 'EX', ARGV[2])
  end`;

type Command<Reply> = (key: string, ...values: (string | number)[]) => Promise<Reply>;
interface Commands {
  readonly gatewayCount: Command<[number, number]>;
  readonly gatewayPublish: Command<null>;
}

/**
 * Peers on many machines, which share through Redis or Valkey. While Redis is away each gateway enforces its share of the
 * limits, so that together they grant no more than the whole. Redis delays a request by about 250 ms at most and refuses none.
 */
export function redisPeers(target: RedisTarget, instances: number, observe: Observe): Peers {
  const redis = connect(target);
  redis.defineCommand('gatewayCount', { numberOfKeys: 1, lua: countScript });
  redis.defineCommand('gatewayPublish', { numberOfKeys: 1, lua: publishScript });
  const commands = redis as unknown as Commands;
  const answers = new Answers(() => observe({ type: 'redis_failed' }));
  const ask = <T>(request: () => Promise<T>): Promise<T> =>
    redis.status === 'ready' ? answers.ask(request) : Promise.reject(new Error(redis.status));
  /** A window of a millisecond, so that each try sets. */
  const tryCount = (): Promise<unknown> => commands.gatewayCount('gateway:health', 0, 0, 1, 1);
  const health = redisHealth(redis, tryCount, observe);
  const counterOf =
    (name: string): SharedCounter =>
    async (key, { consumed, unreported, endsInMs }, requests) => {
      const values = [consumed, unreported, requests, endsInMs];
      const [counted, leftMs] = await ask(() => commands.gatewayCount(`gateway:${name}:${key}`, ...values));
      return { consumed: counted, endsInMs: leftMs };
    };
  return {
    limiter: (name, quota) => rateLimiter(quota, { gateways: instances, counter: counterOf(name) }),
    publishWrite: async (workspace, position) => {
      const sent = commands.gatewayPublish(positionKey(workspace), formatPosition(position), positionTtlSeconds);
      sent.catch(() => undefined);
      await ask(() => sent).catch(() => undefined); // sent even while `answers` asks Redis nothing
    },
    lastWrite: (workspace) =>
      ask(() => redis.get(positionKey(workspace)))
        .then((text) => (text === null ? undefined : parsePosition(text)))
        .catch(() => undefined),
    redis: () => health.state,
    close: () => {
      health.stop();
      redis.disconnect();
    },
  };
}

/**
 * How long a connection may leave a command unanswered until it is made again: a host that is gone closes no connection, and another may
 * have its address by now, or be named by the Sentinels.
 */
const silentMsMax = 5000;

function connect(target: RedisTarget): Redis {
  const redis = new Redis(target.redisUrl, {
    ...redisOptions(target),
    enableOfflineQueue: false,
    maxRetriesPerRequest: 0,
    connectTimeout: 1000,
    socketTimeout: silentMsMax,
    retryStrategy: (attempt) => Math.min(attempt * 100, 1000),
    connectionName: 'workspace-data-gateway',
  });
  redis.on('error', () => {}); // redis-health.ts reports it
  return redis;
}

function positionKey(workspace: string): string {
  return `gateway:written:${workspace}`;
}
