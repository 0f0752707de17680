import { appendFileSync, cpSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import type { ExecutionContext } from 'ava';
import pg from 'pg';
import { projectRoot } from '../../src/base/paths.js';
import { defaultViewsDir } from '../../src/operate/migrate/sql-files.js';
import { type CommandResult, commandLine, connections } from '../support/command-line.js';
import { limitMs } from '../support/patience.js';
import { words } from '../support/words.js';
import { eventually, gatewayTest, type TestContext } from '../support/workspace.js';
import { newKey } from '../support/writes.js';

// `migrate` and `views` as processes, on a database with requests under way.

const test = gatewayTest();
const folder = mkdtempSync(join(tmpdir(), 'views-'));
test.before(() => cpSync(defaultViewsDir, folder, { recursive: true }));
test.after.always(() => rmSync(folder, { recursive: true }));

const file = (name: string): string => join(folder, name);
const run = (t: ExecutionContext<TestContext>, ...args: string[]): Promise<CommandResult> =>
  commandLine(args, connections(t.context.database));
const migrate = (t: ExecutionContext<TestContext>): Promise<CommandResult> => run(t, 'migrate', '--views', folder);

/** Sets `lock_timeout` of reads. The replica that all files share can pause within a change of views, to copy a database. */
async function setLockTimeout(t: ExecutionContext<TestContext>, setting: string): Promise<void> {
  const { name, primary, replica, caughtUp } = t.context.database;
  await primary.query(`alter role gateway_reader in database ${name} ${setting}`);
  await caughtUp();
  const sessions = `from pg_stat_activity where datname = '${name}' and usename = 'gateway_reader'`;
  await replica.query(`select pg_terminate_backend(pid) ${sessions}`);
  await eventually(t, 'a new session', async () => (await t.context.client.get('/klanten')).status === 200);
}

async function oids({ context }: ExecutionContext<TestContext>): Promise<string> {
  const { rows } = await context.database.primary.query<{ oids: string }>(
    `select string_agg(oid::text, ' ' order by oid) as oids from pg_class
     where relnamespace in ('gateway'::regnamespace, 'records'::regnamespace) and relkind = 'v' and relname <> 'verified_workspace'`,
  );
  return rows[0]?.oids ?? '';
}

async function identities({ context }: ExecutionContext<TestContext>): Promise<Map<string, string>> {
  const { rows } = await context.database.primary.query<{ name: string; oid: string }>(
    `select oid::regclass::text as name, oid::text from pg_class
     where relnamespace in ('gateway'::regnamespace, 'records'::regnamespace) and relkind = 'v'`,
  );
  return new Map(rows.map(({ name, oid }) => [name, oid]));
}

async function rights({ context }: ExecutionContext<TestContext>): Promise<string[]> {
  const { rows } = await context.database.primary.query<{ right: string }>(
    `select format('%s %s %s', relname, relowner::regrole, relacl) as right from pg_class where relnamespace in ('gateway'::regnamespace, 'records'::regnamespace) and relkind <> 'i'
     union all select format('%s %s %s %s', relname, attname, attacl, atttypid::regtype) from pg_attribute a join pg_class c on c.oid = attrelid
       where relnamespace in ('gateway'::regnamespace, 'records'::regnamespace) and relkind = 'v' and attnum > 0
     union all select format('%s %s %s', proname, proowner::regrole, proacl) from pg_proc where pronamespace = 'gateway'::regnamespace order by 1`,
  );
  return rows.map(({ right }) => right);
}

test.serial('while the views are replaced again and again no read and no write fails', async (t) => {
  const { client, database, gateway, token } = t.context;
  await setLockTimeout(t, `set lock_timeout = '60s'`);
  const [workspace] = database.workspaces;
  const { rows } = await database.primary.query<{ id: string }>(
    'select id from app.installaties where workspace_id = $1 limit 1',
    [workspace?.id],
  );
  const [id] = rows.map((row) => row.id);
  const before = await rights(t);
  const statuses = new Map<string, number>();
  let replacing = true;
  const count = (status: number, text: string): void => {
    const outcome = status < 300 ? 'ok' : `${status} ${text}`;
    statuses.set(outcome, (statuses.get(outcome) ?? 0) + 1);
  };
  const paths = [
    '/klanten?perPage=20',
    `/installaties/${id}`,
    '/werkbonnen?perPage=300',
    '/logboeken?perPage=50&total=true',
  ];
  const read = (path: string): Promise<Response> =>
    fetch(`${gateway.url}/api/v1${path}`, { headers: { authorization: `Bearer ${token}` } });
  const readAgain = async (path: string): Promise<void> => {
    while (replacing) {
      const reply = await read(path);
      count(reply.status, await reply.text());
    }
  };
  const writeAgain = async (): Promise<void> => {
    for (let n = 0; replacing; n++) {
      const etag = (await read(`/installaties/${id}`)).headers.get('etag') as string;
      const headers = { 'idempotency-key': newKey(), 'if-match': etag };
      const patch = () => client.request('PATCH', `/installaties/${id}`, { body: { locatie: `place ${n}` }, headers });
      // On a busy machine the replacement can hold its locks for longer than a write waits: the client repeats the request until its
      // outcome is known.
      let reply = await patch();
      while (replacing && (reply.status === 503 || reply.text.includes('idempotency_in_progress')))
        reply = await patch();
      if (replacing) count(reply.status, reply.text);
    }
  };
  const load = Promise.all([...paths, ...paths].map(readAgain).concat(writeAgain()));
  let last = await oids(t);
  for (let turn = 1; turn <= 4; turn++) {
    appendFileSync(file('klanten.sql'), `-- change ${turn}\n`);
    const { stdout, stderr, code } = await migrate(t);
    t.is(code, 0, stderr);
    t.is(stdout, 'replaced the views: views/klanten.sql changed\n');
    const now = await oids(t);
    t.not(now, last);
    last = now;
  }
  await eventually(
    t,
    'requests beside and behind the replacements',
    async () => (statuses.get('ok') ?? 0) > 250,
    60_000,
  );
  replacing = false;
  await load;
  t.log(Object.fromEntries(statuses));
  t.deepEqual([...statuses.keys()], ['ok']);
  t.deepEqual(await rights(t), before);
  await setLockTimeout(t, 'reset lock_timeout');
  t.is((await run(t, 'check')).code, 0);
});

test.serial('migrate shows what it would do, and does nothing twice', async (t) => {
  t.is((await migrate(t)).stdout, 'nothing to do\n');
  appendFileSync(file('werkbonnen.sql'), '-- changed\n');
  writeFileSync(file('zero.sql'), `create function gateway.zero() returns integer language sql as 'select 0';`);
  const planned = 'replaced the views: views/werkbonnen.sql changed, views/zero.sql pending\n';
  const listed = (await run(t, 'migrate', '--list', '--views', folder)).stdout;
  for (const line of [
    'applied core/001_roles.sql',
    'applied views/klanten.sql',
    'changed views/werkbonnen.sql',
    'applied gateway/werkbonnen',
  ])
    t.true(listed.includes(`${line}\n`), listed);
  const pending = 'changed views/werkbonnen.sql\npending views/zero.sql\n';
  t.is((await run(t, 'migrate', '--pending', '--views', folder)).stdout, pending);
  t.is((await migrate(t)).stdout, planned);
  t.is((await migrate(t)).stdout, 'nothing to do\n');
  rmSync(file('zero.sql'));
  t.is((await migrate(t)).stdout, 'replaced the views: views/zero.sql removed\n');
  t.is((await t.context.database.primary.query(`select to_regproc('gateway.zero') as it`)).rows[0].it, null);
});

test.serial('only the views of a changed file and those above them are replaced', async (t) => {
  const before = await identities(t);
  appendFileSync(file('klanten.sql'), '-- again\n');
  t.is((await migrate(t)).code, 0);
  const now = await identities(t);
  t.deepEqual([...now.keys()].sort(), [...before.keys()].sort());
  t.deepEqual(
    [...now].flatMap(([name, oid]) => (before.get(name) === oid ? [] : [name])).sort(),
    words('gateway.klanten gateway.klanten_asc gateway.klanten_by_id gateway.klanten_desc records.klanten'),
  );
});

test.serial('the views of the roles follow the definitions, and what was changed by hand is made again', async (t) => {
  const definitions = mkdtempSync(join(tmpdir(), 'resources-'));
  t.teardown(() => rmSync(definitions, { recursive: true }));
  cpSync(join(projectRoot, 'config/resources'), definitions, { recursive: true });
  const path = join(definitions, 'klanten.json');
  const klanten = JSON.parse(readFileSync(path, 'utf8'));
  const own = (...args: string[]): Promise<CommandResult> =>
    commandLine([...args, '--views', folder], { ...connections(t.context.database), resourcesDir: definitions });
  const before = await identities(t);
  writeFileSync(path, JSON.stringify({ ...klanten, order: ['updated_at', 'id'] }));
  t.is((await own('migrate')).stdout, 'replaced the views: gateway/klanten changed\n');
  const { primary } = t.context.database;
  const definition = async (view: string): Promise<string> =>
    (await primary.query(`select pg_get_viewdef($1) as text`, [view])).rows[0].text;
  t.regex(await definition('gateway.klanten_desc'), /ORDER BY (\w+\.)?updated_at DESC/);
  t.is((await identities(t)).get('records.klanten'), before.get('records.klanten'));
  writeFileSync(path, JSON.stringify({ ...klanten, order: ['nothing', 'id'] }));
  const flawed = await own('migrate');
  t.is(flawed.code, 2);
  t.regex(flawed.stderr, /klanten\.json \/order\/0: no field shows column nothing/);
  writeFileSync(path, JSON.stringify(klanten));
  const log = join(definitions, 'logboeken.json');
  writeFileSync(log, readFileSync(log, 'utf8').replace('records.logboeken', 'records.others'));
  t.regex((await own('migrate')).stderr, /^The definition of logboeken reads records\.others, which does not exist/);
  t.is((await migrate(t)).stdout, 'replaced the views: gateway/klanten changed\n');
  await primary.query('alter view gateway.klanten reset (security_barrier)');
  t.is((await run(t, 'migrate', '--pending', '--views', folder)).stdout, 'altered gateway/klanten\n');
  t.is((await migrate(t)).stdout, 'replaced the views: gateway/klanten altered\n');
  t.regex(await definition('gateway.klanten'), /gateway\.workspace\(\)/);
});

test.serial('a file with a view, its function and its trigger is applied again', async (t) => {
  const sql = `create view records.notices as select id from app.klanten;
    create function records.note() returns trigger language plpgsql as 'begin return new; end';
    create trigger note instead of insert on records.notices for each row execute function records.note();`;
  writeFileSync(file('notices.sql'), sql);
  t.is((await migrate(t)).stdout, 'replaced the views: views/notices.sql pending\n');
  appendFileSync(file('notices.sql'), '-- again\n');
  t.is((await migrate(t)).stdout, 'replaced the views: views/notices.sql changed\n');
  rmSync(file('notices.sql'));
  t.is((await migrate(t)).code, 0);
});

test.serial('a view that the app dropped by CASCADE is pending, and migrate creates it again', async (t) => {
  const before = await rights(t);
  await t.context.database.primary.query('drop view records.werkbonnen cascade');
  const pending = await run(t, 'migrate', '--pending', '--views', folder);
  t.is(pending.code, 1, pending.stdout);
  t.true((await run(t, 'migrate', '--list', '--views', folder)).stdout.includes('pending views/werkbonnen.sql\n'));
  t.is((await migrate(t)).stdout, 'replaced the views: views/werkbonnen.sql pending, gateway/werkbonnen pending\n');
  t.deepEqual(await rights(t), before);
  await t.context.database.primary.query('drop view records.klanten cascade');
  t.is((await run(t, 'views', '--drop')).code, 0);
  t.is((await run(t, 'views', '--create')).code, 0);
  t.deepEqual(await rights(t), before);
});

test.serial('a file of sql/core that changed after it was applied is refused by its name', async (t) => {
  const { primary } = t.context.database;
  const hash = (value: string): Promise<unknown> =>
    primary.query(`update gateway.applied_files set hash = ${value} where name = '002_workspace.sql'`);
  await hash(`'0' || hash`);
  for (const args of [['migrate'], ['views', '--create']]) {
    const { stdout, stderr, code } = await run(t, ...args);
    t.is(code, 1);
    t.is(stdout, '');
    t.regex(stderr, /^Changed after the database applied it: core\/002_workspace\.sql\. /);
  }
  t.regex((await run(t, 'migrate', '--list')).stdout, /^changed core\/002_workspace\.sql$/m);
  await hash('substr(hash, 2)');
  t.is((await migrate(t)).code, 0);
});

const wrongFiles = {
  'an error of SQL': [
    'create view gateway.x as\n  select nothing from app.klanten;',
    /^views\/wrong\.sql:2: column "nothing" does not exist/,
  ],
  'a COMMIT': [
    'create view gateway.x as select 1; commit;',
    /^views\/wrong\.sql.*: EXECUTE of transaction commands is not implemented/,
  ],
  'a table': [
    'create table gateway.x (y integer);',
    /^views\/wrong\.sql: it creates the table gateway\.x, whose rows would be lost/,
  ],
} as const;

test.serial('a file that cannot be applied is named, and every view stays as it was', async (t) => {
  const before = await oids(t);
  for (const [name, [sql, message]] of Object.entries(wrongFiles)) {
    writeFileSync(file('wrong.sql'), sql);
    const { stderr, code } = await migrate(t);
    t.is(code, 1, name);
    t.regex(stderr, message, name);
    t.is(await oids(t), before, name);
  }
  rmSync(file('wrong.sql'));
});

test.serial('a view of the app over one of these is not dropped with it, but named', async (t) => {
  const { primary } = t.context.database;
  await primary.query('create view app.report as select id from records.klanten');
  const before = await oids(t);
  const { stderr, code } = await run(t, 'views', '--drop');
  t.is(code, 1);
  t.regex(stderr, /cannot drop view records\.klanten .*view app\.report depends on view records\.klanten/);
  t.is(await oids(t), before);
  await primary.query('drop view app.report');
});

test.serial(
  'a statement that runs for long delays the replacement, which holds up others for a moment only',
  async (t) => {
    const { primary, settings } = t.context.database;
    const busy = new pg.Client(settings.adminUrl);
    busy.on('error', () => undefined);
    await busy.connect();
    await busy.query('begin; select 1 from gateway.klanten limit 1');
    appendFileSync(file('klanten.sql'), '-- changed once more\n');
    let done = false;
    const replaced = migrate(t).finally(() => {
      done = true;
    });
    await primary.query(`set lock_timeout = '5s'`);
    let waitedMs = 0;
    for (let n = 0; n < 60; n++) {
      const startedMs = performance.now();
      await primary.query('select 1 from gateway.klanten limit 1');
      waitedMs = Math.max(waitedMs, performance.now() - startedMs);
      await new Promise((resolve) => setTimeout(resolve, 50));
    }
    t.false(done, 'it waits for the statement');
    t.true(waitedMs < limitMs(900), `a statement waited ${Math.round(waitedMs)} ms`);
    await busy.query('commit');
    await busy.end();
    t.is((await replaced).stdout, 'replaced the views: views/klanten.sql changed\n');
  },
);

/** Without them no token would be known meanwhile. */
const ofTokens = ['api_tokens', 'token_owners', 'verified_workspace', 'workspaces'].map((name) => `gateway.${name}`);

test.serial('views --drop and --create make room for a change of a column that views read', async (t) => {
  const { primary } = t.context.database;
  await primary.query('drop view probe.installaties cascade'); // of the tests, and reads the column as well
  const change = 'alter table app.installaties alter column merk type varchar(200)';
  await t.throwsAsync(primary.query(change), { message: /cannot alter type of a column used by a view/ });
  const before = await rights(t);
  const missing = await run(t, 'views', '--drop', '--tables', 'app.installaties,app.absent');
  t.deepEqual([missing.code, missing.stderr.includes('relation "app.absent" does not exist')], [1, true]);
  const own = 'views/installaties.sql, gateway/installaties';
  t.is((await run(t, 'views', '--drop', '--tables', 'app.installaties')).stdout, `dropped the views: ${own}\n`);
  t.is((await run(t, 'views', '--create')).stdout, 'created the views\n');
  t.deepEqual(await rights(t), before);
  t.regex(
    (await run(t, 'views', '--drop')).stdout,
    /^dropped the views: views\/installaties\.sql.* gateway\/werkbonnen/,
  );
  t.deepEqual([...(await identities(t)).keys()].sort(), ofTokens);
  t.is((await run(t, 'views', '--drop')).code, 0, 'there is nothing left to drop');
  await primary.query(change);
  t.is((await run(t, 'views', '--create')).stdout, 'created the views\n');
  const after = (await rights(t)).map((right) =>
    right.replace(/^(installaties\w* merk .*)character varying$/, '$1text'),
  );
  t.deepEqual(after, before);
  t.is((await run(t, 'check')).code, 0);
  t.is((await run(t, 'views')).code, 2);
  t.is((await run(t, 'views', '--drop', '--create')).code, 2);
  t.is((await run(t, 'views', '--create', '--tables', 'app.klanten')).code, 2);
});
