import { mock } from 'node:test';
import type { ExecutionContext } from 'ava';
import type { ApiReply } from '../support/client.js';
import { codeOf, type Page } from '../support/lists.js';
import { gatewayTest, type TestContext } from '../support/workspace.js';

const quota = 6;
const test = gatewayTest({ rateLimitPerMinute: quota });

function rateOf(headers: Readonly<Record<string, string>>): { remaining: number; seconds: number } {
  const [, remaining, seconds] = /^"default";r=(\d+);t=(\d+)$/.exec(headers.ratelimit as string) ?? [];
  return { remaining: Number(remaining), seconds: Number(seconds) };
}

test('every authenticated response counts and names the rest of the quota: 200, 304, 400, 403, 404, 406', async (t) => {
  const { client, database } = t.context;
  const token = await database.token({ scopes: ['read:installaties'] });
  const list = await client.get('/installaties?perPage=1', { token });
  const path = `/installaties/${list.json<Page>().data[0]?.id}`;
  const others = [
    await client.get(path, { token, headers: { 'if-none-match': '*' } }),
    await client.get('/installaties?perPage=0', { token }),
    await client.get('/klanten', { token }),
    await client.get('/installaties/onbekend', { token }),
    await client.get(path, { token, headers: { accept: 'text/html' } }),
  ];
  const replies = [list, ...others];
  const statuses = replies.map(({ status }) => status);
  t.deepEqual(statuses, [200, 304, 400, 403, 404, 406]);
  const remaining = replies.map(({ headers }) => rateOf(headers).remaining);
  t.deepEqual(remaining, [5, 4, 3, 2, 1, 0]);
  for (const { headers } of replies) {
    t.is(headers['ratelimit-policy'], `"default";q=${quota};w=60`);
    t.false(Object.keys(headers).some((name) => /^x-ratelimit|^ratelimit-(?!policy)/.test(name)));
  }
});

test('the limit covers all endpoints together, and a token does not use up the limit of another', async (t) => {
  const { client, database } = t.context;
  const [busy, other] = [await database.token(), await database.token()];
  for (const path of ['/klanten', '/installaties', '/werkbonnen', '/logboeken', '/klanten/x', '/klanten?perPage=1'])
    t.not((await client.get(path, { token: busy })).status, 429);
  const limited = await client.get('/logboeken', { token: busy });
  t.is(limited.status, 429);
  t.is(codeOf(limited), 'rate_limited');
  t.is((await client.get('/logboeken?perPage=1', { token: other })).status, 200);
});

test('requests that need no token do not count against a token and show no RateLimit', async (t) => {
  const { client } = t.context;
  for (let i = 0; i <= quota; i++) {
    const reply = await client.get('/openapi.json', { token: null });
    t.is(reply.status, 200);
    t.is(reply.headers.ratelimit, undefined);
    t.is((await client.request('OPTIONS', '/klanten', { token: null })).status, 204);
  }
});

test('a client that ignores Retry-After gets its refusals late, and other clients do not', async (t) => {
  const { client, database } = t.context;
  const [stubborn, other] = [await database.token(), await database.token()];
  const timed = async (token: string): Promise<[number, number]> => {
    const startedMs = performance.now();
    const { status } = await client.get('/klanten?perPage=1', { token });
    return [status, performance.now() - startedMs];
  };
  for (let i = 0; i < 2 * quota; i++) await timed(stubborn);
  const [status, tookMs] = await timed(stubborn);
  t.is(status, 429);
  t.true(tookMs >= 190, `it took ${tookMs} ms`);
  const ended: string[] = [];
  const one = async (name: string, token: string) => [(await timed(token))[0], ended.push(name)];
  const [, [served]] = await Promise.all([one('stubborn', stubborn), one('other', other)]);
  t.is(served, 200);
  t.deepEqual(ended, ['other', 'stubborn']);
});

/** Runs `work` with the requests of a new token, while the clock stands: the gateway runs in this process, so the clock can be set. */
function whileClockStands(
  title: string,
  work: (t: ExecutionContext<TestContext>, get: () => Promise<ApiReply>) => Promise<void>,
): void {
  test.serial(title, async (t) => {
    const { client, database } = t.context;
    const token = await database.token();
    mock.timers.enable({ apis: ['Date'], now: Date.now() });
    try {
      await work(t, () => client.get('/klanten?perPage=1', { token }));
    } finally {
      mock.timers.reset();
    }
  });
}

whileClockStands(
  'a client that waits for Retry-After is served, also after many requests that were refused',
  async (t, get) => {
    t.is((await get()).status, 200);
    mock.timers.setTime(Date.now() + 10_300);
    for (let i = 1; i < quota; i++) t.is((await get()).status, 200);
    for (let i = 0; i < 3 * quota; i++) {
      const limited = await get();
      t.is(limited.status, 429);
      t.deepEqual(rateOf(limited.headers), { remaining: 0, seconds: 50 });
      t.is(limited.headers['retry-after'], '50');
    }
    mock.timers.setTime(Date.now() + 49_000);
    t.is((await get()).status, 429);
    t.is((await get()).headers['retry-after'], '1');
    mock.timers.setTime(Date.now() + 1_000);
    const again = await get();
    t.is(again.status, 200);
    t.deepEqual(rateOf(again.headers), { remaining: quota - 1, seconds: 60 });
  },
);

whileClockStands('a clock that is set back by an hour locks no client out: the window begins again', async (t, get) => {
  for (let i = 0; i < quota; i++) t.is((await get()).status, 200);
  t.is((await get()).status, 429);
  mock.timers.setTime(Date.now() - 3_600_000);
  const again = await get();
  t.is(again.status, 200);
  t.deepEqual(rateOf(again.headers), { remaining: quota - 1, seconds: 60 });
});
