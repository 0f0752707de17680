import { setMaxListeners } from 'node:events';
import suite from 'ava';
import type { PgNode } from '../../demo/cluster/node.js';
import { type FaultCluster, faultCluster } from '../support/fault-cluster.js';
import { readPage, withoutCursors } from '../support/page-reader.js';
import { until } from '../support/patience.js';

const test = suite.serial;

// Too much at once: what is over a bound is told so quickly, and the rest does not notice.

let setUp: FaultCluster;
let token: string;
let other: string;

test.before(async () => {
  setUp = await faultCluster({ replicas: 1 });
  token = await setUp.token();
  other = await setUp.token({ workspace: 1 });
});
test.after.always(() => setUp?.stop());

const one = { shortConnections: 1, shortDepth: 1, shortPerWorkspace: 1, longConnections: 1, longPerWorkspace: 1 };
const sleep = (ms: number) => new Promise((resolve) => setTimeout(resolve, ms));

test('with every connection asleep a single record gets 503 soon', async (t) => {
  const gateway = await setUp.gateway({ ...one, quietMs: 10_000 });
  const path = async (each: string): Promise<string> => {
    const { data } = JSON.parse((await readPage(gateway.url('/klanten?perPage=1'), { token: each })).body);
    return gateway.url(`/klanten/${data[0].id}`);
  };
  const [ours, theirs] = [await path(token), await path(other)];
  await setUp.pace(30); // it sleeps for six seconds, many times what a single record waits
  const sleeper = readPage(gateway.url('/installaties?perPage=200'), { token });
  await until(() => gateway.gateway.replicas[0]?.short.inFlight === 1, 2000, 1);
  const refused = await Promise.all(
    [token, other, other].map((each) => readPage(each === token ? ours : theirs, { token: each })),
  );
  t.is(gateway.gateway.replicas[0]?.short.inFlight, 1, 'they were refused before it woke');
  for (const { status, body, headers } of refused) {
    t.is(status, 503);
    t.is(JSON.parse(body).code, 'overloaded');
    t.regex(String(headers['retry-after']), /^[1-9]\d*$/);
  }
  t.is(await gateway.metric('gateway_requests_shed_total', { bound: 'connections' }), 3);
  t.is((await sleeper).status, 200);
  t.is((await readPage(gateway.url('/klanten?perPage=1'), { token })).status, 200);
  await setUp.pace(0);
  await gateway.backToNormal(t);
  await gateway.stop();
});

test('lists that wait for a connection hold no buffer', async (t) => {
  const gateway = await setUp.gateway({ ...one, quietMs: 60_000, queueWaitMs: 60_000 });
  const short = gateway.gateway.replicas[0]?.short;
  const read = () => readPage(gateway.url('/klanten?perPage=1'), { token: other });
  await read();
  await setUp.pace(50);
  const sleeper = readPage(gateway.url('/installaties?perPage=100'), { token });
  t.true(await until(() => (short?.inFlight ?? 0) > 0, 20_000, 1));
  const before = process.memoryUsage().arrayBuffers;
  const lists = Array.from({ length: 60 }, read);
  t.true(await until(() => (short?.waiting ?? 0) >= lists.length - 1, 20_000, 1));
  const bytesEach = (process.memoryUsage().arrayBuffers - before) / lists.length;
  t.true(bytesEach < 32_768, `each waits with ${bytesEach} bytes`);
  await setUp.pace(0);
  for (const { status } of await Promise.all([sleeper, ...lists])) t.is(status, 200);
  await gateway.stop();
});

test('forty clients that begin a walk at once wait for each other, and none gets 503', async (t) => {
  const gateway = await setUp.gateway({ queueWaitMs: 600_000, detailWaitMs: 200 });
  const tokens = await Promise.all(Array.from({ length: 40 }, () => setUp.token({ workspace: 1 })));
  await setUp.pace(2); // their first pages together take many times what a single record waits
  const walk = async (each: string, perPage: number): Promise<number[]> => {
    const statuses: number[] = [];
    for (let url: string | null = gateway.url(`/installaties?perPage=${perPage}`); url !== null; ) {
      const { status, body } = await readPage(url, { token: each });
      statuses.push(status);
      url = status === 200 ? JSON.parse(body).pagination.next : null;
    }
    return statuses;
  };
  const walks = await Promise.all(tokens.map((each, i) => walk(each, [20, 300, 10_000][i % 3] as number)));
  t.deepEqual([...new Set(walks.flat())], [200]);
  t.is(await gateway.metric('gateway_requests_shed_total'), 0);
  await setUp.pace(0);
  await gateway.stop();
});

