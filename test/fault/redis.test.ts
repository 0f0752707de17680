import type { ExecutionContext } from 'ava';
import { redisPeers } from '../../src/peers/redis.js';
import { isLater, type WritePosition } from '../../src/postgres/wal-position.js';
import { limitMs } from '../support/patience.js';
import { type RedisServer, redisBinary, startRedis } from '../support/redis.js';
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

/** Much longer than a request waits for Redis: without that bound each would wait for ever. */
const lateMs = 2000;

/** Statuses of `count` requests with the token, sent to the gateways in turn, and how many were answered late. */
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
    if (performance.now() - startedMs > limitMs(lateMs)) result.late++;
    if (status === 200) result.ok++;
    if (status === 429) result.limited++;
  }
  return result;
}

test(`gateways that share a Redis share the limit${missing}`, async (t) => {
  const { gateways, token } = await twoGateways(t, 20);
  const { ok, limited } = await spend(gateways, token, 30);
  t.is(ok, 20);
  t.is(limited, 10);
});

test(`a write through one gateway is seen through the other${missing}`, async (t) => {
  const { gateways, token } = await twoGateways(t, 100_000);
  const [writer, reader] = gateways as [RunningGateway, RunningGateway];
  const list = (await writer.client.get('/installaties?perPage=1')).json<{ data: { id: string }[] }>();
  const path = `/installaties/${list.data[0]?.id}`;
  for (let i = 0; i < 30; i++) {
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
  const gateways = [redisPeers(target, 2, () => undefined), redisPeers(target, 2, () => undefined)] as const;
  for (const gateway of gateways) t.teardown(() => gateway.close());
  await eventually(t, 'Redis', () => gateways.every((gateway) => gateway.redis()?.healthy));
  const first = written(2n ** 63n, 5000);
  for (const [which, second] of Object.entries(publishedAfter)) {
    await gateways[0].publishWrite(which, first);
    await gateways[1].publishWrite(which, second);
    for (const gateway of gateways)
      t.deepEqual(await gateway.lastWrite(which), isLater(second, first) ? second : first, which);
  }
});

test(`installations in two databases of one Redis do not count for each other${missing}`, async (t) => {
  const redis = await startRedis();
  t.teardown(() => redis.stop());
  const limiterIn = async (database: number) => {
    const target = { redisUrl: `${redis.url}/${database}`, redisCa: '', redisSentinels: '', redisSentinelName: '' };
    const peers = redisPeers(target, 1, () => undefined);
    t.teardown(() => peers.close());
    await eventually(t, 'Redis', () => peers.redis()?.healthy === true);
    return peers.limiter('address', 20);
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
    t.true(late <= 3, `${late} answers took longer than ${lateMs} ms`);
  });
}

test(`when Redis comes back it counts again${missing}`, async (t) => {
  const { redis, gateways } = await twoGateways(t, 20);
  await redis.stop();
  await spend(gateways, await t.context.database.token(), 4);
  await redis.start();
  await eventually(t, 'counting in Redis', async () => {
    const { ok } = await spend(gateways, await t.context.database.token(), 24);
    return ok === 20; // without Redis, too, but then each gateway allows ten of its twelve
  });
  const token = await t.context.database.token();
  const [first] = gateways as [RunningGateway];
  await eventually(t, 'one gateway getting the whole quota', async () => {
    const { ok } = await spend([first], await t.context.database.token(), 24);
    return ok === 20;
  });
  t.is((await spend(gateways, token, 24)).ok, 20);
});
