import { setTimeout as sleep, setImmediate as turn } from 'node:timers/promises';
import test, { type ExecutionContext } from 'ava';
import fc from 'fast-check';
import { EventLoop } from '../../src/base/flow/event-loop.js';
import { Gate } from '../../src/base/flow/gate.js';
import { countNext, RateLimiter, type SharedCounter, type SharedWindow } from '../../src/base/flow/rate-limiter.js';
import type { Connection, Run } from '../../src/postgres/connection.js';
import { ConnectionPool, enough } from '../../src/postgres/connection-pool.js';
import { ConnectionLost } from '../../src/postgres/database-errors.js';
import { ResourceHealth, ServerHealth } from '../../src/postgres/resource-health.js';
import { Row } from '../../src/postgres/row.js';
import { prepareSql } from '../../src/postgres/statement.js';

const gateOf = (share: number, queueMax = 10) =>
  new Gate({ share: () => share, queueMax, makeRefusal: (reason) => new Error(reason) });

test('each key holds at most its share, and keys do not count against each other', async (t) => {
  const gate = gateOf(2);
  const release = gate.take('a');
  gate.take('a');
  t.true(gate.isFull('a'));
  t.false(gate.isFull('b'));
  await t.throwsAsync(gate.enter(['a'], { waitMs: 1, lane: 'a' }), { message: 'late' });
  t.is(gate.held, 2);
  release();
  t.false(gate.isFull('a'));
});

test('a released unit goes to the entry that came first', async (t) => {
  const gate = gateOf(1);
  const release = gate.take('a');
  const first = gate.enter(['a'], { waitMs: 10_000, lane: 'a' });
  const second = gate.enter(['a'], { waitMs: 10, lane: 'a' });
  release();
  t.truthy(await first);
  await t.throwsAsync(second, { message: 'late' });
  t.is(gate.held, 1);
});

test('units that cost more than is left fill the key until they are released', (t) => {
  const gate = gateOf(4);
  gate.take('a', 3);
  const release = gate.take('a', 5);
  t.true(gate.isFull('a'));
  release();
  t.false(gate.isFull('a'));
});

test('a full queue evicts no entry that is exempt, however many there are', async (t) => {
  const gate = gateOf(1, 3);
  const outcomes: string[] = [];
  const wait = (lane: string, isExempt: boolean): void =>
    void gate
      .wait(
        () => false,
        async () => undefined,
        { waitMs: 10_000, lane, isExempt },
      )
      .catch(({ message }) => outcomes.push(`${lane}: ${message}`));
  for (const lane of ['pages', 'pages', 'pages']) wait(lane, true);
  for (const lane of ['a', 'b']) wait(lane, false);
  await turn();
  t.deepEqual(outcomes, ['a: full', 'b: full']);
  gate.failAll(new Error('over'));
});

test('a full queue evicts the newest entry of the longest lane, an aborted entry leaves it', async (t) => {
  const gate = gateOf(1, 2);
  const release = gate.take('');
  const controller = new AbortController();
  const outcome = (entry: Promise<unknown>): Promise<string> =>
    entry.then(
      () => 'entered',
      (error) => error.message,
    );
  const enter = (lane: string, signal?: AbortSignal) => outcome(gate.enter([''], { waitMs: 10_000, lane, signal }));
  const entries = [enter('flood'), enter('flood'), enter('other', controller.signal)];
  t.is(await entries[1], 'full');
  controller.abort(new Error('gone'));
  t.is(await entries[2], 'gone');
  t.is(gate.waiting, 1);
  release();
  t.is(await entries[0], 'entered');
  await turn();
  t.is(gate.waiting, 0);
});

