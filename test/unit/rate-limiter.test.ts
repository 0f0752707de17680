import { setImmediate as turn } from 'node:timers/promises';
import test from 'ava';
import { countNext, type Kept, type Limiter, rateLimiter, type SharedCounter } from '../../src/flow/rate-limiter.js';

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
  const limiters: Limiter[] = Array.from({ length: count }, (_, i) =>
    rateLimiter(quota, { gateways: count, counter: counterOf(i) }),
  );
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
