import { rmSync } from 'node:fs';
import { setTimeout as sleep } from 'node:timers/promises';
import { Redis } from 'ioredis';
import { makeCertificates } from '../support/certificates.js';
import { type RedisServer, redisBinary, startRedis, startSentinel } from '../support/redis.js';
import { serveProcess } from '../support/serve-process.js';
import { tcpProxy } from '../support/tcp-proxy.js';
import { eventually, gatewayTest, type RunningGateway } from '../support/workspace.js';

const suite = gatewayTest();
const test = redisBinary === null ? suite.skip : suite;
const missing = redisBinary === null ? ' (skipped: no redis-server or valkey-server on this machine)' : '';

/** The state of Redis, as /readyz tells it. */
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

test(`Redis going away and coming back are one event each, a gauge and part of /readyz${missing}`, async (t) => {
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

/** Ids of the gateway's connections, as Redis counts them. */
async function connectionIds(admin: Redis): Promise<string[]> {
  const lines = String(await admin.client('LIST')).split('\n');
  return lines
    .filter((line) => line.includes('name=workspace-data-gateway'))
    .map((line) => line.split(' ')[0] as string);
}

test(`a Redis that becomes a replica, and answers, is away until it counts again, and is connected to again${missing}`, async (t) => {
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
});

test(`a Redis that answers and refuses to count is away, with its reason${missing}`, async (t) => {
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

test(`what other clients of Redis store as a position harms no gateway${missing}`, async (t) => {
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

test(`the connection to a Redis whose host is gone without closing it is made again within seconds${missing}`, async (t) => {
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
});

test(`a Redis with TLS is used when its certificate comes from REDIS_CA, and not otherwise${missing}`, async (t) => {
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
});

test(`a Sentinel that accepts connections and does not answer is passed over${missing}`, async (t) => {
  const redis = await started(t, startRedis(undefined, ['--repl-diskless-sync-delay', '0']));
  await started(t, startRedis(undefined, ['--replicaof', '127.0.0.1', String(redis.port)]));
  const sentinel = await startSentinel(redis);
  t.teardown(() => sentinel.stop());
  const silent = await tcpProxy(redis.port);
  t.teardown(() => silent.close());
  silent.blackHole();
  const redisSentinels = `127.0.0.1:${silent.port} ${sentinel.address}`;
  const running = await t.context.database.gateway({ redisUrl: 'redis://sentinels', redisSentinels });
  await eventually(t, 'Redis', async () => (await redisState(running))?.healthy === true);
  t.is(await gauge(running), '1');
});

test(`Sentinels name the Redis, also after they have chosen another${missing}`, async (t) => {
  const first = await started(t, startRedis(undefined, ['--repl-diskless-sync-delay', '0']));
  const second = await started(t, startRedis(undefined, ['--replicaof', '127.0.0.1', String(first.port)]));
  const sentinel = await startSentinel(first);
  t.teardown(() => sentinel.stop());
  const settings = { redisUrl: 'redis://sentinels', redisSentinels: sentinel.address };
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
});
