import { spawnSync } from 'node:child_process';
import { readFileSync } from 'node:fs';
import type { ExecutionContext } from 'ava';
import pg from 'pg';
import { urlAs } from '../../demo/cluster/passwords.js';
import { ownersSql, startSettingsPage } from '../../demo/settings-page.js';
import { readProject } from '../../src/base/paths.js';
import { isWellFormed } from '../../src/serve/http/token-format.js';
import { browserMissing, launchBrowser, openPage } from '../support/browser.js';
import { eventually, gatewayTest, shared, type TestContext, type TestDatabase } from '../support/workspace.js';

// An app makes tokens in its settings page: as a login with gateway_issuer, over its own table of tokens and over the gateway's.

const overrides = { tokenCacheMs: 1 };
const apps = {
  'the table of tokens of the app': gatewayTest(overrides, 'first'),
  'the table of tokens of the gateway': gatewayTest(overrides, 'second'),
};
const page = readProject('docs/adopt/tokens-in-your-app.md');
const sample = (language: string): string => new RegExp(`\`\`\`${language}\\n([^]*?)\`\`\``).exec(page)?.[1] as string;

interface Issued {
  readonly id: string;
  readonly token: string;
}

/** Makes a login of the app, with the grant of the page. */
async function appLogin(t: ExecutionContext, { name, primary }: TestDatabase, isGranted = true): Promise<pg.Client> {
  const role = `app_${name}${isGranted ? '' : '_other'}`;
  await primary.query(`create role ${role} login password 'of-the-app'`);
  if (isGranted) await primary.query(`grant gateway_issuer to ${role}`);
  const client = new pg.Client(
    Object.assign(new URL(urlAs(shared.primary, 'postgres', name)), { username: role, password: 'of-the-app' }).href,
  );
  await client.connect();
  t.teardown(async () => {
    await client.end();
    await primary.query(`drop role ${role}`).catch(() => undefined); // databases of other tests may name it
  });
  return client;
}

const issue = 'select * from gateway.issue_token($1, $2, $3, $4, $5, $6)';
const inAnHour = () => new Date(Date.now() + 3_600_000);

/** Each names the SQLSTATE, the place of the parameter, and what it holds instead. */
function wrongInputs(
  other: { id: string; ownerId: string },
  isOwnTable: boolean,
): [code: string, at: number, value: unknown][] {
  return [
    ['WG003', 1, other.ownerId],
    ['WG003', 0, other.id],
    ['WG009', 2, ' '],
    ['WG009', 2, 'a\nb'],
    ['WG009', 3, ['read:klanten', 'read:geheim']],
    ['WG009', 3, ['write:klanten']],
    ['WG009', 3, [null]],
    ['WG009', 3, []],
    ['WG009', 4, new Date(Date.now() - 60_000)],
    ['WG009', 5, 0],
    ['WG009', 5, 100_001],
    ...(isOwnTable ? [['WG008', 5, 7] as [string, number, unknown]] : []),
  ];
}