test('after a storm of aborted requests on one connection the next answer is right', async (t) => {
  const gateway = await setUp.gateway({
    ...one,
    chunkRowsMax: 400,
    largePagesPerToken: 100,
    largePagesPerWorkspace: 100,
  });
  const right = (await readPage(gateway.url('/werkbonnen?perPage=250'), { token })).body;
  await setUp.pace(1);
  for (let round = 0; round < 4; round++) {
    await Promise.all(
      Array.from({ length: 30 }, async (_, i) => {
        const gone = new AbortController();
        setTimeout(() => gone.abort(), (i * 7 + round * 3) % 60);
        await readPage(gateway.url(`/installaties?perPage=${300 + i * 10}`), { token, signal: gone.signal });
      }),
    );
    await sleep(120);
    const next = await readPage(gateway.url('/werkbonnen?perPage=250'), { token });
    t.is(next.status, 200);
    t.true(withoutCursors(next.body) === withoutCursors(right));
    const [replica] = setUp.cluster.replicas as [PgNode];
    const sessions = `select from pg_stat_activity where application_name = 'workspace-data-gateway'`;
    const areFew = async () => (await replica.query(sessions)).length <= 2 * 3; // short, long, probe; each may replace one that ends
    t.true(await until(areFew, 20_000), 'the others end');
  }
  await setUp.pace(0);
  await gateway.backToNormal(t);
  await gateway.stop();
});

test('a token and a workspace have only so many large pages under way', async (t) => {
  const enough = { longConnections: 10, longPerWorkspace: 40 }; // also a quarter of it, while the other workspace is served
  const gateway = await setUp.gateway({
    ...enough,
    chunkRowsMax: 100,
    largePagesPerToken: 2,
    largePagesPerWorkspace: 3,
    queueWaitMs: 1000,
  });
  const second = await setUp.token();
  await setUp.pace(20); // so that none of them ends while another waits for room, until the pace is lifted
  const url = gateway.url('/installaties?perPage=1000');
  const read = (reader: string) => readPage(url, { token: reader });
  const underWay = (n: number) => until(async () => (await gateway.metric('gateway_large_pages')) === n, 2000, 5);
  const running = [token, token].map(read);
  await underWay(2);
  const perToken = await read(token);
  running.push(read(second));
  await underWay(3);
  const ours = read(other);
  const perWorkspace = await read(second);
  await setUp.pace(0);
  for (const refused of [perToken, perWorkspace]) {
    t.is(refused?.status, 503);
    t.is(JSON.parse(refused?.body ?? '').code, 'overloaded');
    t.truthy(refused?.headers['retry-after']);
  }
  t.is((await ours).status, 200, 'another workspace has its own');
  t.is(
    (await readPage(gateway.url('/installaties?perPage=100'), { token })).status,
    200,
    'small pages are not counted',
  );
  t.is(await gateway.metric('gateway_requests_shed_total', { bound: 'large_pages' }), 2);
  for (const page of await Promise.all(running)) t.true(page.complete);
  await gateway.backToNormal(t);
  await gateway.stop();
});

test('a client that left has no place among the large pages that wait', async (t) => {
  const gateway = await setUp.gateway({ chunkRowsMax: 100, largePagesPerToken: 1, queueMax: 1, queueWaitMs: 60_000 });
  const read = (options: { signal?: AbortSignal } = {}) =>
    readPage(gateway.url('/installaties?perPage=1000'), { token, ...options });
  const reaches = (name: string, n: number) => until(async () => (await gateway.metric(name)) === n, 10_000, 5);
  const inFlight = 'gateway_requests_in_flight';
  await setUp.pace(20); // so that the first one holds its place
  const pages = [read()];
  t.true(await reaches('gateway_large_pages', 1));
  const gone = new AbortController();
  const left = read({ signal: gone.signal });
  t.true(await reaches(inFlight, 2));
  gone.abort();
  await left;
  t.true(await reaches(inFlight, 1));
  pages.push(read());
  t.true(await reaches(inFlight, 2));
  await setUp.pace(0);
  for (const { status } of await Promise.all(pages)) t.is(status, 200);
  await gateway.stop();
});

