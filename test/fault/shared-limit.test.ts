import { Agent, request } from 'node:http';
import type { ExecutionContext } from 'ava';
import { hashToken } from '../../src/serve/http/token-format.js';
import { until } from '../support/patience.js';
import { type RedisServer, redisBinary, startRedis } from '../support/redis.js';
import { type ServeProcess, serveProcess } from '../support/serve-process.js';
import { gatewayTest, type TestContext } from '../support/workspace.js';

// One token's quota over several processes, in bursts and while the counter that they share stops to answer.

const suite = gatewayTest({}, 'second'); // its tokens are the gateway's, with limits of their own
const test = suite.serial;
const withRedis = redisBinary === null ? suite.skip : suite.serial;
const quota = 60;
const instances = 2;

interface Gateways {
  readonly served: readonly ServeProcess[];
  readonly token: string;
}

let peers: readonly ServeProcess[] = [];
let redis: RedisServer;
let workers: ServeProcess;

suite.serial.before(async (t) => {
  const settings = {
    ...t.context.database.settings,
    logLevel: 'error',
    rateLimitPerMinute: quota,
  } as const;
  workers = await serveProcess({ ...settings, webConcurrency: instances });
  if (redisBinary === null) return;
  redis = await startRedis();
  const ofPeers = { ...settings, redisUrl: redis.url, instances };
  peers = await Promise.all(Array.from({ length: instances }, () => serveProcess(ofPeers)));
});
suite.after.always(async () => {
  await Promise.all([...peers, workers].map((each) => each?.stop()));
  await redis?.stop();
});

async function peersCounting(t: ExecutionContext<TestContext>): Promise<Gateways> {
  const { database } = t.context;
  const countsInRedis = async (each: ServeProcess): Promise<boolean> => {
    const { granted } = await burst({ served: [each], token: await database.token() }, quota / instances + 1);
    return granted > quota / instances;
  };
  const all = async (): Promise<boolean> => (await Promise.all(peers.map(countsInRedis))).every(Boolean);
  t.true(await until(all, 20_000, 100), 'all gateways count in Redis');
  return { served: peers, token: await database.token() };
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

async function burst({ served, token }: Gateways, count: number): Promise<{ granted: number; others: number[] }> {
  const all = Array.from({ length: count }, (_, i) => get(served[i % served.length] as ServeProcess, token));
  const statuses = await Promise.all(all);
  return {
    granted: statuses.filter((status) => status !== 429).length,
    others: statuses.filter((status) => ![200, 429, 503].includes(status)),
  };
}

withRedis('a burst of 200 requests over gateways that share a Redis gets exactly the quota', async (t) => {
  const gateways = await peersCounting(t);
  const getsQuota = async (): Promise<boolean> => {
    const { granted, others } = await burst({ ...gateways, token: await t.context.database.token() }, 200);
    t.deepEqual(others, []);
    t.true(granted <= quota);
    return granted === quota; // fewer when a busy Redis answers so late that a gateway goes by its share
  };
  t.true(await until(getsQuota, 20_000, 100));
});

/** A token whose limit of its own is the quota. */
async function tokenOf({ database }: TestContext, ownQuota: number): Promise<string> {
  const token = await database.token();
  const text = 'update gateway.tokens set requests_per_minute = $1 where token_hash = $2';
  await database.primary.query(text, [ownQuota, hashToken(token)]);
  await database.caughtUp();
  return token;
}

for (const ownQuota of [8, 120]) {
  withRedis(`a token with a limit of ${ownQuota} gets exactly that over gateways that share a Redis`, async (t) => {
    const { served } = await peersCounting(t);
    const getsQuota = async (): Promise<boolean> => {
      const { granted } = await burst({ served, token: await tokenOf(t.context, ownQuota) }, 200);
      t.true(granted <= ownQuota);
      return granted === ownQuota;
    };
    t.true(await until(getsQuota, 20_000, 100));
  });

  test(`a token with a limit of ${ownQuota} gets exactly that over workers`, async (t) => {
    const token = await tokenOf(t.context, ownQuota);
    t.deepEqual(await burst({ served: [workers], token }, 200), { granted: ownQuota, others: [] });
  });
}

for (const [how, stop, goOn] of [
  ['killed', () => redis.stop(), () => redis.start()],
  ['frozen', async () => void redis.process.kill('SIGSTOP'), async () => void redis.process.kill('SIGCONT')],
] as const) {
  withRedis(`when Redis is ${how} in the middle of a minute no more than the quota is granted in it`, async (t) => {
    const gateways = await peersCounting(t);
    const { granted } = await burst(gateways, 20);
    t.is(granted, 20);
    await stop();
    t.teardown(goOn);
    const later = await burst(gateways, 200);
    t.deepEqual(later.others, []);
    t.true(later.granted > 0, 'each gateway has a share, of which it granted a part before');
    t.true(granted + later.granted <= quota, `${granted} and ${later.granted} were granted`);
    t.is((await burst(gateways, 100)).granted, 0, 'the share is used up');
    const fresh = await burst({ ...gateways, token: await t.context.database.token() }, 200);
    t.is(fresh.granted, quota, 'a token that begins its minute now has the whole quota, a share of it at each');
  });
}

withRedis('a Redis that lost its counts is told of them, and of what was granted while it was away', async (t) => {
  const gateways = await peersCounting(t);
  const before = await burst(gateways, 20);
  await redis.stop();
  const away = await burst(gateways, 8);
  await redis.start();
  await peersCounting(t); // connected again
  const told = await burst(gateways, instances); // one by each gateway
  const after = await burst(gateways, 200);
  t.is(before.granted + away.granted + told.granted + after.granted, quota);
});

test('a burst of 200 requests over workers gets exactly the quota', async (t) => {
  for (let round = 0; round < 2; round++) {
    const token = await t.context.database.token();
    t.deepEqual(await burst({ served: [workers], token }, 200), { granted: quota, others: [] });
  }
});

test('when the parent of the workers is frozen in the middle of a minute each worker grants its share at most', async (t) => {
  const warm = await t.context.database.token();
  await burst({ served: [workers], token: warm }, 100); // connections with every worker
  const token = await t.context.database.token();
  workers.child.kill('SIGSTOP');
  t.teardown(() => workers.child.kill('SIGCONT'));
  const { granted, others } = await burst({ served: [workers], token }, 200);
  workers.child.kill('SIGCONT');
  t.deepEqual(others, []);
  t.true(granted > 0 && granted <= quota, `${granted} were granted`);
});
