import { spawn } from 'node:child_process';
import { randomUUID } from 'node:crypto';
import {
  closeSync,
  cpSync,
  existsSync,
  mkdirSync,
  mkdtempSync,
  openSync,
  readFileSync,
  rmSync,
  writeFileSync,
} from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import test, { type ExecutionContext } from 'ava';
import pg from 'pg';
import { urlAs } from '../../demo/cluster/passwords.js';
import { projectRoot, readProject } from '../../src/base/paths.js';
import { checkApplied } from '../../src/doctor/view-checks.js';
import { defaultViewsDir, readSqlFiles } from '../../src/operate/migrate/sql-files.js';
import { listSessionSettings } from '../../src/postgres/wire/session.js';
import { loadResources } from '../../src/resource/definition/load.js';
import { commandLine, withViews } from '../support/command-line.js';
import { environmentOf } from '../support/environment.js';
import { until } from '../support/patience.js';
import { wallKey } from '../support/walls.js';
import { wireProxy } from '../support/wire-proxy.js';
import { shared } from '../support/workspace.js';

// Output without a reader or on a full disk; `migrate` beside another run, with a faulty file, and without CREATEROLE.

const name = `migrate_${randomUUID().slice(0, 8)}`;
const adminUrl = urlAs(shared.primary, 'postgres', name);
const migrate = (...args: string[]) => commandLine(['migrate', ...args], { adminUrl, wallKey });

async function run<Row extends object>(url: string, sql: string): Promise<Row[]> {
  const client = new pg.Client({ connectionString: url });
  await client.connect();
  return (await client.query<Row>(sql).finally(() => client.end())).rows;
}

function commandTo(stdout: 'nothing' | number, args: string[]): Promise<{ code: number | null; stderr: string }> {
  const child = spawn(process.execPath, [join(projectRoot, 'dist/src/main.js'), ...withViews(args)], {
    env: { PATH: process.env.PATH, ...environmentOf({ adminUrl, wallKey }) },
    stdio: ['ignore', stdout === 'nothing' ? 'pipe' : stdout, 'pipe'],
  });
  child.stdout?.destroy();
  let stderr = '';
  child.stderr?.on('data', (bytes: Buffer) => (stderr += String(bytes)));
  return new Promise((resolve) => child.once('close', (code) => resolve({ code, stderr })));
}

function viewsFolder(t: ExecutionContext): string {
  const folder = mkdtempSync(join(tmpdir(), 'migrate-'));
  t.teardown(() => rmSync(folder, { recursive: true }));
  cpSync(defaultViewsDir, folder, { recursive: true });
  return folder;
}

test.before(async () => {
  await run(shared.primary, `create database ${name}`);
  await run(adminUrl, readProject('sql/apps/first/schema.sql'));
});
test.after.always(() => run(shared.primary, `drop database ${name} with (force)`));

test.serial('a command does all of its work when its output has no reader, and its exit code is of that', async (t) => {
  for (const args of [[], ['--pending'], ['--indexes']])
    t.deepEqual(await commandTo('nothing', ['migrate', ...args]), { code: 0, stderr: '' });
  const text = `select count(*)::int from pg_indexes where schemaname = 'app' and indexname ~ '^gateway_'`;
  t.true(((await run<{ count: number }>(adminUrl, text))[0]?.count ?? 0) > 5);
  t.deepEqual(await run(adminUrl, 'select from pg_index where not indisvalid'), []);
  await run(adminUrl, `update gateway.applied_files set hash = 'x' || hash where name = 'klanten.sql'`);
  t.is((await commandTo('nothing', ['migrate', '--pending'])).code, 1);
  await run(adminUrl, `update gateway.applied_files set hash = substr(hash, 2) where name = 'klanten.sql'`);
});

