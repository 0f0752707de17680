import { randomUUID } from 'node:crypto';
import { setTimeout as sleep } from 'node:timers/promises';
import { Redis, type RedisOptions } from 'ioredis';
import type { Observe, ServerStatus } from '../../base/events.js';
import { splitList } from '../../base/members.js';
import type { Settings } from '../../settings.js';
import { connectPeers, type Peers, type SharedStore, SilenceDetector } from './peers.js';

/** After this time every replica has replayed the position, or is ejected. */
const positionTtlSeconds = 3600;
/** Repeats `countNext` of flow/rate-limiter.ts, atomic in Redis. */
const countScript = `
  local known, granted, requests, gateway = tonumber(ARGV[1]), tonumber(ARGV[2]), tonumber(ARGV[3]), ARGV[5]
  local before, own, others = 0, granted + requests, 0
  local kept = redis.call('hgetall', KEYS[1])
  for i = 1, #kept, 2 do
    local count = tonumber(kept[i + 1])
    if kept[i] == 'consumed' then before = count
    elseif kept[i] == gateway then own = math.max(own, count)
    else others = others + count end
  end
  local consumed = math.max(before + requests, known + requests, own + others)
  local ends_in_ms = redis.call('pttl', KEYS[1])
  if consumed > 0 then redis.call('hset', KEYS[1], 'consumed', consumed, gateway, own) end
  if ends_in_ms < 1 then
    ends_in_ms = tonumber(ARGV[4])
    redis.call('pexpire', KEYS[1], ends_in_ms)
  end
  return {consumed, ends_in_ms}`;

/** Repeats `isLater` of wal-position.ts: a late gateway must not replace the write of another. */
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

type ScriptCall<Reply> = (key: string, ...values: (string | number)[]) => Promise<Reply>;
interface Scripts {
  readonly gatewayCount: ScriptCall<[number, number]>;
  readonly gatewayPublish: ScriptCall<null>;
}

const restMs = 1000;

/** Shares limits through Redis or Valkey. While Redis is unreachable each gateway enforces its part; a request waits 250 ms at most. */
export function connectRedisPeers(target: RedisTarget, instances: number, observe: Observe): Peers {
  const redis = connect(target);
  redis.defineCommand('gatewayCount', { numberOfKeys: 1, lua: countScript });
  redis.defineCommand('gatewayPublish', { numberOfKeys: 1, lua: publishScript });
  const commands = redis as unknown as Scripts;
  const id = randomUUID();
  const answers = new SilenceDetector(restMs, () => observe({ type: 'redis_failed' }));
  const positionKey = (workspace: string): string => `gateway:written:${workspace}`;
  const store: SharedStore = {
    count: async (key, { consumed, granted, endsInMs }, requests) => {
      const values = [consumed, granted, requests, endsInMs, id];
      const [counted, leftMs] = await commands.gatewayCount(`gateway:${key}`, ...values);
      return { consumed: counted, endsInMs: leftMs };
    },
    publish: (workspace, position) => commands.gatewayPublish(positionKey(workspace), position, positionTtlSeconds),
    readLastWrite: (workspace) => redis.get(positionKey(workspace)),
  };
  /** Lasts a millisecond, so that each try sets. */
  const tryCount = (): Promise<unknown> => commands.gatewayCount('gateway:health', 0, 0, 1, 1, '');
  const health = watchRedisHealth(redis, tryCount, observe);
  return {
    ...connectPeers(instances, store, (request) =>
      redis.status === 'ready' ? answers.ask(request) : Promise.reject(new Error(redis.status)),
    ),
    redis: () => health.state,
    close: () => {
      health.stop();
      redis.disconnect();
    },
  };
}

/** Connects again after this silence, because a host that is gone closes no connection. */
const silentMsMax = 5000;

function connect(target: RedisTarget): Redis {
  return new Redis(target.redisUrl, {
    ...makeRedisOptions(target),
    enableOfflineQueue: false,
    maxRetriesPerRequest: 0,
    connectTimeout: 1000,
    socketTimeout: silentMsMax,
    retryStrategy: (attempt) => Math.min(attempt * 100, 1000),
    connectionName: 'workspace-data-gateway',
  });
}

type RedisTarget = Pick<Settings, 'redisUrl' | 'redisCa' | 'redisSentinels' | 'redisSentinelName'>;

type AddressOptions = Pick<
  RedisOptions,
  'tls' | 'sentinels' | 'sentinelCommandTimeout' | 'name' | 'sentinelTLS' | 'enableTLSForSentinelMode'
>;

const sentinelMsMax = 1000;

/** Adds to the URL, from which ioredis takes login, database and, without Sentinels, the address. */
function makeRedisOptions({ redisUrl, redisCa, redisSentinels, redisSentinelName }: RedisTarget): AddressOptions {
  const tls = redisUrl.startsWith('rediss:') ? { ...(redisCa !== '' && { ca: redisCa }) } : undefined;
  const sentinels = splitList(redisSentinels);
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

function getRedisReason({ message }: Error): string {
  return message.replace(/\.? script: .*$/s, '');
}

const checkMs = 1000;
export const notConnected = 'no connection'; // the reason before the first connection or error
const replicaAnswers = /READONLY|MASTERDOWN/;

/** Reports each change once. Down means no answer for a second (250 ms occur on a busy machine), or no counting, as on a replica. */
function watchRedisHealth(redis: Redis, tryCount: () => Promise<unknown>, observe: Observe) {
  let state: ServerStatus | null = null; // before the first answer there is no verdict
  let wasHealthy = true; // a Redis that answers the first question is no event
  let lastError = notConnected;
  let asked: Promise<string | null> | null = null;
  redis.on('error', (error: NodeJS.ErrnoException) => {
    lastError = error.code ?? error.message;
  });
  const ask = async (): Promise<string | null> => {
    const reasonOf = (error: Error): string => (redis.status === 'ready' ? getRedisReason(error) : lastError);
    const reason = await tryCount().then(() => null, reasonOf);
    asked = null;
    return reason;
  };
  const check = async (): Promise<void> => {
    asked ??= ask(); // a question that a frozen Redis has not answered stays the only one
    const reason = await Promise.race([asked, sleep(checkMs, 'it does not answer', { ref: false })]);
    state = { healthy: reason === null, reason };
    if (reason === null && !wasHealthy) observe({ type: 'redis_back' });
    if (reason !== null && wasHealthy) observe({ type: 'redis_away', reason });
    wasHealthy = state.healthy;
    if (replicaAnswers.test(reason ?? '') && redis.status === 'ready') redis.disconnect(true);
  };
  const timer = setInterval(() => void check(), checkMs).unref();
  redis.on('ready', check);
  return {
    get state() {
      return state;
    },
    stop: () => clearInterval(timer),
  };
}
