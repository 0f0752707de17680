import { rmSync } from 'node:fs';
import { setTimeout as sleep } from 'node:timers/promises';
import type { ExecutionContext } from 'ava';
import { Redis } from 'ioredis';
import { isLater, type WritePosition } from '../../src/postgres/wal-position.js';
import { connectRedisPeers } from '../../src/serve/peers/redis.js';
import { makeCertificates } from '../support/certificates.js';
import { limitMs } from '../support/patience.js';
import { type RedisServer, redisBinary, startRedis, startSentinel } from '../support/redis.js';
import { serveProcess } from '../support/serve-process.js';
import { tcpProxy } from '../support/tcp-proxy.js';
import { eventually, gatewayTest, type RunningGateway, type TestContext } from '../support/workspace.js';

const suite = gatewayTest();
// The tests share nothing but the machine; they run one by one because each measures how long an answer takes.
const test = redisBinary === null ? suite.skip : suite.serial;
const missing = redisBinary === null ? ' (skipped: no redis-server or valkey-server on this machine)' : '';

async function twoGateways(
  t: ExecutionContext<TestContext>,
  quota: number,
): Promise<{ redis: RedisServer; gateways: RunningGateway[]; token: string }> {
  const redis = await startRedis();
  t.teardown(() => redis.stop());
  const { database } = t.context;
  const overrides = { redisUrl: redis.url, instances: 2, rateLimitPerMinute: quota };
  const gateways = [await database.gateway(overrides), await database.gateway(overrides)];
  for (const { gateway } of gateways) t.teardown(() => gateway.stop());
  return { redis, gateways, token: await database.token() };
}

/** This is much longer than a request waits for Redis, and less than the 5 s after which the client of Redis gives a socket up. */
const lateMs = (): number => Math.min(limitMs(2000), 4500);

async function spend(
  gateways: RunningGateway[],
  token: string,
  count: number,
): Promise<{ ok: number; limited: number; late: number }> {
  const result = { ok: 0, limited: 0, late: 0 };
  for (let i = 0; i < count; i++) {
    const { client } = gateways[i % gateways.length] as RunningGateway;
    const startedMs = performance.now();
    const { status } = await client.get('/installaties?perPage=1', { token });
    if (performance.now() - startedMs > lateMs()) result.late++;
    if (status === 200) result.ok++;
    if (status === 429) result.limited++;
  }
  return result;
}

test(`a write through one gateway is seen through the other${missing}`, async (t) => {
  const { gateways, token } = await twoGateways(t, 100_000);
  const [writer, reader] = gateways as [RunningGateway, RunningGateway];
  const list = (await writer.client.get('/installaties?perPage=1')).json<{ data: { id: string }[] }>();
  const path = `/installaties/${list.data[0]?.id}`;
  for (let i = 0; i < 15; i++) {
    const { headers } = await reader.client.get(path, { token });
    const written = await writer.client.request('PATCH', path, {
      token,
      headers: { 'idempotency-key': `redis-${i}`, 'if-match': headers.etag },
      body: { locatie: `Plek ${i}` },
    });
    t.is(written.status, 200, written.text);
    t.is((await reader.client.get(path, { token })).headers.etag, written.headers.etag);
  }
});

const written = (lsn: bigint, atMs: number, timeline = '00000001', systemIdentifier = '7000'): WritePosition => {
  return { lsn, timeline, systemIdentifier, atMs };
};

// Each is published by one gateway after the first, which another gateway published: a gateway can be late.
const publishedAfter = {
  'an earlier position of the same history, by a clock that is ahead': written(100n, 9000),
  'the same position': written(2n ** 63n, 5000),
  'a later position of the same history, by a clock that is behind': written(2n ** 63n + 1n, 1000),
  'a position with more digits': written(10n ** 19n, 5000),
  'a position with fewer digits, of which the first is larger': written(99n, 5000),
  'a smaller position of a later moment on another timeline': written(100n, 6000, '00000002'),
  'a larger position of an earlier moment on another timeline': written(10n ** 19n, 4000, '00000002'),
  'a smaller position of a later moment in another cluster': written(100n, 6000, '00000001', '8000'),
  'a larger position of an earlier moment in another cluster': written(10n ** 19n, 4000, '00000001', '8000'),
};

