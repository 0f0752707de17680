import { customerPlain } from '../../demo/seed/plain.js';
import { secondSizesOf, sizesOf } from '../../demo/seed/sizes.js';
import { type CommandResult, commandLine, connections } from '../support/command-line.js';
import { imagesIn } from '../support/images.js';
import { records } from '../support/lists.js';
import { clonedRows } from '../support/template.js';
import { makeMac } from '../support/walls.js';
import { eventually, gatewayTest } from '../support/workspace.js';
import { created, etagOf, type Installation, patch } from '../support/writes.js';

// The second app: the source knows nothing of its shape. `everyApp` tests its API together with the first app's.
const test = gatewayTest({}, 'second');

test('check finds nothing wrong with an app of another shape', async (t) => {
  const { resourcesDir } = t.context.database.settings;
  const check = () => commandLine(['check'], { ...connections(t.context.database), resourcesDir });
  await eventually(t, 'a check without failures', async () => (await check()).code === 0, 30_000);
  t.pass();
});

test('tokens of integer tenants are made for its administrators by name or id, listed and rotated', async (t) => {
  const { client, database } = t.context;
  const { resourcesDir } = database.settings;
  const tokens = (...args: string[]): Promise<CommandResult> =>
    commandLine(['tokens', ...args], { ...connections(database), resourcesDir });
  const create = (workspace: string, owner: string): Promise<CommandResult> =>
    tokens('create', '--workspace', workspace, '--owner', owner, '--name', 'n', '--scopes', 'read:klanten');
  for (const [workspace, owner] of [
    ['101', '10102'],
    ['101', '10201'],
    ['103', '10101'],
  ] as const)
    t.is((await create(workspace, owner)).code, 1, `${workspace} ${owner}`);
  t.is((await create('101', '10101')).code, 0);
  const made = await create('Klimaatservice Noord', 'staff1@tenant102.example');
  t.is(made.code, 0, made.stderr);
  const listed = JSON.parse((await tokens('list', '--workspace', '102', '--json')).stdout) as Record<string, string>[];
  const own = listed.filter(({ name }) => name === 'n');
  t.like(own, [{ workspaceName: 'Klimaatservice Noord' }]);
  const rotated = await tokens('rotate', own[0]?.id as string);
  t.is(rotated.code, 0, rotated.stderr);
  await database.caughtUp();
  const idsFor = async (token: string): Promise<string[]> =>
    (await records(client, '/klanten?perPage=1000', { token: token.trim() })).map(({ id }) => id);
  t.deepEqual(
    await idsFor(rotated.stdout),
    Array.from({ length: secondSizesOf(sizesOf(clonedRows.second)).customers }, (_, n) => String(20_000_001 + n)),
  );
  t.is((await client.get('/klanten', { token: made.stdout.trim() })).status, 401);
});

