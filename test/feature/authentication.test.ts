import { setMaxListeners } from 'node:events';
import { setTimeout as sleep } from 'node:timers/promises';
import { hashToken, makeToken } from '../../src/serve/http/token-format.js';
import { commandLine, connections } from '../support/command-line.js';
import { codeOf, faultsOf, listNames } from '../support/lists.js';
import { readPage } from '../support/page-reader.js';
import { customerOf } from '../support/primary-side.js';
import { allScopes, eventually, gatewayTest } from '../support/workspace.js';

const test = gatewayTest();
const realm = 'Bearer realm="workspace-data-api"';

test('without a token the answer is 401 and says how to authenticate', async (t) => {
  for (const options of [
    { token: null },
    { headers: { authorization: '' } },
    { headers: { authorization: 'Basic eA==' } },
    { headers: { authorization: `Bearer${t.context.token}` } },
  ]) {
    const reply = await t.context.client.get('/klanten', options);
    t.is(reply.status, 401);
    t.is(codeOf(reply), 'token_missing');
    t.is(reply.headers['www-authenticate'], realm);
    t.is(reply.headers.ratelimit, undefined);
  }
});

test('malformed, unknown, expired and revoked tokens look the same', async (t) => {
  const { client, database, token } = t.context;
  const expired = await database.token({ expiresAt: new Date(Date.now() - 1000) });
  const revoked = await database.token();
  await database.primary.query('update app.api_tokens set revoked_at = now() where token_hash = sha256($1::bytea)', [
    Buffer.from(revoked),
  ]);
  await database.caughtUp();
  const mistyped = `${token.slice(0, -1)}${token.endsWith('0') ? '1' : '0'}`;
  const values = [makeToken(), expired, revoked, mistyped, 'x', token.slice(0, -1), `${token}0`, token.toUpperCase()];
  const answers = new Set<string>();
  for (const value of [...values.map((each) => `Bearer ${each}`), `Bearer ${token} x`, 'Bearer']) {
    const reply = await client.get('/klanten', { headers: { authorization: value } });
    t.is(reply.status, 401, value);
    t.is(reply.headers['www-authenticate'], `${realm}, error="invalid_token"`);
    t.is(codeOf(reply), 'token_invalid');
    const { 'x-request-id': _, date: __, ...headers } = reply.headers;
    answers.add(JSON.stringify([headers, reply.text.replace(/"requestId":"[^"]*"/, '')]));
  }
  t.is(answers.size, 1);
});

test('the scheme is read in any case', async (t) => {
  const { client, token } = t.context;
  for (const scheme of ['bearer', 'BEARER', 'Bearer  ']) {
    const reply = await client.get('/klanten?perPage=1', { headers: { authorization: `${scheme} ${token}` } });
    t.is(reply.status, 200);
  }
});

test('with BASIC_AUTH a token is accepted as the password of Basic, with any user name', async (t) => {
  const { database, token } = t.context;
  const { client } = await database.gateway({ basicAuth: true, authFailuresPerMinute: 6 });
  const get = (authorization: string) => client.get('/klanten?perPage=1', { headers: { authorization } });
  const basic = (text: string): string => `Basic ${Buffer.from(text).toString('base64')}`;
  for (const user of ['', 'x', 'gebruiker é'])
    for (const scheme of ['Basic', 'basic  '])
      t.is((await get(basic(`${user}:${token}`).replace('Basic', scheme))).status, 200, user);
  t.is((await get(`Bearer ${token}`)).status, 200);
  const both = 'Bearer realm="workspace-data-api", Basic realm="workspace-data-api", charset="UTF-8"';
  const missing = await get('');
  t.is(codeOf(missing), 'token_missing');
  t.is(missing.headers['www-authenticate'], both);
  for (const wrong of [basic(token), basic(`x:${token}x`), basic(`${token}:x`), 'Basic', `Basic ${token}`]) {
    const reply = await get(wrong);
    t.is(reply.status, 401, wrong);
    t.is(codeOf(reply), 'token_invalid');
    t.is(reply.headers['www-authenticate'], both.replace(',', ', error="invalid_token",'));
  }
  t.is((await get(basic('x:y'))).status, 429, 'failures count as those of bearer tokens do');
  t.is((await get(basic(`x:${token}`))).status, 200);
});

test('two Authorization headers are refused, even when both are the same and valid', async (t) => {
  const { client, token } = t.context;
  for (const second of [`Bearer ${token}`, 'Bearer x']) {
    const reply = await client.get('/klanten', { headers: { Authorization: [`Bearer ${token}`, second] } });
    t.is(reply.status, 400);
    t.deepEqual(faultsOf(reply), ['authorization repeated_header']);
  }
});

test('a token in the query string is never accepted', async (t) => {
  const { client, token, log } = t.context;
  for (const name of ['access_token', 'token', 'authorization', 'api_key']) {
    t.is((await client.get(`/klanten?${name}=${token}`, { token: null })).status, 401);
    t.is((await client.get(`/klanten?${name}=${token}`)).status, 400);
  }
  t.false(log().includes(token));
});

test('a token that expires is refused from that moment, although it was accepted just before', async (t) => {
  const { client, database } = t.context;
  const statusOf = async (token: string) => (await client.get('/klanten?perPage=1', { token })).status;
  for (let lifeMs = 2000; ; lifeMs *= 2) {
    const expiresAt = new Date(Date.now() + lifeMs);
    const token = await database.token({ expiresAt });
    const isAccepted = (await statusOf(token)) === 200; // a busy machine can take longer than that
    await eventually(t, 'the expiry', () => Date.now() > expiresAt.getTime(), 2 * lifeMs);
    t.is(await statusOf(token), 401);
    if (isAccepted) return;
  }
});

test('the log names a token that the database has, and why it is refused', async (t) => {
  const { database } = t.context;
  const { client, log } = t.context;
  const set = async (column: string, value: string): Promise<[string, string]> => {
    const token = await database.token();
    const { rows } = await database.primary.query<{ id: string }>(
      `update app.api_tokens set ${column} = ${value} where token_hash = sha256($1::bytea) returning id`,
      [Buffer.from(token)],
    );
    return [token, rows[0]?.id as string];
  };
  const cases = [
    [...(await set('revoked_at', 'now()')), 'revoked'],
    [...(await set('expires_at', `now() - interval '1 s'`)), 'expired'],
  ] as const;
  await database.caughtUp();
  for (const [token, id, reason] of cases) {
    t.is((await client.get('/klanten', { token })).status, 401);
    await eventually(t, 'the line', () => log().includes(`"tokenId":"${id}","tokenRefused":"${reason}"`));
    t.false(log().includes(token));
  }
});

test('a token that is revoked is refused within five seconds and the lag', async (t) => {
  const { client, database } = t.context;
  const token = await database.token();
  const accepted = async () => (await client.get('/klanten?perPage=1', { token })).status === 200;
  t.true(await accepted());
  await database.primary.query('update app.api_tokens set revoked_at = now() where token_hash = sha256($1::bytea)', [
    Buffer.from(token),
  ]);
  await database.caughtUp();
  await eventually(t, 'the refusal', async () => !(await accepted()));
});

test('tokens that are looked up at once are accepted, also when the cache has no room for all of them', async (t) => {
  const { client } = await t.context.database.gateway({ tokenCacheMax: 1 });
  const tokens = await Promise.all(Array.from({ length: 8 }, () => t.context.database.token()));
  const replies = await Promise.all(tokens.map((token) => client.get('/klanten?perPage=1', { token })));
  t.deepEqual([...new Set(replies.map(({ status }) => status))], [200]);
});

test('failed authentications are limited per client address; others are not kept out', async (t) => {
  const { client, token, gateway } = await t.context.database.gateway({
    authFailuresPerMinute: 3,
    trustedProxyHops: 1,
  });
  const from = (address: string) => ({ 'x-forwarded-for': address });
  t.is((await client.get('/klanten?perPage=1', { headers: from('192.0.2.1') })).status, 200);
  for (let i = 0; i < 3; i++) {
    const refused = await client.get('/klanten', { token: i === 0 ? null : makeToken(), headers: from('192.0.2.1') });
    t.is(refused.status, 401);
  }
  const limited = await client.get('/klanten', { token: 'x', headers: from('192.0.2.1') });
  t.is(limited.status, 429);
  t.is(codeOf(limited), 'rate_limited');
  t.regex(limited.headers['retry-after'] as string, /^([1-9]|[1-5]\d|60)$/);
  t.is((await client.get('/klanten', { token: 'x', headers: from('198.51.100.7') })).status, 401);
  t.is((await client.get('/klanten?perPage=1', { token, headers: from('192.0.2.1') })).status, 200);
  t.is((await fetch(`${gateway.url}/api/v1/openapi.json`, { headers: from('192.0.2.1') })).status, 200);
});

test.serial('a public document is answered while tokens cannot be looked up, but a bug there shows', async (t) => {
  const { database } = t.context;
  const { client } = await database.gateway();
  const grant = 'grant execute on function gateway.find_token(bytea) to gateway_reader;';
  for (const [change, status] of [
    ['revoke execute on function gateway.find_token(bytea) from gateway_reader', 200],
    [grant + replacedFindToken('return next;'), 500], // a row of nulls has no scopes
    [restoredFindToken, 200],
  ] as const) {
    await database.primary.query(change);
    await database.caughtUp();
    t.is((await client.get('/openapi.json', { token: await database.token() })).status, status, change);
  }
});

test.serial(
  'a flood of unknown tokens does not keep a token from its answers that was valid a moment ago',
  async (t) => {
    const { database } = t.context;
    const bounds = { shortConnections: 1, shortDepth: 1, queueMax: 100, queueWaitMs: 10_000 };
    const { gateway, token } = await database.gateway({ tokenCacheMs: 0, ...bounds }); // each request needs a look-up
    const url = `${gateway.url}/api/v1/klanten?perPage=1`;
    t.is((await readPage(url, { token })).status, 200);
    // Look-ups take long enough that the unknown tokens never leave a place in their queue.
    await database.primary.query(slowFindToken(0.03));
    await database.caughtUp();
    let isOver = false;
    const refusals = new Map<number, number>();
    const flood = Array.from({ length: 300 }, async () => {
      while (!isOver) {
        const { status } = await readPage(url, { token: makeToken(), discard: true });
        refusals.set(status, (refusals.get(status) ?? 0) + 1);
      }
    });
    const statuses: number[] = [];
    try {
      await eventually(t, 'the flood is over the bound', () => (refusals.get(503) ?? 0) > 0);
      for (let i = 0; i < 5; i++) statuses.push((await readPage(url, { token })).status);
    } finally {
      isOver = true;
      await Promise.all(flood);
    }
    await database.primary.query(restoredFindToken);
    await database.caughtUp();
    t.deepEqual([...new Set(statuses)], [200]);
    t.true((refusals.get(401) ?? 0) > 0);
  },
);

test.serial('clients that left have no place among the unknown tokens that are looked up', async (t) => {
  const { database } = t.context;
  const bounds = { shortConnections: 1, shortDepth: 1, queueWaitMs: 60_000, authFailuresPerMinute: 1000 };
  const { gateway } = await database.gateway(bounds);
  const url = `${gateway.url}/api/v1/klanten?perPage=1`;
  await database.primary.query(slowFindToken(0.5));
  await database.caughtUp();
  const countInFlight = async (): Promise<number> => {
    const metrics = await (await fetch(`${gateway.opsUrl}/metrics`)).text();
    return Number(/^gateway_requests_in_flight (\d+)$/m.exec(metrics)?.[1]);
  };
  const gone = new AbortController();
  setMaxListeners(0, gone.signal);
  const more = 300; // than the 8 look-ups and the 248 places behind them
  let answered = 0;
  try {
    const left = Array.from({ length: more }, async () => {
      await readPage(url, { token: makeToken(), signal: gone.signal });
      answered++;
    });
    await eventually(t, 'each has a place, or is refused', async () => (await countInFlight()) + answered >= more);
    gone.abort();
    await Promise.all(left);
    await eventually(t, 'they have left', async () => (await countInFlight()) === 0);
    const come = await Promise.all(Array.from({ length: 5 }, () => readPage(url, { token: makeToken() })));
    t.deepEqual([...new Set(come.map(({ status }) => status))], [401]);
  } finally {
    await database.primary.query(restoredFindToken);
    await database.caughtUp();
  }
});

const lockedTables = `select from pg_locks join pg_class c on c.oid = relation
  where database = (select oid from pg_database where datname = current_database()) and mode = 'AccessExclusiveLock' and relnamespace = 'app'::regnamespace`;

test.serial('a valid token is never refused while its table is locked or written again', async (t) => {
  const { database } = t.context;
  const { client } = await database.gateway({ tokenCacheMs: 0, rateLimitPerMinute: 100_000 });
  const makeTokens = () => Promise.all(Array.from({ length: 4 }, () => database.token()));
  const tokens = await makeTokens();
  const ask = (token: string) => client.get('/klanten?perPage=1', { token }).then(({ status }) => status);
  // A volatile default writes every row again.
  const rewrites = ['api_tokens', 'users', 'workspaces'].map((table): [string, string] => [
    `alter table app.${table} add column again uuid default gen_random_uuid()`,
    `alter table app.${table} drop column again`,
  ]);
  const swaps: [string, string][] = [
    ...rewrites,
    [
      'create temporary table kept on commit drop as select * from app.api_tokens; truncate app.api_tokens; insert into app.api_tokens select * from kept',
      'select',
    ],
  ];
  for (const [swap, undo] of swaps) {
    let isOver = false;
    const statuses = new Set<number>();
    const clients = tokens.map(async (token) => {
      while (!isOver) statuses.add(await ask(token));
    });
    const firstUsed = await makeTokens(); // a token that worked lately would be looked up a second time
    await database.primary.query(`begin; ${swap}`);
    await eventually(t, swap, async () => (await database.replica.query(lockedTables)).rowCount !== 0);
    const asked = firstUsed.map(ask);
    await database.primary.query('select pg_sleep(0.7); commit');
    for (const status of await Promise.all(asked)) statuses.add(status);
    await database.caughtUp();
    statuses.add(await ask(tokens[0] as string));
    isOver = true;
    await Promise.all(clients);
    await database.primary.query(undo);
    await database.caughtUp();
    t.true(statuses.has(200), swap);
    const others = [...statuses].filter((status) => status !== 200 && status !== 503);
    t.deepEqual(others, [], swap);
  }
});

test('an address whose failures are used up costs few look-ups more, and a token that was valid lately is let in', async (t) => {
  const { database } = t.context;
  const { client, token } = await database.gateway({ authFailuresPerMinute: 3, lookUpsPerMinute: 2, tokenCacheMs: 0 });
  const ask = (given: string) => client.get('/klanten?perPage=1', { token: given });
  t.is((await ask(token)).status, 200);
  for (let i = 0; i < 3; i++) t.is((await ask(makeToken())).status, 401);
  const [first, second, third] = await Promise.all([database.token(), database.token(), database.token()]);
  t.is((await ask(first)).status, 200, 'within the budget');
  t.is((await ask(makeToken())).status, 429);
  for (const given of [makeToken(), second, makeToken(), third]) {
    const refused = await ask(given);
    t.deepEqual([refused.status, codeOf(refused)], [429, 'rate_limited'], 'without a look-up');
  }
  for (const known of [token, first]) t.is((await ask(known)).status, 200);
});

test('requests without a route are limited per client address, as the documents are', async (t) => {
  const { gateway } = await t.context.database.gateway({ publicRequestsPerMinute: 4, trustedProxyHops: 1 });
  const ask = async (method: string, path: string, address: string): Promise<number> => {
    const headers = { 'x-forwarded-for': address };
    const response = await fetch(`${gateway.url}${path}`, { method, headers });
    await response.arrayBuffer();
    return response.status;
  };
  const requests: [string, string, number][] = [
    ['OPTIONS', '/api/v1/klanten', 204],
    ['GET', '/api/v1/nothing', 404],
    ['DELETE', '/api/v1/klanten', 405],
    ['OPTIONS', '/nothing', 404],
  ];
  for (const [method, path, status] of requests)
    t.is(await ask(method, path, '192.0.2.1'), status, `${method} ${path}`);
  for (const [method, path] of requests) t.is(await ask(method, path, '192.0.2.1'), 429, `${method} ${path}`);
  t.is(await ask('GET', '/api/v1/openapi.json', '192.0.2.1'), 429);
  for (const path of ['/api/v1/openapi.json', '/api/v1/nothing']) {
    const headers = { 'x-forwarded-for': '192.0.2.1', authorization: `Bearer ${await t.context.database.token()}` };
    const counted = await fetch(`${gateway.url}${path}`, { headers });
    t.regex(counted.headers.get('ratelimit') ?? '', /^"default";r=\d/, 'a valid token counts instead of its address');
    t.is(counted.status, path.endsWith('json') ? 200 : 404);
  }
  t.is(await ask('GET', '/api/v1/nothing', '192.0.2.2'), 404);
  t.is(await ask('GET', '/api/v1/klanten', '192.0.2.1'), 401, 'a failed authentication has its own limit');
});

test('a refused token in a loop exhausts only itself, not the other tokens of its address', async (t) => {
  const { database } = t.context;
  const { client, gateway } = await database.gateway({ authFailuresPerMinute: 4 });
  const ask = async (token: string): Promise<number> => (await client.get('/klanten?perPage=1', { token })).status;
  const valid = await Promise.all(Array.from({ length: 10 }, () => database.token()));
  const revoked = await database.token();
  await database.primary.query('update app.api_tokens set revoked_at = now() where token_hash = $1', [
    hashToken(revoked),
  ]);
  const expired = await database.token({ expiresAt: new Date(Date.now() - 1000) });
  for (const token of [revoked, expired, makeToken()]) {
    const statuses = await Promise.all(Array.from({ length: 10 }, () => ask(token)));
    t.deepEqual(statuses.sort(), [401, 401, 401, 401, 429, 429, 429, 429, 429, 429]);
  }
  const limited = await client.get('/klanten', { token: revoked });
  t.is(limited.status, 429);
  t.regex(limited.headers['retry-after'] as string, /^([1-9]|[1-5]\d|60)$/);
  t.deepEqual([...new Set(await Promise.all(valid.map(ask)))], [200]);
  t.is(await ask(makeToken()), 401, 'each of the three counted once for its address');
  t.is(await ask(makeToken()), 429);
  t.is((await client.get('/openapi.json', { token: makeToken() })).status, 200, 'no limit is hit');
  const metrics = await (await fetch(`${gateway.opsUrl}/metrics`)).text();
  t.regex(metrics, /^gateway_limit_hits_total\{limit="refused_token"\} 19$/m);
  t.regex(metrics, /^gateway_limit_hits_total\{limit="address"\} 1$/m);
});

test('X-Forwarded-For of a client that is no proxy does not get round the limit', async (t) => {
  const { client } = await t.context.database.gateway({ authFailuresPerMinute: 2 });
  const statuses: number[] = [];
  for (let i = 1; i <= 4; i++) {
    const headers = { 'x-forwarded-for': `192.0.2.${i}`, forwarded: `for=192.0.2.${i}` };
    statuses.push((await client.get('/klanten', { token: 'x', headers })).status);
  }
  t.deepEqual(statuses, [401, 401, 429, 429]);
});

const unknown = '00000000-0000-4000-8000-000000000000';
const endpoints = listNames.flatMap((list) => [
  { path: `/${list}?perPage=1`, scope: `read:${list}`, status: 200 },
  ...(list === 'logboeken' ? [] : [{ path: `/${list}/${unknown}`, scope: `read:${list}`, status: 404 }]),
]);

for (const { path, scope, status } of endpoints) {
  test(`GET ${path} takes ${scope} and no other scope`, async (t) => {
    const { client, database } = t.context;
    const [granted, others] = [
      await database.token({ scopes: [scope] }),
      await database.token({ scopes: allScopes.filter((each) => each !== scope) }),
    ];
    t.is((await client.get(path, { token: granted })).status, status);
    const refused = await client.get(path, { token: others });
    t.is(refused.status, 403);
    t.is(codeOf(refused), 'insufficient_scope');
    t.is(
      refused.headers['www-authenticate'],
      `Bearer realm="workspace-data-api", error="insufficient_scope", scope="${scope}"`,
    );
  });
}

test('a token without scopes, or with scopes that only resemble, can read nothing', async (t) => {
  const { client, database } = t.context;
  for (const scopes of [[], ['read'], ['read:*'], ['READ:KLANTEN'], ['read:klant'], ['write:klanten']]) {
    const token = await database.token({ scopes });
    for (const { path } of endpoints) t.is((await client.get(path, { token })).status, 403, `${scopes} ${path}`);
  }
});

test('a missing scope is refused before any look-up: existing and unknown ids get the same answer', async (t) => {
  const { client, database } = t.context;
  const token = await database.token({ scopes: ['read:logboeken'] });
  const bodies = new Set<string>();
  for (const id of [await customerOf(database), unknown, 'x']) {
    const reply = await client.get(`/klanten/${id}`, { token });
    t.is(reply.status, 403);
    bodies.add(reply.text.replace(/"requestId":"[^"]*"/, ''));
  }
  t.is(bodies.size, 1);
});

test('GET /token tells any valid token its name, workspace, scopes, expiry and limits, and counts as a request', async (t) => {
  const { database } = t.context;
  const { client, gateway } = await database.gateway({ rateLimitPerMinute: 60, writesPerMinute: 30 });
  const expiresAt = new Date(Date.now() + 3_600_000);
  const limits = [
    { name: 'default', quota: 60, windowSeconds: 60 },
    { name: 'writes', quota: 30, windowSeconds: 60 },
  ];
  const workspaceId = database.workspaces[0]?.id;
  const scopes = ['read:klanten', 'write:installaties'];
  const token = await database.token({ scopes: [...scopes].reverse(), expiresAt });
  const reply = await client.get('/token', { token });
  t.is(reply.status, 200);
  t.deepEqual(reply.json(), { name: 'test', workspaceId, scopes, expiresAt: expiresAt.toISOString(), limits });
  t.regex(reply.headers.ratelimit as string, /^"default";r=59;t=\d+$/);
  const bare = await client.get('/token', { token: await database.token({ scopes: [] }) });
  t.like(bare.json<object>(), { scopes: [], expiresAt: null });
  t.is((await client.get('/token?x=1', { token })).status, 400);
  t.is((await fetch(`${gateway.url}/api/v1/token`)).status, 401);
});

const tracked = gatewayTest({ upkeepIntervalMs: 100, tokenCacheMs: 0 });

interface Listed {
  readonly id: string;
  readonly lastUsedAt: string | null;
}

tracked.serial('tokens list shows the last use of each token, which is noted once a minute', async (t) => {
  const { client, token, database } = t.context;
  const used = await database.token();
  await database.token();
  const expired = await database.token({ expiresAt: new Date(Date.now() - 1000) });
  const uses = async (): Promise<Date[]> =>
    (await database.primary.query('select used_at from gateway.token_uses order by used_at')).rows.map(
      ({ used_at }) => used_at,
    );
  const read = (of: string) => client.get('/klanten?perPage=1', { token: of });
  t.is((await read(used)).status, 200);
  t.is((await read(expired)).status, 401);
  await eventually(t, 'a note', async () => (await uses()).length === 1);
  const [first] = await uses();
  await read(used);
  await read(token);
  await eventually(t, 'the note of the second token', async () => (await uses()).length === 2);
  t.deepEqual((await uses())[0], first, 'the first note is not renewed within a minute');

  const { stdout } = await commandLine(['tokens', 'list', '--json'], connections(database));
  const tokens = (JSON.parse(stdout) as Listed[]).filter(({ lastUsedAt }) => lastUsedAt !== null);
  t.is(tokens.length, 2);
  t.true(tokens.every(({ lastUsedAt }) => Math.abs(Date.parse(lastUsedAt as string) - Date.now()) < 60_000));
  t.regex(
    (await commandLine(['tokens', 'list'], connections(database))).stdout,
    /^ID +STATE +CREATED +EXPIRES +LAST USED /,
  );
});

tracked.serial(
  '150,000 tokens are listed, and prune deletes those that expired before a day and no other',
  async (t) => {
    const { primary, workspaces } = t.context.database;
    const { id, ownerId } = workspaces[0] as (typeof workspaces)[number];
    const names = async () =>
      (await primary.query(`select name, rotated_from from gateway.api_tokens where name <> 'test' order by name`))
        .rows;
    const before = Number((await primary.query('select count(*) from gateway.api_tokens')).rows[0].count);
    const insert = `insert into gateway.api_tokens (id, workspace_id, created_by, name, token_hash, scopes, expires_at, rotated_from)
    select gen_random_uuid(), '${id}', '${ownerId}', name, sha256(name::bytea), '{read:klanten}', expiry::timestamptz, origin`;
    const [day, last] = ['2020-04-01 00:00:00+00', '2020-03-31 23:59:59+00'];
    await primary.query(`${insert} from (select 'old ' || n, '${last}', null::uuid from generate_series(1, 150000) n) as o (name, expiry, origin);
    ${insert} from (values ('day', '${day}'), ('future', '2999-01-01'), ('never', null)) as v (name, expiry),
      (select id from gateway.api_tokens where name = 'old 1') as o (origin)`);
    const tokens = (...args: string[]) => commandLine(['tokens', ...args], connections(t.context.database));
    const [json, table] = [await tokens('list', '--json'), await tokens('list')];
    t.is((JSON.parse(json.stdout) as Listed[]).length, before + 150_003);
    t.is(table.stdout.trimEnd().split('\n').length, before + 150_004);
    t.is((await tokens('prune', '--expired-before', '2020-04-01')).stdout, '150000 expired tokens are deleted.\n');
    const stays = (name: string) => ({ name, rotated_from: null });
    t.deepEqual(await names(), ['day', 'future', 'never'].map(stays));
    await tokens('prune', '--expired-before', '2999-12-31');
    t.deepEqual(await names(), ['future', 'never'].map(stays), 'valid tokens stay');
  },
);

tracked.serial('a gateway that stops stores the uses that it has noted', async (t) => {
  const { database } = t.context;
  const { client, gateway } = await database.gateway({ upkeepIntervalMs: 60_000 });
  const token = await database.token();
  const stored = 'select 1 from gateway.token_uses u join app.api_tokens a on a.id = u.token_id where token_hash = $1';
  const uses = async () => (await database.primary.query(stored, [hashToken(token)])).rows.length;
  t.is((await client.get('/klanten?perPage=1', { token })).status, 200);
  t.is(await uses(), 0);
  await gateway.stop();
  t.is(await uses(), 1);
});

tracked.serial('the writer notes no use of a token that is not there, and cannot write the table itself', async (t) => {
  const { database } = t.context;
  await database.primary.query(`begin; set local role gateway_writer`);
  await database.primary.query(`select gateway.note_token_uses(array[gen_random_uuid()])`);
  const direct = database.primary.query(`insert into gateway.token_uses values (gen_random_uuid(), now())`);
  t.regex((await t.throwsAsync(direct)).message, /permission denied/);
  await database.primary.query('rollback');
});

const replacedFindToken = (body: string) => `alter function gateway.find_token(bytea) rename to find_token_at_once;
  create function gateway.find_token(hash bytea)
    returns table (token_id uuid, workspace_id text, scopes text, expires_at timestamptz, revoked_at timestamptz, name text, requests_per_minute integer)
    language plpgsql security definer
    as 'begin ${body} end';
  grant execute on function gateway.find_token(bytea) to gateway_reader;`;
const slowFindToken = (seconds: number) =>
  replacedFindToken(`perform pg_sleep(${seconds}); return query select * from gateway.find_token_at_once($1);`);
const restoredFindToken = `drop function gateway.find_token(bytea);
  alter function gateway.find_token_at_once(bytea) rename to find_token;`;

tracked.serial('the look-up of a token in steady use is renewed before it ends: no request waits for it', async (t) => {
  const { database } = t.context;
  const { client } = await database.gateway({ tokenCacheMs: 6000 });
  const authMs = async (): Promise<number> => {
    const { status, headers } = await client.get('/klanten?perPage=1');
    t.is(status, 200);
    return Number(/auth;dur=([\d.]+)/.exec(headers['server-timing'] as string)?.[1]);
  };
  await database.primary.query(slowFindToken(1.5));
  try {
    await database.caughtUp();
    t.true((await authMs()) >= 1500, 'the first request waits');
    const endMs = performance.now() + 8000;
    while (performance.now() < endMs) {
      t.true((await authMs()) < 1500);
      await sleep(100);
    }
  } finally {
    await database.primary.query(restoredFindToken);
  }
});