test(`of two writes of a workspace that gateways publish in either order the later one stays${missing}`, async (t) => {
  const redis = await startRedis();
  t.teardown(() => redis.stop());
  const target = { redisUrl: redis.url, redisCa: '', redisSentinels: '', redisSentinelName: '' };
  const gateways = [
    connectRedisPeers(target, 2, () => undefined),
    connectRedisPeers(target, 2, () => undefined),
  ] as const;
  for (const gateway of gateways) t.teardown(() => gateway.close());
  await eventually(t, 'Redis', () => gateways.every((gateway) => gateway.redis()?.healthy));
  const first = written(2n ** 63n, 5000);
  for (const [which, second] of Object.entries(publishedAfter)) {
    await gateways[0].publishWrite(which, first);
    await gateways[1].publishWrite(which, second);
    for (const gateway of gateways)
      t.deepEqual(await gateway.readLastWrite(which), isLater(second, first) ? second : first, which);
  }
});

test(`installations in two databases of one Redis do not count for each other${missing}`, async (t) => {
  const redis = await startRedis();
  t.teardown(() => redis.stop());
  const limiterIn = async (database: number) => {
    const target = { redisUrl: `${redis.url}/${database}`, redisCa: '', redisSentinels: '', redisSentinelName: '' };
    const peers = connectRedisPeers(target, 1, () => undefined);
    t.teardown(() => peers.close());
    await eventually(t, 'Redis', () => peers.redis()?.healthy === true);
    return peers.makeLimiter('address', 20);
  };
  const [first, second] = [await limiterIn(0), await limiterIn(1)];
  for (let i = 0; i < 12; i++) await first.consume('192.0.2.1');
  await new Promise((resolve) => setTimeout(resolve, 200));
  t.is((await second.consume('192.0.2.1')).remaining, 19);
});

for (const [fault, inject] of [
  ['stopped', (redis: RedisServer) => redis.stop()],
  ['frozen', async (redis: RedisServer) => void redis.process.kill('SIGSTOP')],
] as const) {
  test(`with Redis ${fault} each gateway enforces its share, and no request waits longer for it than 250 ms${missing}`, async (t) => {
    const { redis, gateways, token } = await twoGateways(t, 20);
    await spend(gateways, await t.context.database.token(), 4); // connections are open, caches are warm
    await inject(redis);
    const { ok, limited, late } = await spend(gateways, token, 60);
    t.true(ok > 0 && ok <= 20, `${ok} requests were let through`);
    t.is(ok + limited, 60, 'neither an error nor an open door');
    t.is(late, 0, `${late} answers took longer than ${lateMs()} ms`);
  });
}

const together = redisBinary === null ? suite.skip : suite;

async function redisState({ gateway }: RunningGateway): Promise<{ healthy: boolean; reason: string | null } | null> {
  const reply = await fetch(`${gateway.opsUrl}/readyz`);
  if (reply.status !== 200) throw new Error(`/readyz: ${reply.status}`);
  return ((await reply.json()) as { redis: { healthy: boolean; reason: string | null } | null }).redis;
}

async function gauge({ gateway }: RunningGateway): Promise<string | undefined> {
  const text = await (await fetch(`${gateway.opsUrl}/metrics`)).text();
  return /^gateway_redis_up (\d)$/m.exec(text)?.[1];
}

const count = ({ log }: RunningGateway, event: string): number => log().split(`"msg":"${event}"`).length - 1;

async function started(t: Parameters<typeof eventually>[0], server: Promise<RedisServer>): Promise<RedisServer> {
  const redis = await server;
  t.teardown(() => redis.stop());
  return redis;
}

