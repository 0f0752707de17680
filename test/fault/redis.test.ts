import type { ExecutionContext } from 'ava';
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

/** Statuses of `count` requests with the token, sent to the gateways in turn, and the longest time one took. */
async function spend(
  gateways: RunningGateway[],
  token: string,
  count: number,
): Promise<{ ok: number; limited: number; slowestMs: number }> {
  const result = { ok: 0, limited: 0, slowestMs: 0 };
  for (let i = 0; i < count; i++) {
    const { client } = gateways[i % gateways.length] as RunningGateway;
    const startedMs = performance.now();
    const { status } = await client.get('/installaties?perPage=1', { token });
    result.slowestMs = Math.max(result.slowestMs, performance.now() - startedMs);
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

for (const [fault, inject] of [
  ['stopped', (redis: RedisServer) => redis.stop()],
  ['frozen', async (redis: RedisServer) => void redis.process.kill('SIGSTOP')],
] as const) {
  test(`with Redis ${fault} each gateway enforces its share, and no request waits longer for it than 250 ms${missing}`, async (t) => {
    const { redis, gateways, token } = await twoGateways(t, 20);
    await spend(gateways, await t.context.database.token(), 4); // connections are open, caches are warm
    await inject(redis);
    const { ok, limited, slowestMs } = await spend(gateways, token, 60);
    t.true(ok > 0 && ok <= 20, `${ok} requests were let through`);
    t.is(ok + limited, 60, 'neither an error nor an open door');
    t.true(slowestMs < 450, `the slowest answer took ${slowestMs} ms`);
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