test('waiters are served one of each lane in turn, those of a lane in the order of their arrival', async (t) => {
  const gate = gateOf(1);
  const release = gate.take('');
  const served: string[] = [];
  for (const waiter of ['a1', 'a2', 'a3', 'b1', 'a4', 'c1', 'b2'])
    void gate.enter([''], { waitMs: 10_000, lane: waiter.charAt(0) }).then((leave) => {
      served.push(waiter);
      leave();
    });
  release();
  while (gate.waiting > 0) await turn();
  t.deepEqual(served, ['a1', 'b1', 'c1', 'a2', 'b2', 'a3', 'a4']);
});

test('a lane whose first waiter must not begin yet is skipped and keeps its turn', async (t) => {
  const gate = gateOf(1);
  const [releaseA, releaseB] = [gate.take('a'), gate.take('b')];
  const served: string[] = [];
  for (const key of ['a', 'b', 'a']) void gate.enter([key], { waitMs: 10_000, lane: key }).then(() => served.push(key));
  releaseB();
  await turn();
  t.deepEqual(served, ['b']);
  releaseA();
  await turn();
  t.deepEqual(served, ['b', 'a']);
});

const idle = { isUsable: true, reservedFor: null, inFlight: 0, checkProgress: () => false, close: () => {} };

function openPool(t: ExecutionContext, connect: () => Promise<Connection>, connections: number): ConnectionPool {
  const limits = { connections, depth: 1, perWorkspace: 9, queueMax: 9, statementTimeoutMs: 1000, quietMs: 150 };
  const loop = new EventLoop();
  const pool = new ConnectionPool(limits, connect, new ServerHealth('a', loop, () => undefined));
  t.teardown(() => loop.close());
  t.teardown(() => pool.close());
  return pool;
}

test('a connection that was asked for before a reset is not used: it can lead to a primary of before a failover', async (t) => {
  const [old, ours] = ['old', 'new'].map((name) => ({ name, ...idle })) as unknown as [Connection, Connection];
  old.close = () => Object.assign(old, { isUsable: false });
  ours.lease = (work) => work();
  const asked: ((connection: Connection) => void)[] = [];
  const connect = (): Promise<Connection> => new Promise((resolve) => asked.push(resolve));
  const pool = openPool(t, connect, 2);
  const lease = { workspace: 'a', resource: '', waitMs: 1000, atMs: 0 };
  const name = () => pool.lease(lease, async (connection) => (connection as unknown as { name: string }).name);
  const before = name();
  pool.reset();
  await t.throwsAsync(before, { instanceOf: ConnectionLost });
  const after = name();
  asked[0]?.(old);
  await turn();
  asked[1]?.(ours);
  t.is(await after, 'new');
});

const events = fc.constantFrom('quiet', 'ends', 'ends late', 'passes', 'meets a lock', 'is locked', 'is free');

test('whatever happens to statements of a resource, its state in each pool is the one of the table, and one trial is made at a time', async (t) => {
  const happened = fc.array(fc.record({ event: events, pool: fc.constantFrom(0, 1), ms: fc.nat(600) }));
  const property = fc.asyncProperty(happened, async (all) => {
    const seen: string[] = [];
    const trials: ((isLocked: boolean) => void)[] = [];
    const loop = { ranMs: 0 };
    const server = new ServerHealth('a', loop, ({ type }) => void seen.push(type), turn);
    const model = [0, 1].map(() => ({ reserved: [] as { reservedFor: ResourceHealth | null }[], slowUntilMs: 0 }));
    const pools = model.map((expected) => ({ expected, health: new ResourceHealth('r', server) }));
    let isLocked = false;
    for (const { event, pool, ms } of all) {
      const { health, expected } = pools[pool] as (typeof pools)[0];
      const ended = event.startsWith('ends') ? expected.reserved.pop() : undefined;
      if (ended !== undefined) health.release(ended, event === 'ends late');
      if (ended !== undefined && event === 'ends late') expected.slowUntilMs = loop.ranMs + 1000;
      if (event === 'passes') loop.ranMs += ms;
      if (event === 'quiet') {
        expected.reserved.push({ reservedFor: null });
        health.reserve(expected.reserved.at(-1) as { reservedFor: null });
      }
      if (event === 'meets a lock') void server.outwait('r', () => new Promise((resolve) => trials.push(resolve)));
      isLocked = event === 'meets a lock' || (isLocked && event !== 'is free');
      if (event.startsWith('is')) trials.pop()?.(event === 'is locked');
      for (let i = 0; i < 3; i++) await turn();
      t.is(trials.length, Number(isLocked));
      t.is(seen.at(-1) === 'resource_locked', isLocked);
      for (const { health, expected } of pools) {
        const isSlow = expected.reserved.length > 0 || loop.ranMs < expected.slowUntilMs;
        t.is(health.state, isLocked ? 'locked' : isSlow ? 'slow' : 'ok');
      }
    }
  });
  await fc.assert(property);
});

