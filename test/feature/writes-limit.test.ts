import { mock } from 'node:test';
import { loadSettings } from '../../src/settings.js';
import { type ApiReply, apiClient } from '../support/client.js';
import { codeOf } from '../support/lists.js';
import { customerOf } from '../support/primary-side.js';
import { serveProcess } from '../support/process.js';
import { gatewayTest } from '../support/workspace.js';
import { post } from '../support/writes.js';

const requests = 20;
const writes = 4;
const test = gatewayTest({ rateLimitPerMinute: requests, writesPerMinute: writes });

/** The number after `r=` of each policy of RateLimit. */
const remainingOf = ({ headers }: ApiReply): number[] =>
  [...(headers.ratelimit as string).matchAll(/"(?:default|writes)";r=(\d+);t=\d+/g)].map(([, left]) => Number(left));

/** The statuses of requests that are made together, the lowest first. */
async function statusesOf(count: number, ask: () => Promise<ApiReply>): Promise<number[]> {
  const replies = await Promise.all(Array.from({ length: count }, ask));
  return replies.map(({ status }) => status).sort();
}

test.serial(
  'a token has its own number of writes a minute; replays and refused bodies count, writes answered 429 count nowhere',
  async (t) => {
    const { client, database } = t.context;
    const [token, other] = [await database.token(), await database.token()];
    const body = { naam: 'begrensd', customerId: await customerOf(database) };
    const replies = [
      await post(client, body, { token, key: 'a' }),
      await post(client, body, { token, key: 'a' }),
      await post(client, {}, { token }),
      await post(client, body, { token }),
      await post(client, body, { token }),
      await post(client, body, { token }),
    ];
    t.deepEqual(
      replies.map(({ status }) => status),
      [201, 201, 400, 201, 429, 429],
    );
    const left = [
      [19, 3],
      [18, 2],
      [17, 1],
      [16, 0],
      [16, 0],
      [16, 0],
    ]; // of requests, of writes
    t.deepEqual(replies.map(remainingOf), left);
    const refused = replies[5] as ApiReply;
    t.is(codeOf(refused), 'rate_limited');
    t.is(refused.headers['ratelimit-policy'], `"default";q=${requests};w=60, "writes";q=${writes};w=60`);
    t.regex(refused.headers['retry-after'] as string, /^[1-9]\d?$/);
    t.deepEqual(remainingOf(await client.get('/klanten?perPage=1', { token })), [15]);
    t.is((await post(client, body, { token: other })).status, 201);
    const { rows } = await database.primary.query("select from app.installaties where naam = 'begrensd'");
    t.is(rows.length, 3);
  },
);

test.serial('by default every request of the minute can be a write, and RateLimit names no other limit', async (t) => {
  const { database } = t.context;
  const { client, token } = await database.gateway({
    rateLimitPerMinute: 60,
    writesPerMinute: loadSettings({}).writesPerMinute,
  });
  for (let left = 59; left >= 0; left--) {
    const reply = await post(client, {}, { token });
    t.is(reply.status, 400);
    t.is(reply.headers['ratelimit-policy'], '"default";q=60;w=60');
    t.deepEqual(remainingOf(reply), [left]);
  }
  t.is((await post(client, {}, { token })).status, 429);
});

test.serial('a write that the limit of all requests refuses does not count as a write', async (t) => {
  const { client, database } = t.context;
  const token = await database.token();
  for (let i = 0; i < requests; i++) await client.get('/klanten?perPage=1', { token });
  for (let i = 0; i < writes; i++) t.is((await post(client, {}, { token })).status, 429);
  mock.timers.enable({ apis: ['Date'], now: Date.now() + 60_000 });
  try {
    for (let i = 0; i < writes; i++) t.is((await post(client, {}, { token })).status, 400);
  } finally {
    mock.timers.reset();
  }
});

test.serial('writes that come together and are answered 429 are not counted as requests', async (t) => {
  const { database } = t.context;
  const { client, gateway } = await database.gateway({ rateLimitPerMinute: 60, writesPerMinute: 30 });
  const workers = await serveProcess({
    ...database.settings,
    logLevel: 'error',
    webConcurrency: 2,
    rateLimitPerMinute: 60,
    writesPerMinute: 30,
  });
  t.teardown(() => workers.stop());
  const times = (count: number, status: number): number[] => new Array<number>(count).fill(status);
  for (const { url } of [gateway, workers]) {
    const token = await database.token();
    const own = apiClient(`${url}/api/v1`, { token });
    t.teardown(() => own.close());
    const written = await statusesOf(60, () => post(own, {}));
    t.deepEqual(written, [...times(30, 400), ...times(30, 429)], url);
    const read = await statusesOf(31, () => own.get('/klanten?perPage=1'));
    t.deepEqual(read, [...times(30, 200), 429], url);
  }
  client.close();
});

// The gateway runs in this process, so its clock can be moved on instead of waited for.
test.serial('a client that waits for Retry-After is served, also when both limits refuse', async (t) => {
  const { client, database } = t.context;
  const token = await database.token();
  mock.timers.enable({ apis: ['Date'], now: Date.now() });
  try {
    for (let i = 0; i < requests - writes; i++) await client.get('/klanten?perPage=1', { token });
    mock.timers.setTime(Date.now() + 20_000);
    for (let i = 0; i < writes; i++) t.is((await post(client, {}, { token })).status, 400);
    const refused = await post(client, {}, { token });
    t.is(refused.headers['retry-after'], '60');
    t.is((await client.get('/klanten?perPage=1', { token })).headers['retry-after'], '40');
    mock.timers.setTime(Date.now() + 60_000);
    t.is((await post(client, {}, { token })).status, 400);
  } finally {
    mock.timers.reset();
  }
});
