import { app } from '../support/app.js';
import { codeOf, type Page } from '../support/lists.js';
import { gatewayTest } from '../support/workspace.js';

const test = gatewayTest();

test.beforeEach(async (t) => {
  const [record] = (await t.context.client.get('/installaties?perPage=1')).json<Page<{ id: string; version: number }>>()
    .data;
  Object.assign(t.context, { path: `/installaties/${record?.id}`, etag: `"v${record?.version}"` });
});
const own = (context: unknown) => context as { path: string; etag: string };

test('the detail of an installation has a strong ETag that moves with its version when the app changes it', async (t) => {
  const { client, database } = t.context;
  const { rows } = await database.primary.query<{ id: string }>(
    'select id from probe.installaties where workspace_id = $1 order by id desc limit 1',
    [database.workspaces[0]?.id],
  );
  const path = `/installaties/${rows[0]?.id}`;
  const before = await client.get(path);
  t.regex(before.headers.etag as string, /^"[!#-~]+"$/);
  t.is((await client.get(path)).headers.etag, before.headers.etag);
  await database.primary.query(`update probe.installaties set interne_notities = 'x'${app.moves} where id = $1`, [
    rows[0]?.id,
  ]);
  await database.caughtUp();
  const after = await client.get(path, { headers: { 'if-none-match': before.headers.etag } });
  t.is(after.status, 200);
  t.not(after.headers.etag, before.headers.etag);
  t.is(after.json<{ version: number }>().version, before.json<{ version: number }>().version + 1);
});

test('If-None-Match that holds gives 304 without a body, also weakly, in a list, or as *', async (t) => {
  const { path, etag } = own(t.context);
  for (const value of [etag, `W/${etag}`, `"x", ${etag}`, `"a,b" ,W/${etag},"c"`, `,, ${etag} ,`, '*', ' * ']) {
    const reply = await t.context.client.get(path, { headers: { 'if-none-match': value } });
    t.is(reply.status, 304, value);
    t.is(reply.text, '');
    t.is(reply.headers.etag, etag);
    t.is(reply.headers['content-type'], undefined);
    t.truthy(reply.headers['data-as-of']);
  }
});

test('If-None-Match that does not hold, or is no list of tags, gives the record', async (t) => {
  const { path, etag } = own(t.context);
  const bare = etag.slice(1, -1);
  for (const value of [
    '"x"',
    'W/"x"',
    bare,
    `"${bare}x"`,
    `"${bare.toUpperCase()}"`,
    `'${bare}'`,
    `"${bare}`,
    'garbage',
    '',
    '**',
    `w/${etag}`,
  ]) {
    const reply = await t.context.client.get(path, { headers: { 'if-none-match': value } });
    t.is(reply.status, 200, value);
    t.is(reply.headers.etag, etag);
  }
});

test('an If-Match that matches gives the record, any other gives 412 with the current ETag', async (t) => {
  const { path, etag } = own(t.context);
  for (const value of [etag, `"x", ${etag}`, '*']) {
    t.is((await t.context.client.get(path, { headers: { 'if-match': value } })).status, 200, value);
  }
  for (const value of ['"x"', `W/${etag}`, `W/${etag}, "x"`, '""']) {
    const reply = await t.context.client.get(path, { headers: { 'if-match': value } });
    t.is(reply.status, 412, value);
    t.is(codeOf(reply), 'precondition_failed');
    t.is(reply.headers.etag, etag);
  }
});

test('If-Match that is no list of tags is refused', async (t) => {
  const { path, etag } = own(t.context);
  for (const value of [etag.slice(1, -1), `${etag} "x"`, `"x`, '*, "x"', 'W/*', '']) {
    const reply = await t.context.client.get(path, { headers: { 'if-match': value } });
    t.is(reply.status, 400, value);
    t.is(codeOf(reply), 'if_match_invalid');
  }
});

test('If-Match is checked before If-None-Match', async (t) => {
  const { path, etag } = own(t.context);
  const reply = await t.context.client.get(path, { headers: { 'if-match': '"x"', 'if-none-match': etag } });
  t.is(reply.status, 412);
});

test('HEAD knows the same conditions', async (t) => {
  const { client } = t.context;
  const { path, etag } = own(t.context);
  const head = (headers: Record<string, string>) => client.request('HEAD', path, { headers });
  t.is((await head({})).headers.etag, etag);
  t.is((await head({ 'if-none-match': etag })).status, 304);
  t.is((await head({ 'if-match': '"x"' })).status, 412);
});

test('lists, and details without a version, have no ETag and know no conditions', async (t) => {
  const { client } = t.context;
  const [klant] = (await client.get('/klanten?perPage=1')).json<Page>().data;
  for (const path of ['/installaties', `/klanten/${klant?.id}`]) {
    const reply = await client.get(path, { headers: { 'if-none-match': '*', 'if-match': '"x"' } });
    t.is(reply.status, 200);
    t.is(reply.headers.etag, undefined);
  }
});