test('a resource that turns slow has connections beside one that was slow before and waits on all of its own', async (t) => {
  const running: Pick<Connection, 'reservedFor' | 'resource'>[] = [];
  const connect = async (): Promise<Connection> => {
    const own = { isUsable: true, reservedFor: null, inFlight: 0, resource: '', checkProgress: () => own.inFlight > 0 };
    const start = ({ statement: { label } }: { statement: { label: string } }): void => {
      running.push(Object.assign(own, { inFlight: 1, resource: label }));
    };
    return Object.assign(own, { start, moveOthers: () => {}, close: () => {} }) as unknown as Connection;
  };
  const pool = openPool(t, connect, 4);
  for (const [i, label] of ['a', 'a', 'a', 'a', 'b', 'b'].entries()) {
    const run = { statement: prepareSql(label, 'select', []), workspace: null, values: {} };
    pool.run(run, { waitMs: 5000 }, () => undefined).catch(({ message }) => t.fail(message));
    while (t.passed && running[i]?.reservedFor == null) await sleep(10);
  }
  t.deepEqual(
    running.map(({ resource }) => resource),
    ['a', 'a', 'a', 'a', 'b', 'b'],
  );
});

test('a statement is judged by the marks before and after its rows, and not where its rows were enough', async (t) => {
  const all = [['before'], ['after']];
  const connection = { ...idle, endOldest: () => {} };
  const start = ({ marks }: Run, take: (row: Row) => void, done: (error: null) => void): void => {
    marks?.push(...all);
    take(Row.make([]));
    done(null);
  };
  const connect = async (): Promise<Connection> => Object.assign(connection, { start }) as unknown as Connection;
  const pool = openPool(t, connect, 1);
  const judgments: unknown[] = [];
  const run = { statement: prepareSql('a', 'select', []), workspace: null, values: {} };
  const checkMarks = (marks: unknown): unknown => judgments.push(marks);
  t.false(await pool.run({ ...run, checkMarks }, { waitMs: 5000 }, () => enough));
  t.true(await pool.run({ ...run, checkMarks }, { waitMs: 5000 }, () => undefined));
  t.deepEqual(judgments, [all]);
  const refuse = (): never => {
    throw new Error('refused');
  };
  await t.throwsAsync(
    pool.run({ ...run, checkMarks: refuse }, { waitMs: 5000 }, () => undefined),
    { message: 'refused' },
  );
});

/** The gateways share a counter, which answers after a turn of the event loop. */
function gatewaysOf(count: number, quota: number) {
  const state: { kept: SharedWindow; isAway: boolean } = { kept: { consumed: 0, granted: new Map() }, isAway: false };
  const counterOf =
    (gateway: number): SharedCounter =>
    async (_, known, requests) => {
      await turn();
      if (state.isAway) throw new Error('away');
      const consumed = countNext(state.kept, gateway, known, requests);
      await turn();
      return { consumed, endsInMs: 60_000 };
    };
  const limiters = Array.from({ length: count }, (_, i) => new RateLimiter(quota, count, counterOf(i)));
  /** Grants of as many requests, of which `together` are made at a time, at the gateways in turn. */
  const spend = async (requests: number, together = 8): Promise<number> => {
    let granted = 0;
    for (let made = 0; made < requests; made += together) {
      const batch = Array.from({ length: together }, (__, i) => limiters[(made + i) % count]?.consume('key'));
      granted += (await Promise.all(batch)).filter((result) => result?.isAllowed).length;
    }
    return granted;
  };
  return { state, limiters, spend };
}

