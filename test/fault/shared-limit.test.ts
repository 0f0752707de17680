import { Agent, request } from 'node:http';
import { setTimeout as pause } from 'node:timers/promises';
import type { ExecutionContext } from 'ava';
import { type ServeProcess, serveProcess } from '../support/process.js';
import { type RedisServer, redisBinary, startRedis } from '../support/redis.js';
import { gatewayTest, type TestContext } from '../support/workspace.js';

// One token's quota over several processes, in bursts and while the counter that they share stops to answer.

const suite = gatewayTest();
const test = suite.serial;
const withRedis = redisBinary === null ? suite.skip : suite.serial;
const quota = 60;

interface Gateways {
  readonly served: readonly ServeProcess[];
  readonly token: string;
}

async function fourGateways(t: ExecutionContext<TestContext>, redis: RedisServer): Promise<Gateways> {
  t.teardown(() => redis.stop());
  const settings = { ...t.context.database.settings, logLevel: 'error', rateLimitPerMinute: quota } as const;
  const served = await Promise.all(
    Array.from({ length: 4 }, () => serveProcess({ ...settings, redisUrl: redis.url, instances: 4 })),
  );
  for (const each of served) t.teardown(() => each.stop());
  const warm = await t.context.database.token();
  await Promise.all(served.map((each) => get(each, warm)));
  return { served, token: await t.context.database.token() };
}

const agent = new Agent({ keepAlive: true, maxSockets: 100 });

function get(served: ServeProcess, token: string): Promise<number> {
  return new Promise((resolve, reject) => {
    const headers = { authorization: `Bearer ${token}` };
    request(`${served.url}/api/v1/klanten?perPage=1`, { agent, headers }, (response) => {
      response.resume().on('end', () => resolve(response.statusCode as number));
    })
      .on('error', reject)
      .end();
  });
}

/** Sends requests at once, to the gateways in turn. A 503 of a busy machine was granted by the limit. */
async function burst({ served, token }: Gateways, count: number): Promise<{ granted: number; others: number[] }> {
  const all = Array.from({ length: count }, (_, i) => get(served[i % served.length] as ServeProcess, token));
  const statuses = await Promise.all(all);
  return {
    granted: statuses.filter((status) => status !== 429).length,
    others: statuses.filter((status) => ![200, 429, 503].includes(status)),
  };
}

withRedis('a burst of 400 requests over four gateways that share a Redis gets exactly the quota', async (t) => {
  const gateways = await fourGateways(t, await startRedis());
  for (let round = 0; round < 3; round++) {
    const token = await t.context.database.token();
    t.deepEqual(await burst({ ...gateways, token }, 400), { granted: quota, others: [] });
  }
});

for (const [how, stop] of [
  ['killed', (redis: RedisServer) => redis.stop()],
  ['frozen', async (redis: RedisServer) => void redis.process.kill('SIGSTOP')],
] as const) {
  withRedis(`when Redis is ${how} in the middle of a minute no more than the quota is granted in it`, async (t) => {
    const redis = await startRedis();
    const gateways = await fourGateways(t, redis);
    const { granted } = await burst(gateways, 20);
    t.is(granted, 20);
    await stop(redis);
    const later = await burst(gateways, 400);
    t.deepEqual(later.others, []);
    t.true(later.granted > 0, 'each gateway has a share of the rest');
    t.true(granted + later.granted <= quota, `${granted} and ${later.granted} were granted`);
    t.is((await burst(gateways, 100)).granted, 0, 'the share is used up');
    const fresh = await burst({ ...gateways, token: await t.context.database.token() }, 400);
    t.is(fresh.granted, quota, 'a token that begins its minute now has the whole quota, a fourth of it at each');
  });
}

withRedis('when Redis is killed during a burst no more than the quota is granted', async (t) => {
  const redis = await startRedis();
  const gateways = await fourGateways(t, redis);
  const [{ granted }] = await Promise.all([burst(gateways, 400), pause(15).then(() => redis.stop())]);
  const later = await burst(gateways, 100);
  t.true(granted + later.granted <= quota, `${granted} and ${later.granted} were granted`);
});

withRedis('a Redis that lost its counts is told of them, and of what was granted while it was away', async (t) => {
  const redis = await startRedis();
  const gateways = await fourGateways(t, redis);
  const before = await burst(gateways, 20);
  await redis.stop();
  const away = await burst(gateways, 8);
  await redis.start();
  await pause(4000); // connected again, and reported
  const after = await burst(gateways, 400);
  const granted = before.granted + away.granted + after.granted;
  t.true(after.granted > 0 && granted <= quota, `${granted} were granted, ${after.granted} of them afterwards`);
});

test('a burst of 400 requests over four workers gets exactly the quota', async (t) => {
  const served = await serveProcess({
    ...t.context.database.settings,
    logLevel: 'error',
    rateLimitPerMinute: quota,
    webConcurrency: 4,
  });
  t.teardown(() => served.stop());
  for (let round = 0; round < 3; round++) {
    const token = await t.context.database.token();
    t.deepEqual(await burst({ served: [served], token }, 400), { granted: quota, others: [] });
  }
});

test('when the parent of the workers is frozen in the middle of a minute no more than the quota is granted', async (t) => {
  const served = await serveProcess({
    ...t.context.database.settings,
    logLevel: 'error',
    rateLimitPerMinute: quota,
    webConcurrency: 4,
  });
  t.teardown(() => served.stop());
  const warm = await t.context.database.token();
  await burst({ served: [served], token: warm }, 100); // connections with every worker
  const token = await t.context.database.token();
  const { granted } = await burst({ served: [served], token }, 20);
  served.child.kill('SIGSTOP');
  t.teardown(() => served.child.kill('SIGCONT'));
  const later = await burst({ served: [served], token }, 100);
  served.child.kill('SIGCONT');
  t.deepEqual(later.others, []);
  t.true(later.granted > 0 && granted + later.granted <= quota, `${granted} and ${later.granted} were granted`);
});