test.serial('a token that could not be shown is named as lost, with the way to another', async (t) => {
  const [workspace] = await run<{ id: string; owner: string }>(
    adminUrl,
    `with made as (insert into app.workspaces (id, naam) values (gen_random_uuid(), 'Closed') returning id)
     insert into app.users (id, workspace_id, naam, email, rol)
     select gen_random_uuid(), id, 'A', 'a@closed.example', 'owner' from made returning workspace_id as id, email as owner`,
  );
  const create = ['tokens', 'create', '--workspace', workspace?.id ?? '', '--owner', workspace?.owner ?? ''];
  const { code, stderr } = await commandTo('nothing', [...create, '--name', 'x', '--scopes', 'read:klanten']);
  t.is(code, 1, stderr);
  const [, id = ''] = /and is lost: `tokens rotate (\S+)` makes another in its place[.]\n$/.exec(stderr) ?? [];
  t.deepEqual(await run(adminUrl, 'select id::text from gateway.api_tokens'), [{ id }]);
});

const full = '/dev/full';
(existsSync(full) ? test.serial : test.serial.skip)('a full disk under the output is a failure', async (t) => {
  const descriptor = openSync(full, 'w');
  t.teardown(() => closeSync(descriptor));
  const stderr = 'The output could not be written (ENOSPC).\n';
  t.deepEqual(await commandTo(descriptor, ['migrate', '--list']), { code: 1, stderr });
});

test.serial('an error names the file, and the line where PostgreSQL gives a position', async (t) => {
  const folder = viewsFolder(t);
  for (const [statement, fault] of [
    ['alter view gateway.extra owner to no_such_role', ': role "no_such_role" does not exist'],
    ['create view gateway.other as\n  select 1 as a,\n  no from app.klanten', ':5: column "no" does not exist'],
  ]) {
    const sql = `create view gateway.extra as select ';' as a;\n\n${statement};\nselect 1;\n`;
    writeFileSync(join(folder, 'zz.sql'), sql);
    t.deepEqual(await migrate('--views', folder), { code: 1, stdout: '', stderr: `views/zz.sql${fault}\n` });
  }
});

test.serial('a server older than PostgreSQL 15 is named before anything is read or made', async (t) => {
  // The server's own version, made older on the way: `18.4` becomes `14.4`.
  const proxy = await wireProxy(adminUrl, (near, far) => {
    near.pipe(far);
    far.on('data', (bytes: Buffer) =>
      near.write(Buffer.from(bytes.toString('latin1').replace(/\b1[5-9](?=\.\d)/g, '14'), 'latin1')),
    );
  });
  t.teardown(() => proxy.close());
  const { code, stdout, stderr } = await commandLine(['migrate'], { adminUrl: proxy.url, wallKey });
  t.regex(stderr, /^ADMIN_URL leads to PostgreSQL 14\.\d+.*: the gateway needs 15 or later\.\n$/);
  t.deepEqual([code, stdout], [2, '']);
});

test.serial('a folder of views without index proposals is no error, and one that does not exist is', async (t) => {
  const folder = viewsFolder(t);
  rmSync(join(folder, 'indexes'), { recursive: true });
  const nothing = { code: 0, stdout: 'nothing to do\n', stderr: '' };
  t.deepEqual(await migrate('--views', folder, '--indexes'), nothing);
  mkdirSync(join(folder, 'indexes'));
  writeFileSync(join(folder, 'indexes/._klanten.sql'), 'Mac OS X'); // as macOS leaves it on other disks
  t.deepEqual(await migrate('--views', folder, '--indexes'), nothing);
  const absent = join(folder, 'absent');
  const stderr = `The folder ${absent} cannot be read: ENOENT.\n`;
  t.deepEqual(await migrate('--views', absent, '--indexes'), { code: 1, stdout: '', stderr });
});

test.serial('partitions whose names are long in bytes, and not in letters, get an index each', async (t) => {
  const folder = viewsFolder(t);
  const part = (n: number) => `create table app."${'é'.repeat(25)}_${n}" partition of app.delen for values in (${n})`;
  await run(adminUrl, `create table app.delen (n int) partition by list (n); ${part(1)}; ${part(2)}`);
  const index = 'create index concurrently if not exists gateway_delen_op_n on app.delen (n);';
  writeFileSync(join(folder, 'indexes/delen.sql'), index);
  const { code, stderr } = await migrate('--views', folder, '--indexes');
  t.is(code, 0, stderr);
  const valid = `select from pg_index where indisvalid and indrelid::regclass::text ~ '^app."?(delen|éé)'`;
  t.is((await run(adminUrl, valid)).length, 3);
});