test('a token keeps a limit of its own when it is rotated, and a changed limit holds; a table without the column has none', async (t) => {
  const { database } = t.context;
  const { client } = await database.gateway({ rateLimitPerMinute: 60, tokenCacheMs: 1 });
  const tokens = (...args: string[]): Promise<CommandResult> =>
    commandLine(['tokens', ...args], { ...connections(database), resourcesDir: database.settings.resourcesDir });
  const create = 'create --workspace 101 --owner 10101 --name busy --scopes read:klanten --json --limit'.split(' ');
  for (const limit of ['0', '1e3', '100001', '-1', '1.5', '']) t.is((await tokens(...create, limit)).code, 2, limit);
  const made = JSON.parse((await tokens(...create, '4')).stdout) as { id: string };
  const { token, id } = JSON.parse((await tokens('rotate', made.id, '--json')).stdout) as { token: string; id: string };
  t.regex((await tokens('list')).stdout, new RegExp(`^${id}  active .*  4 +\\S.* busy `, 'm'));
  await database.caughtUp();
  const limits = async (): Promise<unknown> =>
    (await client.get('/token', { token })).json<{ limits: unknown }>().limits;
  t.deepEqual(await limits(), [{ name: 'default', quota: 4, windowSeconds: 60 }]);
  const ask = () => client.get('/klanten?perPage=1', { token });
  for (const left of [2, 1, 0]) {
    const { status, headers } = await ask();
    t.deepEqual([status, headers['ratelimit-policy']], [200, '"default";q=4;w=60']);
    t.true(headers.ratelimit?.includes(`r=${left};`));
  }
  t.is((await ask()).status, 429);
  await database.primary.query('update gateway.tokens set requests_per_minute = 100 where id = $1', [id]);
  await database.caughtUp();
  await eventually(t, 'the other limit', async () => (await ask()).status === 200);
  await database.primary.query('update gateway.tokens set requests_per_minute = null where id = $1', [id]);
  await database.caughtUp();
  await eventually(t, 'the default', async () => (await ask()).headers['ratelimit-policy'] === '"default";q=60;w=60');

  await database.primary.query(`alter view gateway.api_tokens rename to kept; create view gateway.api_tokens as
    select id, workspace_id, created_by, name, token_hash, scopes, created_at, expires_at, revoked_at, rotated_from from gateway.tokens;
    grant select on gateway.api_tokens to gateway_owner`);
  const refused = await tokens(...create, '4');
  t.deepEqual([refused.code, refused.stdout], [1, '']);
  t.regex(refused.stderr, /gateway\.api_tokens has no column requests_per_minute: add it/);
  t.is((await tokens(...create.filter((arg) => arg !== '--limit'))).code, 0);
  await database.caughtUp();
  t.is((await ask()).status, 200);
  await database.primary.query('drop view gateway.api_tokens; alter view gateway.kept rename to api_tokens');
  await database.caughtUp();
});