for (const [what, test] of Object.entries(apps)) {
  test.serial(
    `an app makes, lists, rotates and revokes tokens of one workspace, over ${what}`,
    async (t: ExecutionContext<TestContext>) => {
      const { client: api, database } = t.context;
      const { caughtUp, workspaces } = database;
      const [own, other] = workspaces as [(typeof workspaces)[number], (typeof workspaces)[number]];
      const app = await appLogin(t, database);
      const isOwnTable = what.endsWith('app');
      const limit = isOwnTable ? null : 7;
      const scopes = ['read:klanten', 'write:installaties'];
      const values: unknown[] = [own.id, own.ownerId, 'Power BI', scopes, inAnHour(), limit];
      const [issued] = (await app.query<Issued>(issue, values)).rows as [Issued];
      t.true(isWellFormed(issued.token));
      await caughtUp();
      const statusOf = async (token: string) => (await api.get('/klanten?perPage=1', { token })).status;
      t.is(await statusOf(issued.token), 200);
      const described = (await api.get('/token', { token: issued.token })).json<object>();
      t.like(described, { name: 'Power BI', workspaceId: own.id, scopes });

      for (const [code, at, value] of wrongInputs(other, isOwnTable)) {
        const error = await t.throwsAsync(app.query(issue, values.with(at, value)));
        t.is((error as pg.DatabaseError | undefined)?.code, code, `${at} ${value}`);
      }
      const refused = async (sql: string, given: unknown[], code: string) =>
        t.is(((await t.throwsAsync(app.query(sql, given))) as unknown as pg.DatabaseError).code, code, sql);
      for (const name of ['revoke_token', 'rotate_token'])
        await refused(`select * from gateway.${name}($1, $2)`, [other.id, issued.id], 'WG004');

      const rotate = 'select * from gateway.rotate_token($1, $2)';
      const [rotated] = (await app.query<{ successor: string; token: string }>(rotate, [own.id, issued.id])).rows;
      await refused(rotate, [own.id, issued.id], 'WG005');
      await caughtUp();
      t.is(await statusOf(issued.token), 401);
      const successor = rotated?.token as string;
      t.is(await statusOf(successor), 200);
      const listed = async (workspace: string) =>
        (await app.query('select * from gateway.tokens_of($1)', [workspace])).rows;
      const mine = (await listed(own.id)).find(({ id }) => id === rotated?.successor);
      t.like(mine, { name: 'Power BI', owner: own.ownerId, requests_per_minute: limit, revoked_at: null });
      t.false((await listed(other.id)).some(({ id }) => id === rotated?.successor));
      t.false('token_hash' in mine);
      await app.query('select gateway.revoke_token($1, $2)', [own.id, rotated?.successor]);
      await caughtUp();
      await eventually(t, 'the refusal', async () => (await statusOf(successor)) === 401);
    },
  );
}

const test = apps['the table of tokens of the gateway'];

test.serial(
  'gateway_issuer gives four functions and no table, and a role without it can execute none of them',
  async (t) => {
    const { database } = t.context;
    const may = `select p.proname as name from pg_proc p where pronamespace = 'gateway'::regnamespace and has_function_privilege(p.oid, 'execute') order by 1`;
    const namesOf = async (client: pg.Client) =>
      (await client.query<{ name: string }>(may)).rows.map(({ name }) => name);
    const app = await appLogin(t, database);
    t.deepEqual(await namesOf(app), ['issue_token', 'revoke_token', 'rotate_token', 'tokens_of']);
    t.deepEqual(await namesOf(await appLogin(t, database, false)), []);
    const { rows } =
      await app.query(`select oid::regclass from pg_class where relnamespace in ('gateway'::regnamespace, 'records'::regnamespace)
    and relkind in ('r', 'v') and has_any_column_privilege(oid, 'select, insert, update')`);
    t.deepEqual(rows, []);
  },
);

test.serial(
  'the log of PostgreSQL has no token, whatever is logged of statements, parameters, nested statements and plans',
  async (t) => {
    const { database } = t.context;
    const [own] = database.workspaces as [(typeof database.workspaces)[number]];
    const client = new pg.Client(urlAs(shared.primary, 'postgres', database.name));
    await client.connect();
    t.teardown(() => client.end());
    await client.query(`set log_statement = 'all'; set log_duration = on; set log_min_duration_statement = 0;
      set log_parameter_max_length = -1; set log_parameter_max_length_on_error = -1; set debug_print_parse = on;
      set debug_print_rewritten = on; set debug_print_plan = on; set log_executor_stats = on; set client_min_messages = error`);
    const explain = `load 'auto_explain'; set auto_explain.log_min_duration = 0; set auto_explain.log_nested_statements = on;
      set auto_explain.log_analyze = on; set auto_explain.log_verbose = on`;
    await client.query(explain).catch(() => t.log('auto_explain is not installed'));
    const tokens: string[] = [];
    for (let i = 0; i < 7; i++) {
      const values = [own.id, own.ownerId, 'logged', ['read:klanten'], inAnHour(), null];
      const made = await client.query<Issued>(issue, values);
      const { id, token } = made.rows[0] as Issued;
      const rotated = await client.query<Issued>('select * from gateway.rotate_token($1, $2)', [own.id, id]);
      tokens.push(token, rotated.rows[0]?.token as string);
    }
    t.is(new Set(tokens).size, 14);
    const log = readFileSync(shared.logs.primary, 'utf8');
    t.true(log.includes('gateway.rotate_token'));
    for (const token of tokens) {
      t.true(isWellFormed(token));
      t.false(log.includes(token.slice(4, 20)) || log.includes(Buffer.from(token).toString('hex').slice(8, 40)));
    }
  },
);