test('a file of the views whose name does not count is refused, not passed over', (t) => {
  const folder = viewsFolder(t);
  const names = () => readSqlFiles('views', folder).map(({ name }) => name);
  const before = names();
  for (const name of ['._klanten.sql', 'notes.txt']) writeFileSync(join(folder, name), 'select 1');
  t.deepEqual(names(), before);
  writeFileSync(join(folder, 'work.orders.sql'), 'select 1');
  t.throws(names, { message: /not named such as klanten\.sql, .*: work\.orders\.sql\. Rename them/ });
});

test.serial('files of Windows are read with line ends and byte order mark; no encoding but UTF-8 is', async (t) => {
  const folder = viewsFolder(t);
  for (const file of ['klanten.sql', 'indexes/werkbonnen_nummer.sql']) {
    const text = readFileSync(join(folder, file), 'utf8');
    writeFileSync(join(folder, file), `\ufeff${text.replaceAll('\n', '\r\n')}`);
  }
  const { code, stdout, stderr } = await migrate('--views', folder);
  t.is(code, 0, stderr);
  t.regex(stdout, /klanten[.]sql changed/);
  t.is((await migrate('--views', folder, '--indexes')).code, 0);
  writeFileSync(join(folder, 'klanten.sql'), Buffer.from('\ufeffselect 1;', 'utf16le'));
  const refused = `The file ${folder}/klanten.sql cannot be read: it is not UTF-8.\n`;
  t.deepEqual(await migrate('--views', folder), { code: 1, stdout: '', stderr: refused });
});

test.serial('migrate waits for another run, says for which, and gives up after its time', async (t) => {
  const holder = new pg.Client({ connectionString: adminUrl, application_name: 'another migrate' });
  await holder.connect();
  const { rows } = await holder.query<{ pid: number }>(`select pg_backend_pid() as pid`);
  await holder.query('begin; lock table gateway.migration_lock in share update exclusive mode');
  const process = `process ${rows[0]?.pid} \\(another migrate, user postgres, since [-0-9: ]+\\)`;
  const refused = await migrate('--wait', '1');
  t.is(refused.code, 1);
  const first = `^Waiting up to 1 s for another migration: ${process}\\.\n`;
  t.regex(refused.stderr, new RegExp(`${first}Another migration has run for more than 1 s: ${process}\\. Nothing was`));
  const waiting = migrate('--wait', '30');
  // It has asked for the holder, and has the answer.
  const isWaited = `select from pg_stat_activity where datname = current_database() and pid <> pg_backend_pid()
    and state = 'idle' and query like '%pg_locks l join%gateway.migration_lock%'`;
  t.true(await until(async () => (await run(adminUrl, isWaited)).length > 0, 20_000, 50));
  await holder.end();
  const { code, stderr } = await waiting;
  t.is(code, 0, stderr);
  t.regex(stderr, new RegExp(`^Waiting up to 30 s for another migration: ${process}\\.\n$`));
});

