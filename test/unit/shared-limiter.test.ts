import { setImmediate as turn } from 'node:timers/promises';
import test from 'ava';
import { nextCount, type SharedCounter, type SharedLimiter, sharedLimiter } from '../../src/peers/shared-limiter.js';

const windowMs = 60_000;

/** Gateways that share a counter, which answers after a turn of the event loop. */
function gatewaysOf(count: number, quota: number) {
  const state = { consumed: 0, questions: 0, isAway: false };
  const counter: SharedCounter = async (key, _, known, requests) => {
    state.questions++;
    await turn();
    if (state.isAway) throw new Error('away');
    const { consumed, announce } = nextCount(quota, state.consumed, known, requests);
    state.consumed = consumed;
    if (announce) for (const limiter of limiters) limiter.learn(key, { consumed, endsInMs: windowMs });
    await turn();
    return { consumed, endsInMs: windowMs };
  };
  const limiters: SharedLimiter[] = Array.from({ length: count }, () => sharedLimiter(quota, count, counter));
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

test('a small quota is counted request by request', async (t) => {
  const { state, spend } = gatewaysOf(4, 60);
  t.is(await spend(200), 60);
  t.is(state.questions, 200);
});

test('of a large quota a gateway reserves a part, and grants it without asking', async (t) => {
  const { state, spend } = gatewaysOf(4, 20_000);
  t.is(await spend(10_000), 10_000);
  t.true(state.questions < 2500, `${state.questions} questions`);
});

test('reservations that are not used are at most a hundredth of the quota', async (t) => {
  const { limiters, spend } = gatewaysOf(4, 10_000);
  const unused = limiters.slice(1);
  for (let i = 0; i < 2; i++) for (const limiter of unused) await limiter.consume('key');
  limiters.splice(1, 3, ...unused.map(() => limiters[0] as SharedLimiter));
  const granted = 2 * unused.length + (await spend(11_000, 100));
  t.true(granted < 10_000 && granted >= 9900, `${granted} were granted`);
});

test('a reservation beyond the quota is not used', async (t) => {
  const { state, spend } = gatewaysOf(1, 10_000);
  t.is(await spend(1, 1), 1);
  state.consumed = 9999; // by others, of which this gateway has heard nothing
  t.is(await spend(100), 1);
});

test('reserved requests remain', async (t) => {
  const { state, limiters } = gatewaysOf(2, 10_000);
  const [limiter] = limiters as [SharedLimiter];
  for (let i = 1; i <= 100; i++) t.like(await limiter.consume('key'), { allowed: true, remaining: 10_000 - i });
  t.true(state.consumed > 100);
  t.like(await limiter.peek('key'), { allowed: true, remaining: 9900 });
});

test('with the counter away the gateways grant no more than the quota, and use their reservations', async (t) => {
  const { state, spend } = gatewaysOf(4, 10_000);
  const before = await spend(3000);
  state.isAway = true;
  const away = await spend(10_000);
  state.isAway = false;
  const after = await spend(10_000);
  t.is(before, 3000);
  t.true(away > 4096, `${away} were granted`);
  t.true(before + away + after <= 10_000, `${before}, ${away} and ${after} were granted`);
});