(browserMissing ? test.serial.skip : test.serial)(
  `in the settings page of the demo an owner makes a token, sees it once, rotates and revokes it${browserMissing}`,
  async (t) => {
    const { client: api, database } = t.context;
    const app = await appLogin(t, database);
    const { rows: owners } = await database.primary.query(ownersSql);
    const url = `postgres://${app.user}:${app.password}@${app.host}:${app.port}/${database.name}`;
    const settings = await startSettingsPage(url, owners, ['read:klanten', 'read:werkbonnen']);
    t.teardown(settings.close);
    const browser = await launchBrowser();
    t.teardown(() => browser.close());
    const { page: tab, faults } = await openPage(browser, settings.url);
    const shown = (selector: string) =>
      tab.evaluate<string | null>(`document.querySelector('${selector}')?.textContent ?? null`);
    const statusOf = async (token: string | null) => {
      await database.caughtUp();
      return (await api.get('/klanten?perPage=1', { token })).status;
    };
    await tab.click('#sign-in');
    await tab.fill('input[name=name]', '<b>Power BI</b>');
    await tab.click('input[value="read:klanten"]');
    await tab.click('#issue');
    const token = await shown('#token');
    t.true(isWellFormed(token ?? ''));
    t.is(await statusOf(token), 200);
    t.is(await shown('td b'), null);
    await tab.goto(settings.url);
    t.is(await shown('#token'), null, 'it is shown once');
    await tab.click('form[action="/rotate"] button');
    const successor = await shown('#token');
    t.deepEqual([await statusOf(token), await statusOf(successor)], [401, 200]);
    await tab.goto(settings.url);
    await tab.click('form[action="/revoke"] button');
    t.is(await statusOf(successor), 401);
    t.deepEqual(faults, []);
    const forged = await fetch(`${settings.url}issue`, { method: 'POST', headers: { origin: 'http://evil.test' } });
    t.is(forged.status, 403);
  },
);

test.serial('the sample for Node.js makes a token that works', async (t) => {
  const { client: api, database } = t.context;
  const [own] = database.workspaces as [(typeof database.workspaces)[number]];
  const app = await appLogin(t, database);
  const AsyncFunction = (async () => undefined).constructor as FunctionConstructor;
  const run = new AsyncFunction('client', 'workspaceId', 'userId', 'expiresAt', `${sample('js')}; return token;`);
  const token = (await run(app, own.id, own.ownerId, inAnHour())) as string;
  await database.caughtUp();
  t.is((await api.get('/klanten?perPage=1', { token })).status, 200);
});

const python = ['python3', '/usr/bin/python3'].find((each) => spawnSync(each, ['-c', 'import psycopg2']).status === 0);
const hasPython = python !== undefined;
const withPython = hasPython ? test.serial : test.serial.skip;
withPython(
  `the sample for Python makes a token that works${hasPython ? '' : ' (skipped: python3-psycopg2 is not installed)'}`,
  async (t) => {
    const { client: api, database } = t.context;
    const [own] = database.workspaces as [(typeof database.workspaces)[number]];
    const app = await appLogin(t, database);
    const { host, port, user, password } = app;
    const program = `import psycopg2, sys
workspace_id, user_id, expires_at = sys.argv[2], sys.argv[3], sys.argv[4]
connection = psycopg2.connect(sys.argv[1])
connection.autocommit = True
${sample('python')}
print(token)`;
    const url = `postgres://${user}:${password}@${host}:${port}/${database.name}`;
    const { stdout, stderr } = spawnSync(
      python as string,
      ['-c', program, url, own.id, own.ownerId, inAnHour().toISOString()],
      { encoding: 'utf8' },
    );
    t.is(stderr, '');
    await database.caughtUp();
    t.is((await api.get('/klanten?perPage=1', { token: stdout.trim() })).status, 200);
  },
);
