import { Redis } from 'ioredis';
import { untilSocketsRead } from '../db/event-loop.js';
import { type RedisTarget, redisOptions } from '../db/redis-options.js';
import { formatPosition, parsePosition } from '../db/wal-position.js';
import type { Observe } from '../events.js';
import { Answers } from './answers.js';
import type { Peers } from './peers.js';
import { redisHealth } from './redis-health.js';
import { type Count, type SharedCounter, type SharedLimiter, sharedLimiter } from './shared-limiter.js';

/** Long enough that every replica has replayed the position, or is out. */
const positionTtlSeconds = 3600;
/** The channel of announcements, by the number of the database: keys belong to a database of Redis, and channels to none. */
const channelOf = ({ options }: Redis): string => `gateway:counts:${options.db ?? 0}`;

/** `nextCount` of shared-limiter.ts, atomic in Redis: the script's reply and its announcement leave Redis together. */
const countScript = (channel: string): string => `
  local function guaranteed(remaining)
    local amount = remaining < 1 and 0 or 1
    while amount > 0 and amount * 2 <= remaining do amount = amount * 2 end
    return amount
  end
  local quota, known, unreported, requests = tonumber(ARGV[1]), tonumber(ARGV[2]), tonumber(ARGV[3]), tonumber(ARGV[4])
  local before = tonumber(redis.call('get', KEYS[1]) or '0')
  local kept = before < known and quota - guaranteed(quota - known) or before
  local consumed = kept + unreported + requests
  local ends_in_ms = redis.call('pttl', KEYS[1])
  if ends_in_ms < 1 then ends_in_ms = tonumber(ARGV[5]) end
  if consumed > before then
    redis.call('set', KEYS[1], consumed, 'PX', ends_in_ms)
    if before == 0 or guaranteed(quota - consumed) < guaranteed(quota - before) then
      redis.call('publish', '${channel}', cjson.encode({ARGV[6], ARGV[7], consumed, ends_in_ms}))
    end
  end
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
  redis.defineCommand('gatewayCount', { numberOfKeys: 1, lua: countScript(channelOf(redis)) });
  redis.defineCommand('gatewayPublish', { numberOfKeys: 1, lua: publishScript });
  const commands = redis as unknown as Commands;
  const answers = new Answers(() => observe({ type: 'redis_failed' }));
  const ask = <T>(request: () => Promise<T>): Promise<T> =>
    redis.status === 'ready'
      ? answers.ask(request)
      : untilSocketsRead().then(() => Promise.reject(new Error(redis.status))); // a gateway decides alone after all announcements
  const limiters = new Map<string, SharedLimiter>();
  const subscriber = listenTo(target, (name, key, count) => limiters.get(name)?.learn(key, count));
  /** A window of a millisecond, so that each try sets, and announces. */
  const tryCount = (): Promise<unknown> => commands.gatewayCount('gateway:health', 1, 0, 0, 1, 1, 'health', '');
  const health = redisHealth(redis, subscriber, tryCount, observe);
  const counterOf =
    (name: string): SharedCounter =>
    async (key, quota, { consumed, unreported, endsInMs }, requests) => {
      const values = [quota, consumed, unreported, requests, endsInMs, name, key];
      const [counted, leftMs] = await ask(() => commands.gatewayCount(`gateway:${name}:${key}`, ...values));
      return { consumed: counted, endsInMs: leftMs };
    };
  return {
    limiter: (name, quota) => {
      const limiter = sharedLimiter(quota, instances, counterOf(name));
      limiters.set(name, limiter);
      return limiter;
    },
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
      subscriber.disconnect();
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
    autoResubscribe: false, // listenTo subscribes; ioredis leaves the failure of its own attempt unhandled, which ends the process
    connectTimeout: 1000,
    socketTimeout: silentMsMax,
    retryStrategy: (attempt) => Math.min(attempt * 100, 1000),
    connectionName: 'workspace-data-gateway',
  });
  redis.on('error', () => {}); // redis-health.ts reports it
  return redis;
}

/** Opens a connection for announcements, because Redis allows no other command on a subscribed connection. */
function listenTo(target: RedisTarget, onCount: (name: string, key: string, count: Count) => void): Redis {
  const subscriber = connect(target);
  subscriber.on('ready', () => void subscriber.subscribe(channelOf(subscriber)).catch(() => undefined));
  subscriber.on('message', (_, text: string) => {
    try {
      const [name, key, consumed, endsInMs] = JSON.parse(text) as [string, string, number, number];
      onCount(name, key, { consumed, endsInMs });
    } catch {
      // No announcement of a gateway: every client of this Redis can publish in the channel. An error here would end the process.
    }
  });
  return subscriber;
}

function positionKey(workspace: string): string {
  return `gateway:written:${workspace}`;
}
