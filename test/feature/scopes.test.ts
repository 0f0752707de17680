import { codeOf, listNames } from '../support/lists.js';
import { allScopes, gatewayTest } from '../support/workspace.js';

const test = gatewayTest();
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
  const { rows } = await database.primary.query<{ id: string }>(
    'select id from app.klanten where workspace_id = $1 limit 1',
    [database.workspaces[0]?.id],
  );
  const bodies = new Set<string>();
  for (const id of [rows[0]?.id, unknown, 'x']) {
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