test('a statement of a page ends soon after its client left, and the next page gets its connection', async (t) => {
  const gateway = await setUp.gateway({ ...one, quietMs: 600_000, statementTimeoutMs: 600_000, queueWaitMs: 60_000 });
  const [replica] = setUp.cluster.replicas as [PgNode];
  const running = async (): Promise<number[]> => {
    const sessions = `select pid from pg_stat_activity where usename = 'gateway_reader' and state = 'active' and query like '%installaties%'`;
    return (await replica.query<{ pid: number }>(sessions)).map(({ pid }) => pid);
  };
  const gone = new AbortController();
  await setUp.pace(10_000); // each of the thousand rows takes ten seconds
  const page = readPage(gateway.url('/installaties?perPage=1000'), { token, signal: gone.signal });
  // No silence of the server ends the second attempt.
  const seen = new Set<number>();
  const isRepeated = async (): Promise<boolean> => {
    for (const pid of await running()) seen.add(pid);
    return seen.size === 2;
  };
  t.true(await until(isRepeated, 20_000, 10));
  gone.abort();
  await page;
  t.true(await until(async () => (await running()).length === 0, 20_000, 10));
  await setUp.pace(0);
  t.is((await readPage(gateway.url('/installaties?perPage=1000'), { token })).status, 200);
  await gateway.stop();
});

test('a large page that begins does not wait for all pages under way of its workspace', async (t) => {
  const others = 16;
  const bounds = { largePagesPerToken: 2 * others, largePagesPerWorkspace: 2 * others, queueWaitMs: 5000 };
  const gateway = await setUp.gateway({ ...bounds, longConnections: 2, longPerWorkspace: 2, chunkRowsMax: 20 });
  await setUp.pace(1);
  const gone = new AbortController();
  setMaxListeners(0, gone.signal);
  const pages: Promise<unknown>[] = [];
  let pieces = 0;
  /** Resolves with the number of pieces that the others got before its first. */
  const begin = async (): Promise<number> => {
    const before = pieces;
    return new Promise((resolve, reject) => {
      const page = readPage(gateway.url('/installaties?perPage=1000'), {
        token,
        discard: true,
        signal: gone.signal,
        onFirstBytes: () => resolve(pieces - before),
        onPiece: async () => pieces++,
      });
      page.then(({ status }) => reject(new Error(`${status}`)));
      pages.push(page);
    });
  };
  for (let n = 0; n < others; n++) await begin();
  t.is(await gateway.metric('gateway_large_pages'), others, 'none of them has ended');
  const meanwhile = await begin();
  t.true(meanwhile > 0, 'the others go on');
  t.true(meanwhile < others * 0.7, `${meanwhile} chunks of the others were read first`);
  gone.abort();
  await Promise.all(pages);
  await setUp.pace(0);
  await gateway.backToNormal(t);
  await gateway.stop();
});

/** Reads details of another workspace before the work and until it is done; resolves with their statuses. */
async function besideDetails(url: (path: string) => string, work: () => Promise<unknown>): Promise<number[]> {
  const [{ id }] = JSON.parse((await readPage(url('/installaties?perPage=1'), { token: other })).body).data;
  const statuses = new Set<number>();
  let over = false;
  const read = async (): Promise<void> => {
    do statuses.add((await readPage(url(`/installaties/${id}`), { token: other })).status);
    while (!over);
  };
  const reading = [read(), read(), read()]; // one of them is always under way, however slow the machine is
  await until(() => statuses.size > 0, 20_000, 1);
  await work().finally(() => {
    over = true;
  });
  await Promise.all(reading);
  return [...statuses];
}

