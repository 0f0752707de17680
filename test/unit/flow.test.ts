import type { IncomingMessage } from 'node:http';
import { setImmediate, setImmediate as turn } from 'node:timers/promises';
import test from 'ava';
import { FairQueue, Gate } from '../../src/flow/gate.js';
import { countNext, type Kept, type Limiter, rateLimiter, type SharedCounter } from '../../src/flow/rate-limiter.js';
import { RequestTurns } from '../../src/flow/request-turns.js';

/** Takes all waiters, in turn. */
function drained(queue: FairQueue<string>): (string | undefined)[] {
  return Array.from({ length: queue.size }, () => queue.take(() => true));
}

test('waiters are served one of each key in turn, those of a key in the order of their arrival', (t) => {
  const queue = new FairQueue<string>();
  for (const waiter of ['a1', 'a2', 'a3', 'b1', 'a4', 'c1', 'b2']) queue.add(waiter.charAt(0), waiter);
  t.deepEqual(drained(queue), ['a1', 'b1', 'c1', 'a2', 'b2', 'a3', 'a4']);
  t.is(queue.size, 0);
});

test('a key whose first waiter must not be served yet is skipped and keeps its turn', (t) => {
  const queue = new FairQueue<string>();
  for (const waiter of ['a1', 'b1', 'b2']) queue.add(waiter.charAt(0), waiter);
  t.is(
    queue.take((waiter) => !waiter.startsWith('a')),
    'b1',
  );
  t.is(
    queue.take(() => false),
    undefined,
  );
  t.deepEqual(drained(queue), ['a1', 'b2']);
});

test('the newest waiter of the key with the longest queue is evicted', (t) => {
  const queue = new FairQueue<string>();
  for (const waiter of ['a1', 'b1', 'a2', 'a3']) queue.add(waiter.charAt(0), waiter);
  t.is(queue.evictNewestOfLongest(), 'a3');
  t.true(queue.delete('a', 'a1'));
  t.false(queue.delete('a', 'a1'));
  t.deepEqual(drained(queue), ['a2', 'b1']);
});

const gateOf = (share: number, queueMax = 10) =>
  new Gate({ share: () => share, queueMax, refusal: (reason) => new Error(reason) });

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

const requestOf = (token: string): IncomingMessage =>
  ({
    headers: token === '' ? {} : { authorization: `Bearer ${token}` },
    socket: { remoteAddress: '192.0.2.1' },
  }) as IncomingMessage;

/** Begins the requests, named by their token and a number, and returns those that begin in each turn of the event loop. */
async function turnsOf(tokens: readonly string[]): Promise<string[][]> {
  const turns = new RequestTurns();
  const begun: string[][] = [[]];
  for (const [i, token] of tokens.entries())
    turns.begin(requestOf(token), () => void begun.at(-1)?.push(`${token}${i}`));
  while (begun.flat().length < tokens.length) {
    begun.push([]);
    await setImmediate();
  }
  return begun;
}

test('requests of one token begin at once, however many come', async (t) => {
  const tokens = Array.from({ length: 20 }, () => 'a');
  t.deepEqual(await turnsOf(tokens), [tokens.map((token, i) => token + i)]);
});

test('while several tokens are used four requests begin in a turn of the event loop, one of each token after the other', async (t) => {
  t.deepEqual(await turnsOf(['b', ...'aaaaaaaaa', 'b', 'c']), [
    ['b0', 'a1', 'a2', 'a3'],
    ['a4', 'b10', 'c11', 'a5'],
    ['a6', 'a7', 'a8', 'a9'],
  ]);
});

test('requests without a token, or with a header longer than any token, take turns by their address', async (t) => {
  const long = 'x'.repeat(500);
  const turns = await turnsOf(['b', 'b', 'b', 'b', '', long, '', long, 'b']);
  t.deepEqual(
    turns.map((begun) => begun.map((name) => name.replace(long, 'long'))),
    [['b0', 'b1', 'b2', 'b3'], ['4', 'b8', 'long5', '6'], ['long7']],
  );
});

/** Gateways that share a counter, which answers after a turn of the event loop. */
function gatewaysOf(count: number, quota: number) {
  const state: { kept: Kept; isAway: boolean } = { kept: { consumed: 0, granted: new Map() }, isAway: false };
  const counterOf =
    (gateway: number): SharedCounter =>
    async (_, known, requests) => {
      await turn();
      if (state.isAway) throw new Error('away');
      const consumed = countNext(state.kept, gateway, known, requests);
      await turn();
      return { consumed, endsInMs: 60_000 };
    };
  const limiters: Limiter[] = Array.from({ length: count }, (_, i) => rateLimiter(quota, count, counterOf(i)));
  /** Grants of as many requests, of which `together` are made at a time, at the gateways in turn. */
  const spend = async (requests: number, together = 8): Promise<number> => {
    let granted = 0;
    for (let made = 0; made < requests; made += together) {
      const batch = Array.from({ length: together }, (__, i) => limiters[(made + i) % count]?.consume('key'));
      granted += (await Promise.all(batch)).filter((result) => result?.allowed).length;
    }
    return granted;
  };
  return { state, limiters, spend };
}

test('gateways that share a counter grant the quota exactly, and all know what remains', async (t) => {
  const { limiters, spend } = gatewaysOf(4, 60);
  t.is(await spend(40), 40);
  for (const limiter of limiters) t.like(await limiter.peek('key'), { allowed: true, remaining: 20 });
  t.is(await spend(200), 20);
});

test('while the counter is away each gateway grants its share, what it granted before included', async (t) => {
  const { state, spend } = gatewaysOf(4, 60);
  t.is(await spend(40), 40);
  state.isAway = true;
  t.is(await spend(200), 20, 'the requests came to all gateways alike, so the quota is kept');
  t.is(await spend(200), 0);
});

test('a gateway alone grants no more than it knew to be left', async (t) => {
  const { state, limiters } = gatewaysOf(2, 60);
  const [busy, idle] = limiters as [Limiter, Limiter];
  for (let i = 0; i < 55; i++) await busy.consume('key');
  t.like(await idle.consume('key'), { allowed: true, remaining: 4 });
  state.isAway = true;
  const granted: boolean[] = [];
  for (let i = 0; i < 10; i++) granted.push((await idle.consume('key')).allowed);
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
