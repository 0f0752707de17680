import { Agent, request } from 'node:http';
import { setTimeout as pause } from 'node:timers/promises';
import type { ExecutionContext } from 'ava';
import { until } from '../../demo/cluster/wait.js';
import { type ServeProcess, serveProcess } from '../support/process.js';
import { type RedisServer, redisBinary, startRedis } from '../support/redis.js';
import { gatewayTest, type TestContext } from '../support/workspace.js';

// One token's quota over several processes, in bursts and while the counter that they share stops to answer.

const suite = gatewayTest();
const test = suite.serial;
const withRedis = redisBinary === null ? suite.skip : suite.serial;
const quota = 60;
/** Of requests without a token: large enough to be reserved. */
const publicQuota = 2000;

interface Gateways {
  readonly served: readonly ServeProcess[];
  readonly token: string;
}

/** Four gateways that share a Redis, and four workers; all tests use them, each with tokens of its own. */
let four: readonly ServeProcess[] = [];
let redis: RedisServer;
let workers: ServeProcess;

suite.serial.before(async (t) => {
  const settings = {
    ...t.context.database.settings,
    logLevel: 'error',
    rateLimitPerMinute: quota,
    publicRequestsPerMinute: publicQuota,
  } as const;
  workers = await serveProcess({ ...settings, webConcurrency: 4 });
  if (redisBinary === null) return;
  redis = await startRedis();
  const ofFour = { ...settings, redisUrl: redis.url, instances: 4 };
  four = await Promise.all(Array.from({ length: 4 }, () => serveProcess(ofFour)));
});
suite.after.always(async () => {
  await Promise.all([...four, workers].map((each) => each?.stop()));
  await redis?.stop();
});

/** The four gateways with a new token, once each of them counts in Redis again: it grants more than a share of its own. */
async function fourGateways(t: ExecutionContext<TestContext>): Promise<Gateways> {
  const { database } = t.context;
  const countsInRedis = async (each: ServeProcess): Promise<boolean> => {
    const { granted } = await burst({ served: [each], token: await database.token() }, quota / 4 + 1);
    return granted > quota / 4;
  };
  const all = async (): Promise<boolean> => (await Promise.all(four.map(countsInRedis))).every(Boolean);
  t.true(await until(all, 20_000, 100), 'all gateways count in Redis');
  return { served: four, token: await database.token() };
}

const agent = new Agent({ keepAlive: true, maxSockets: 100 });

function get(served: ServeProcess, token: string, path = '/klanten?perPage=1', by = agent): Promise<number> {
  return new Promise((resolve, reject) => {
    const headers = { authorization: `Bearer ${token}` };
    request(`${served.url}/api/v1${path}`, { agent: by, headers }, (response) => {
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
  const gateways = await fourGateways(t);
  for (let round = 0; round < 3; round++) {
    const token = await t.context.database.token();
    t.deepEqual(await burst({ ...gateways, token }, 400), { granted: quota, others: [] });
  }
});

for (const [how, stop, goOn] of [
  ['killed', () => redis.stop(), () => redis.start()],
  ['frozen', async () => void redis.process.kill('SIGSTOP'), async () => void redis.process.kill('SIGCONT')],
] as const) {
  withRedis(`when Redis is ${how} in the middle of a minute no more than the quota is granted in it`, async (t) => {
    const gateways = await fourGateways(t);
    const { granted } = await burst(gateways, 20);
    t.is(granted, 20);
    await stop();
    t.teardown(goOn);
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
  for (const killedAfterMs of [10, 15, 20, 24]) {
    const gateways = await fourGateways(t);
    const [{ granted }] = await Promise.all([burst(gateways, 400), pause(killedAfterMs).then(() => redis.stop())]);
    const later = await burst(gateways, 100);
    t.true(granted + later.granted <= quota, `${granted} and ${later.granted} were granted`);
    await redis.start();
  }
});

withRedis('a Redis that lost its counts is told of them, and of what was granted while it was away', async (t) => {
  const gateways = await fourGateways(t);
  const before = await burst(gateways, 20);
  await redis.stop();
  const away = await burst(gateways, 8);
  await redis.start();
  await pause(4000); // connected again, and reported
  const after = await burst(gateways, 400);
  const granted = before.granted + away.granted + after.granted;
  t.true(after.granted > 0 && granted <= quota, `${granted} were granted, ${after.granted} of them afterwards`);
});

for (const [name, run, gateways] of [
  ['four gateways that share a Redis', withRedis, () => four],
  ['four workers', test, () => [workers]],
] as const) {
  run(`${name} grant a large quota together, less one part in a hundred at most`, async (t) => {
    const served = gateways();
    const statuses: number[] = [];
    const client = async (_: unknown, i: number): Promise<void> => {
      for (let n = 0; n < 60; n++) statuses.push(await get(served[i % served.length] as ServeProcess, '', ''));
    };
    await Promise.all(Array.from({ length: 40 }, client));
    const granted = statuses.filter((status) => status === 200).length;
    t.is(statuses.filter((status) => status === 429).length, statuses.length - granted);
    t.true(granted <= publicQuota && granted >= publicQuota * 0.99, `${granted} were granted`);
  });
}

test('a burst of 400 requests over four workers gets exactly the quota', async (t) => {
  for (let round = 0; round < 3; round++) {
    const token = await t.context.database.token();
    t.deepEqual(await burst({ served: [workers], token }, 400), { granted: quota, others: [] });
  }
});

test('when the parent of the workers is frozen in the middle of a minute no more than the quota is granted', async (t) => {
  const warm = await t.context.database.token();
  await burst({ served: [workers], token: warm }, 100); // connections with every worker
  const token = await t.context.database.token();
  // All over one connection, so that the other workers know of them by announcements alone.
  const one = new Agent({ keepAlive: true, maxSockets: 1 });
  t.teardown(() => one.destroy());
  const granted = 50;
  for (let i = 0; i < granted; i++) t.is(await get(workers, token, undefined, one), 200);
  workers.child.kill('SIGSTOP');
  t.teardown(() => workers.child.kill('SIGCONT'));
  const later = await burst({ served: [workers], token }, 100);
  workers.child.kill('SIGCONT');
  t.deepEqual(later.others, []);
  t.true(later.granted > 0 && granted + later.granted <= quota, `${granted} and ${later.granted} were granted`);
});