together(`Redis going away and coming back are one event each, a gauge and part of /readyz${missing}`, async (t) => {
  const redis = await started(t, startRedis());
  const running = await t.context.database.gateway({ redisUrl: redis.url });
  const isUp = async (): Promise<boolean> => (await redisState(running))?.healthy === true;
  await eventually(t, 'Redis', isUp);
  t.is(await gauge(running), '1');
  for (const [fault, reason] of [
    ['SIGKILL', /ECONN|no connection/],
    ['SIGSTOP', /does not answer/],
  ] as const) {
    const before = [count(running, 'redis_away'), count(running, 'redis_back')] as const;
    redis.process.kill(fault);
    await eventually(t, `the loss of Redis by ${fault}`, async () => !(await isUp()));
    t.is(await gauge(running), '0');
    t.regex((await redisState(running))?.reason ?? '', reason);
    t.is((await running.client.get('/klanten?perPage=1')).status, 200);
    await sleep(2500); // two more checks, which are no events
    if (fault === 'SIGKILL') await redis.start();
    else redis.process.kill('SIGCONT');
    await eventually(t, 'Redis', isUp);
    t.deepEqual([count(running, 'redis_away'), count(running, 'redis_back')], [before[0] + 1, before[1] + 1], fault);
  }
  t.is(await redisState(t.context), null);
  t.is(await gauge(t.context), undefined);
});

async function connectionIds(admin: Redis): Promise<string[]> {
  const lines = String(await admin.client('LIST')).split('\n');
  return lines
    .filter((line) => line.includes('name=workspace-data-gateway'))
    .map((line) => line.split(' ')[0] as string);
}

together(
  `a Redis that becomes a replica, and answers, is away until it counts again, and is connected to again${missing}`,
  async (t) => {
    const redis = await started(t, startRedis());
    const admin = new Redis(redis.url);
    t.teardown(() => admin.disconnect());
    const running = await t.context.database.gateway({ redisUrl: redis.url });
    const isUp = async (): Promise<boolean> => (await redisState(running))?.healthy === true;
    await eventually(t, 'Redis', isUp);
    const before = await connectionIds(admin);
    t.is(before.length, 1);
    await admin.call('REPLICAOF', '127.0.0.1', '1');
    await eventually(t, 'the refusal', async () => /READONLY/.test((await redisState(running))?.reason ?? ''));
    t.is(await gauge(running), '0');
    t.is((await running.client.get('/klanten?perPage=1')).status, 200);
    await eventually(t, 'another connection', async () => {
      const now = await connectionIds(admin);
      return now.length === 1 && now.every((id) => !before.includes(id));
    });
    await sleep(1500);
    t.deepEqual([count(running, 'redis_away'), count(running, 'redis_back')], [1, 0]);
    await admin.call('REPLICAOF', 'NO', 'ONE');
    await eventually(t, 'Redis', isUp);
    t.deepEqual([count(running, 'redis_away'), count(running, 'redis_back')], [1, 1]);
  },
);

together(`a Redis that answers and refuses to count is away, with its reason${missing}`, async (t) => {
  const redis = await started(t, startRedis());
  const admin = new Redis(redis.url);
  t.teardown(() => admin.disconnect());
  await admin.call('ACL', 'SETUSER', 'limited', 'on', '>secret', '~other:*', '+@all');
  const running = await t.context.database.gateway({ redisUrl: redis.url.replace('//', '//limited:secret@') });
  await eventually(t, 'the refusal', () => count(running, 'redis_away') === 1);
  t.regex((await redisState(running))?.reason ?? '', /key/);
  await admin.call('ACL', 'SETUSER', 'limited', '~gateway:*');
  await eventually(t, 'Redis', async () => (await redisState(running))?.healthy === true);
});

