import { mock } from 'node:test';
import type { ApiReply } from '../support/client.js';
import { codeOf } from '../support/lists.js';
import { customerOf } from '../support/primary-side.js';
import { gatewayTest } from '../support/workspace.js';
import { post } from '../support/writes.js';

const requests = 20;
const writes = 4;
const test = gatewayTest({ rateLimitPerMinute: requests, writesPerMinute: writes });

const remainingOf = ({ headers }: ApiReply): number => Number(/;r=(\d+);/.exec(headers.ratelimit as string)?.[1]);

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
    t.deepEqual(replies.map(remainingOf), [19, 18, 17, 16, 16, 16]);
    const refused = replies[5] as ApiReply;
    t.is(codeOf(refused), 'rate_limited');
    t.is(refused.headers['ratelimit-policy'], `"default";q=${requests};w=60`);
    t.regex(refused.headers['retry-after'] as string, /^[1-9]\d?$/);
    t.is(remainingOf(await client.get('/klanten?perPage=1', { token })), 15);
    t.is((await post(client, body, { token: other })).status, 201);
    const { rows } = await database.primary.query("select from app.installaties where naam = 'begrensd'");
    t.is(rows.length, 3);
  },
);

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