test('while details are read chunks of large pages take a quarter of the connections, and every page ends whole', async (t) => {
  const bounds = { longConnections: 7, longPerWorkspace: 32, chunkRowsMax: 20, queueWaitMs: 60_000 };
  const gateway = await setUp.gateway(bounds);
  const long = gateway.gateway.replicas[0]?.long;
  await setUp.pace(4); // a chunk of 20 rows sleeps for longer than a busy machine takes to ask for the next
  /** Reads six pages, one by a client that reads nothing until the others have ended; resolves with the mean number of chunks at a time. */
  const chunksAtATime = async (): Promise<number> => {
    const tokens = [token, token, token, await setUp.token(), await setUp.token()];
    let [begun, ended, sum, samples] = [0, 0, 0, 0];
    const options = { discard: true, onFirstBytes: () => begun++ };
    const url = gateway.url('/installaties?perPage=300');
    const stopped = readPage(url, {
      token,
      ...options,
      onPiece: () => until(() => ended === tokens.length, 60_000, 5),
    });
    const pages = tokens.map((each) => readPage(url, { token: each, ...options }).finally(() => ended++));
    while (ended === 0) {
      await sleep(5);
      if (begun <= tokens.length) continue; // a first chunk runs beside another one
      sum += long?.inFlight ?? 0;
      samples++;
    }
    for (const { status, complete } of await Promise.all([...pages, stopped]))
      t.true(status === 200 && complete, `${status}, ${complete ? 'whole' : 'broken off'}`);
    return sum / samples;
  };
  const alone = await chunksAtATime();
  t.true(alone > 2, `${alone} chunks at a time`);
  let beside = 0;
  const statuses = await besideDetails(gateway.url, async () => {
    beside = await chunksAtATime();
  });
  t.deepEqual(statuses, [200]);
  t.true(beside < 1.5, `${beside} chunks at a time`);
  await setUp.pace(0);
  await gateway.backToNormal(t);
  await gateway.stop();
});

test('while one workspace floods the queue another is served in its turn', async (t) => {
  const gateway = await setUp.gateway({ longConnections: 2, longPerWorkspace: 2, queueMax: 30, queueWaitMs: 60_000 });
  let over = false;
  let answered = 0;
  const flood = Array.from({ length: 60 }, async () => {
    while (!over) {
      await readPage(gateway.url('/werkbonnen?perPage=400'), { token, discard: true });
      answered++;
    }
  });
  const isOverBounds = async () => (await gateway.metric('gateway_requests_shed_total')) > 0;
  t.true(await until(isOverBounds, 60_000), 'the flood is over the bounds');
  const victims: number[] = [];
  for (let i = 0; i < 8; i++)
    victims.push((await readPage(gateway.url('/klanten?perPage=250'), { token: other })).status);
  over = true;
  await Promise.all(flood);
  t.deepEqual([...new Set(victims)], [200]);
  t.true(answered > 0);
  await gateway.backToNormal(t);
  await gateway.stop();
});

test('a workspace has its whole share while no other is served, and an eighth of it otherwise', async (t) => {
  const gateway = await setUp.gateway({ shortPerWorkspace: 16, queueWaitMs: 60_000, quietMs: 60_000 });
  const lane = gateway.gateway.replicas[0]?.short;
  const busiest = async (while_: Promise<unknown>): Promise<number> => {
    let [most, over] = [0, false];
    const ended = while_.finally(() => {
      over = true;
    });
    for (; !over; await sleep(2)) most = Math.max(most, lane?.inFlight ?? 0);
    await ended;
    return most;
  };
  const crowd = (length = 24): Promise<unknown> =>
    Promise.all(
      Array.from({ length }, () => readPage(gateway.url('/installaties?perPage=1'), { token, discard: true })),
    );
  await crowd(); // the connections are there, and the token is known
  await readPage(gateway.url('/klanten?perPage=1'), { token: other });
  await sleep(1300);
  await setUp.pace(500); // long enough that all of a crowd arrive meanwhile, and less than a silent backend gets
  const whole = await busiest(crowd());
  t.true(whole === 16 || whole === 17, `${whole} statements, of which one can look up the token`);
  await setUp.pace(20); // short enough that none of a few waits for a second, after which its workspace counts as away
  let isOver = false;
  const ofOther = () => readPage(gateway.url('/klanten?perPage=1'), { token: other });
  const read = async (): Promise<void> => {
    while (!isOver) await ofOther();
  };
  const reading = Promise.all([read(), read(), read()]); // one of them is always served, however slow the machine is
  await ofOther();
  const most = await busiest(crowd(10));
  isOver = true;
  await reading;
  t.true(most <= 2 + 2 + 2, `${most} statements, of which two can be of the other, and two look up tokens`);
  await setUp.pace(0);
  await gateway.backToNormal(t);
  await gateway.stop();
});