test('an admin without CREATEROLE migrates, once a DBA has run deploy/roles.sql', async (t) => {
  const admin = `admin_${randomUUID().slice(0, 8)}`;
  await run(shared.primary, `create role ${admin} login password 'secret'`);
  await run(shared.primary, `create database ${admin} owner ${admin}`);
  try {
    const login = { username: admin, password: 'secret', pathname: admin };
    const own = { adminUrl: Object.assign(new URL(shared.primary), login).href, wallKey };
    await run(own.adminUrl, readProject('sql/apps/first/schema.sql'));
    const refused = await commandLine(['migrate'], own);
    t.is(refused.code, 1);
    t.regex(refused.stderr, /core\/001_roles\.sql.*(permission denied|must have)/);
    await run(shared.primary, `set gateway.admin = '${admin}'; ${readProject('deploy/roles.sql')}`);
    const { stderr, code } = await commandLine(['migrate'], own);
    t.deepEqual({ stderr, code }, { stderr: '', code: 0 });
    const pending = await commandLine(['migrate', '--pending'], own);
    t.is(pending.code, 0, pending.stdout);
  } finally {
    await run(shared.primary, `drop database ${admin} with (force)`);
    // Another test can migrate a database meanwhile, which grants TEMPORARY to every role by name, and goes.
    const gone = () => run(shared.primary, `drop role ${admin}`).then(Boolean, () => false);
    t.true(await until(gone, 60_000, 200));
  }
});

test('deploy/roles.sql gives the roles the settings of sql/core/001_roles.sql, which each login sends', (t) => {
  const listed = (path: string): string[] =>
    readProject(path).match(/\('\w+', (?:null|'[^']*'), (?:null|'[^']*')\)/g) ?? [];
  t.is(listed('deploy/roles.sql').length, 25);
  t.deepEqual(listed('deploy/roles.sql'), listed('sql/core/001_roles.sql'));
  const sent = listSessionSettings('primary', { statementTimeoutMs: 0, writeTimeoutMs: 20_000 });
  const value = (setting: string) => sent.find(({ name }) => name === setting)?.value;
  t.deepEqual(['statement_timeout', 'synchronous_commit', 'jit'].map(value), ['40000', 'on', undefined]);
});

const byHand: readonly (readonly [sql: string, object: string, differs: string])[] = [
  ['revoke all on function gateway.find_token from gateway_reader', 'function gateway.find_token(bytea)', 'privileges'],
  [
    `create or replace function gateway.is_token_owner(workspace text, owner text) returns boolean language sql as 'select true'`,
    'function gateway.is_token_owner(text,text)',
    'text',
  ],
  ['alter function gateway.workspace() owner to postgres', 'function gateway.workspace()', 'privileges, owner'],
  ['drop function gateway.received_timeline()', 'function gateway.received_timeline()', 'it is gone'],
  ['grant select on gateway.wall_keys to gateway_reader', 'table gateway.wall_keys', 'privileges'],
  ['grant update (used_at) on gateway.token_uses to gateway_writer', 'table gateway.token_uses', 'privileges'],
  ['drop policy own_workspace on gateway.idempotency', 'table gateway.idempotency', 'text'],
];

test.serial(
  'migrate --repair makes again what was changed by hand in the schema gateway, and check names it until then',
  async (t) => {
    const states = () =>
      run(adminUrl, `select objects, sources from gateway.applied_files where root = 'core' and digest is not null`);
    const before = await states();
    const finding = async () => {
      const client = new pg.Client(adminUrl);
      await client.connect();
      return checkApplied(client, loadResources('')).finally(() => client.end());
    };
    const levels = async () => (await finding()).map(({ level }) => level);
    const repair = () => commandLine(['migrate', '--repair'], { adminUrl });
    t.deepEqual(await levels(), ['ok']);
    for (const [sql, object, differs] of byHand) {
      await run(adminUrl, sql);
      const [item] = await finding();
      t.like(item, { level: 'refused', detail: `changed since \`migrate\` made it: ${object} (${differs}).` });
      t.regex(item?.advice ?? '', /^Run migrate --repair,/);
      const { stdout, stderr } = await repair();
      const parts = differs === 'it is gone' ? 'it was gone' : differs.split(', ').reverse().join(', ');
      t.is(stdout, `made again: ${object} (${parts})\n`, stderr);
      t.deepEqual(await levels(), ['ok']);
    }
    await run(adminUrl, 'revoke usage on schema gateway from gateway_reader');
    t.is((await repair()).stdout, 'made again: schema gateway (privileges)\n');
    t.is((await repair()).stdout, 'nothing to do\n');
    t.deepEqual(await states(), before);
  },
);