together(`what other clients of Redis store as a position harms no gateway${missing}`, async (t) => {
  const redis = await started(t, startRedis());
  const other = new Redis(redis.url);
  t.teardown(() => other.disconnect());
  const { settings, token, workspaces } = t.context.database;
  const served = await serveProcess({ ...settings, logLevel: 'warn', redisUrl: redis.url });
  t.teardown(() => served.stop('SIGKILL'));
  await other.set(`gateway:written:${workspaces[0]?.id}`, 'hello');
  await sleep(500);
  const headers = { authorization: `Bearer ${await token()}` };
  t.is((await fetch(`${served.url}/api/v1/installaties?perPage=1`, { headers })).status, 200);
  t.is(served.child.exitCode, null);
});

together(
  `the connection to a Redis whose host is gone without closing it is made again within seconds${missing}`,
  async (t) => {
    const redis = await started(t, startRedis());
    const admin = new Redis(redis.url);
    t.teardown(() => admin.disconnect());
    const proxy = await tcpProxy(redis.port);
    t.teardown(() => proxy.close());
    const running = await t.context.database.gateway({ redisUrl: `redis://127.0.0.1:${proxy.port}` });
    const isUp = async (): Promise<boolean> => (await redisState(running))?.healthy === true;
    await eventually(t, 'Redis', isUp);
    proxy.blackHole();
    await eventually(t, 'the loss of Redis', async () => !(await isUp()));
    proxy.restore();
    await eventually(t, 'Redis', isUp);
    await eventually(t, 'a single connection', async () => (await connectionIds(admin)).length === 1);
    t.true(count(running, 'redis_back') > 0);
  },
);

together(
  `a Redis with TLS is used when its certificate comes from REDIS_CA, and not otherwise${missing}`,
  async (t) => {
    const certificates = makeCertificates();
    t.teardown(() => rmSync(certificates.folder, { recursive: true }));
    const redis = await started(t, startRedis(certificates));
    const { database } = t.context;
    const trusting = await database.gateway({ redisUrl: redis.url, redisCa: certificates.ca, rateLimitPerMinute: 5 });
    await eventually(t, 'Redis', async () => (await redisState(trusting))?.healthy === true);
    const statuses: number[] = [];
    for (let i = 0; i < 6; i++) statuses.push((await trusting.client.get('/klanten?perPage=1')).status);
    t.deepEqual(statuses, [200, 200, 200, 200, 200, 429]);
    t.is(count(trusting, 'redis_failed'), 0);
    const wary = await database.gateway({ redisUrl: redis.url });
    await eventually(t, 'the refusal', () => count(wary, 'redis_away') === 1);
    t.regex((await redisState(wary))?.reason ?? '', /CERT|SIGNATURE/);
  },
);

together(
  `Sentinels name the Redis, also after they have chosen another, and a silent one is passed over${missing}`,
  async (t) => {
    const first = await started(t, startRedis(undefined, ['--repl-diskless-sync-delay', '0']));
    const second = await started(t, startRedis(undefined, ['--replicaof', '127.0.0.1', String(first.port)]));
    const sentinel = await startSentinel(first);
    t.teardown(() => sentinel.stop());
    const silent = await tcpProxy(first.port);
    t.teardown(() => silent.close());
    silent.blackHole();
    const redisSentinels = `127.0.0.1:${silent.port} ${sentinel.address}`;
    const settings = { redisUrl: 'redis://sentinels', redisSentinels };
    const running = await t.context.database.gateway(settings);
    await eventually(t, 'the first Redis', async () => (await redisState(running))?.healthy === true);
    const observer = new Redis(second.url);
    t.teardown(() => observer.disconnect());
    const usesSecond = async () => String(await observer.client('LIST')).includes('name=workspace-data-gateway');
    t.false(await usesSecond());
    await first.stop();
    await eventually(t, 'the second Redis', usesSecond, 30_000); // in less than a second, so that the gateway may see no loss
    await eventually(t, 'its answer', async () => (await redisState(running))?.healthy === true);
    t.is((await running.client.get('/klanten?perPage=1')).status, 200);
  },
);