test('the walls and keysets of integer tenants and of times in text are conditions of an index', async (t) => {
  const { replica } = t.context.database;
  const explain = async (sql: string): Promise<string> =>
    (await replica.query<Record<string, string>>(`explain ${sql}`)).rows.map((row) => Object.values(row)[0]).join('\n');
  await replica.query(`set gateway.workspace_id = '${makeMac('102')}'; set random_page_cost = 1.1`);
  t.regex(
    await explain('select id from gateway.klanten_asc limit 10'),
    /Limit[^\n]*\n[^\n]*Subquery Scan[^\n]*\n[^\n]*Index Only Scan[^\n]*\n *Index Cond: \(tenant_id = (\(InitPlan \d+\)|\$\d)/,
  );
  const moment = `'2024-05-01 00:00:00+00'::timestamptz`;
  t.regex(
    await explain(
      `select id from gateway.logboeken_asc where logged_at >= ${moment} and (logged_at, id) > (${moment}, 5) limit 10`,
    ),
    /Index Cond: \(.*tenant_id = .*make_timestamp/,
  );
});

test('rows that the app has deleted softly are in no list, no detail and no total, and nothing can refer to them', async (t) => {
  const { client, database } = t.context;
  for (const [list, table] of [
    ['klanten', 'customers'],
    ['installaties', 'assets'],
    ['werkbonnen', 'work_orders'],
  ] as const) {
    const { rows } = await database.primary.query<{ id: string }>(
      `select id from fieldops.${table} where tenant_id = $1 and deleted_at is not null order by id`,
      [database.workspaces[0]?.id],
    );
    t.true(rows.length > 10);
    const gone = rows.slice(0, 100).map(({ id }) => id);
    const body = (await client.get(`/${list}?ids=${gone}&total=true`)).json<{ data: unknown[]; pagination: object }>();
    t.deepEqual(body.data, []);
    t.like(body.pagination, { total: 0 });
    t.is((await client.get(`/${list}/${gone[0]}`)).status, 404);
    if (list !== 'klanten') continue;
    const refused = created(client, { naam: 'x', customerId: gone[0] as string });
    await t.throwsAsync(refused, { message: /unknown_reference/ });
  }
});

test("a PATCH moves the app's lock_version and updated_at, so that an UPDATE of the app that is stale changes no row", async (t) => {
  const { client, database } = t.context;
  const record = await created(client, { naam: 'Koelcel', customerId: '10000001' });
  t.is((await patch(client, record.id, etagOf(record), { naam: 'Vriescel' })).status, 200);
  const stale = 'update fieldops.assets set lock_version = lock_version + 1 where id = $1 and lock_version = $2';
  t.is((await database.primary.query(stale, [record.id, record.version])).rowCount, 0);
  t.is((await database.primary.query(stale, [record.id, record.version + 1])).rowCount, 1);
  t.is((await patch(client, record.id, etagOf(record, 1), { naam: 'y' })).status, 412);
  const unchanged = (await patch(client, record.id, etagOf(record, 2), {})).json<Installation>();
  t.is(unchanged.version, record.version + 2, 'an empty PATCH moves nothing');
});

test('writes are logged in the form of the app: {"field": [old, new]}, and the time as its text', async (t) => {
  const { client, database } = t.context;
  const record = await created(client, { naam: 'Koelcel', customerId: '10000001', bouwjaar: 2001 });
  await patch(client, record.id, etagOf(record), { naam: 'Vriescel', bouwjaar: null });
  const { rows } = await database.primary.query(
    `select verb, actor_kind, diff, logged_at, abs(extract(epoch from now() - logged_at::timestamptz)) < 60 as recent
     from fieldops.activity where subject = 'Asset' and subject_id = $1 order by id`,
    [record.id],
  );
  t.deepEqual(
    rows.map(({ verb, actor_kind, diff, recent }) => ({ verb, actor_kind, diff, recent })),
    [
      {
        verb: 'create',
        actor_kind: 'api_token',
        diff: { name: [null, 'Koelcel'], customer_id: [null, '10000001'], built_in: [null, 2001] },
        recent: true,
      },
      {
        verb: 'update',
        actor_kind: 'api_token',
        diff: { name: ['Koelcel', 'Vriescel'], built_in: [2001, null] },
        recent: true,
      },
    ],
  );
  for (const { logged_at } of rows) t.regex(logged_at, /^\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d{6}Z$/);
});

test('sync finds the work orders of a member of staff who has another name, of which their hours show the name', async (t) => {
  const { client, database } = t.context;
  interface Page {
    readonly data: readonly { readonly id: string }[];
    readonly pagination: { readonly since: string };
  }
  const pass = async (query: string) => (await client.get(`/sync/werkbonnen?perPage=10000${query}`)).json<Page>();
  const { since } = (await pass('')).pagination;
  const { rows } = await database.primary.query<{ id: string }>(
    `with renamed as (update fieldops.staff set full_name = 'Jan' where id = 10102 returning id)
     select distinct w.id::text from fieldops.work_orders w join fieldops.time_entries e on e.work_order_id = w.id
       join renamed on renamed.id = e.staff_id
     where w.deleted_at is null order by 1`,
  );
  t.true(rows.length > 1);
  await database.caughtUp();
  const changed = (await pass(`&since=${since}`)).data.map(({ id }) => id);
  const unchanged = rows.map(({ id }) => id).filter((id) => !changed.includes(id));
  t.deepEqual(unchanged, []);
});

test('no list shows an image, a sealed value or the id of a key, and the log no name of a customer', async (t) => {
  const { client, database } = t.context;
  for (const list of ['klanten', 'werkbonnen', 'logboeken'] as const) {
    const text = JSON.stringify(await records(client, `/${list}?perPage=1000`));
    t.deepEqual(imagesIn(text), [], list);
    t.is(/vault_key|[A-Za-z0-9+/]{200}/.test(text.replaceAll('{"veld":"vault_key"', '')), false, list);
    if (list !== 'logboeken') continue;
    for (let n = 1; n <= sizesOf(clonedRows.second).customers; n++)
      t.false(text.includes(`"${customerPlain(0, n).naam}"`), `customer ${n}`);
    t.true(text.includes('"veld":"name","afgeschermd":true'), 'the first years have names in clear');
  }
  const { rows } = await database.primary.query<{ hidden: boolean }>(
    `select bool_or(actions::text ~ 'iVBOR') and bool_or(jsonb_typeof(actions) <> 'array') as hidden from fieldops.work_orders`,
  );
  t.true(rows[0]?.hidden, 'there are images in actions, and actions that are no array');
});