test('gateways that share a counter grant the quota exactly, and all know what remains', async (t) => {
  const { limiters, spend } = gatewaysOf(4, 60);
  t.is(await spend(40), 40);
  for (const limiter of limiters) t.like(await limiter.peek('key'), { isAllowed: true, remaining: 20 });
  t.is(await spend(200), 20);
});

test('while the counter is away each gateway grants its share, what it granted before included', async (t) => {
  const { state, spend } = gatewaysOf(4, 60);
  t.is(await spend(40), 40);
  state.isAway = true;
  t.is(await spend(200), 20, 'the requests came to all gateways alike, so the quota is kept');
  t.is(await spend(200), 0);
});

test('a gateway alone grants one request at least, however many share a small quota', async (t) => {
  const { state, limiters } = gatewaysOf(8, 5);
  state.isAway = true;
  for (const limiter of limiters) {
    t.true((await limiter.consume('key')).isAllowed);
    t.false((await limiter.consume('key')).isAllowed);
  }
});

test('a key with a quota of its own has that quota over all gateways, and shares of it without the counter', async (t) => {
  for (const isAway of [false, true])
    for (const quota of [200, 8, undefined]) {
      const { state, limiters } = gatewaysOf(4, 60);
      state.isAway = isAway;
      const all = Array.from({ length: 400 }, (_, i) => limiters[i % 4]?.consume('key', quota));
      const results = await Promise.all(all);
      t.is(results.filter((result) => result?.isAllowed).length, quota ?? 60, `${quota}`);
      t.like(results[0], { quota: quota ?? 60 });
      if (quota === 200 && !isAway) t.false((await limiters[0]?.consume('key'))?.isAllowed); // of a version that knows no such quota
    }
});

test('a gateway alone grants no more than it knew to be left', async (t) => {
  const { state, limiters } = gatewaysOf(2, 60);
  const [busy, idle] = limiters as [RateLimiter, RateLimiter];
  for (let i = 0; i < 55; i++) await busy.consume('key');
  t.like(await idle.consume('key'), { isAllowed: true, remaining: 4 });
  state.isAway = true;
  const granted: boolean[] = [];
  for (let i = 0; i < 10; i++) granted.push((await idle.consume('key')).isAllowed);
  t.is(granted.filter(Boolean).length, 4);
});

test('a counter that lost its counts is told of them, and of what was granted while it was away', async (t) => {
  const { state, spend } = gatewaysOf(2, 60);
  await spend(20, 2);
  state.isAway = true;
  t.is(await spend(10, 2), 10);
  Object.assign(state, { kept: { consumed: 0, granted: new Map() }, isAway: false });
  t.is(await spend(100, 2), 30);
});

test('a time limit counts only while this process runs: a frozen loop is late, and nothing else', async (t) => {
  const loop = new EventLoop();
  t.teardown(() => loop.close());
  const spent = (ms: number): void => {
    for (const end = performance.now() + ms; performance.now() < end; );
  };
  const acts: string[] = [];
  const [startedMs, ranMs] = [performance.now(), loop.ranMs];
  loop.callAfter(300, () => acts.push('late'));
  loop.callAfter(10, () => acts.push('cancelled'))();
  await turn();
  spent(500);
  for (let i = 0; i < 4; i++) await turn();
  t.deepEqual(acts, [], 'by the clock of the wall the limit has passed');
  t.true(loop.measureLateMs() >= 400, String(loop.measureLateMs()));
  while (acts.length === 0) await sleep(10);
  t.deepEqual(acts, ['late']);
  t.true(loop.ranMs - ranMs >= 300);
  t.true(performance.now() - startedMs >= 700);
});
