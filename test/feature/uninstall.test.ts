import suite from 'ava';
import { type Cluster, startCluster } from '../../demo/cluster/cluster.js';
import { projectText } from '../../src/base/paths.js';
import { asAdmin } from '../../src/postgres/admin.js';
import { commandLine } from '../support/command-line.js';
import { wallKey } from '../support/walls.js';

const test = suite.serial;

// `migrate --uninstall` on a cluster of its own: roles belong to all databases of one.

let cluster: Cluster;
test.before(async () => {
  cluster = await startCluster({ replicas: 0, settings: { fsync: 'off', shared_buffers: '32MB' } });
  await cluster.primary.query(`create role app_temporary login; create role app_other login;
    create role app_admin login createrole password 'secret'`);
});
test.after.always(() => cluster?.stop());

/** All that stands in the catalogs, with privileges as they work: an ACL that is NULL means its default. */
const catalogs = `
  select concat_ws(' ', kind, name, grantee::regrole, privilege_type, is_grantable) as line from (
    select 'schema', nspname::text, coalesce(nspacl, acldefault('n', nspowner)) from pg_namespace where nspname !~ '^pg_(temp|toast_temp)_'
    union all select 'relation', c.oid::regclass::text, coalesce(relacl, acldefault(case relkind when 'S' then 's' else 'r' end::"char", relowner))
      from pg_class c where relnamespace <> 'pg_toast'::regnamespace
    union all select 'column', format('%s.%I', attrelid::regclass, attname), coalesce(attacl, acldefault('c', 10)) from pg_attribute where attnum > 0 and attacl is not null
    union all select 'function', oid::regprocedure::text, coalesce(proacl, acldefault('f', proowner)) from pg_proc
    union all select 'database', datname::text, coalesce(datacl, acldefault('d', datdba)) from pg_database where datname = current_database()
  ) o (kind, name, acl) left join lateral aclexplode(acl) on true
  union all select concat_ws(' ', 'role', rolname, rolconfig) from pg_roles
  union all select concat_ws(' ', 'member', roleid::regrole, member::regrole) from pg_auth_members
  union all select indexdef from pg_indexes
  union all select concat_ws(' ', 'policy', polname, polrelid::regclass) from pg_policy
  union all select concat_ws(' ', 'trigger', tgname, tgrelid::regclass) from pg_trigger
  order by 1`;

const linesOf = async (database: string): Promise<string[]> =>
  (await asAdmin(cluster.primary.url(database), (client) => client.query<{ line: string }>(catalogs))).rows.map(
    ({ line }) => line,
  );

async function appDatabase(name: string, owner = 'postgres'): Promise<void> {
  await cluster.primary.query(`create database ${name} owner ${owner}`);
  await asAdmin(cluster.primary.url(name), async (client) => {
    await client.query(`set role ${owner}; ${projectText('sql/apps/first/schema.sql')}`);
    await client.query(`reset role; grant temporary on database ${name} to app_temporary`);
  });
}

const migrate = (adminUrl: string, ...args: string[]) => commandLine(['migrate', ...args], { adminUrl, wallKey });

async function install(adminUrl: string): Promise<void> {
  for (const args of [[], ['--indexes']]) {
    const { code, stderr } = await migrate(adminUrl, ...args);
    if (code !== 0) throw new Error(stderr);
  }
}

test('migrate --uninstall leaves the catalogs as they were before migrate, also the privileges of PUBLIC', async (t) => {
  await appDatabase('alone');
  const url = cluster.primary.url('alone');
  const before = await linesOf('alone');
  await install(url);
  await asAdmin(url, (client) => client.query('grant select on app.klanten to gateway_reader')); // by hand
  t.true((await linesOf('alone')).length > before.length + 100);
  t.deepEqual(await migrate(url, '--yes'), {
    code: 2,
    stdout: '',
    stderr: '--yes goes with --uninstall.\nTry: workspace-data-gateway migrate --help\n',
  });

  const asked = await migrate(url, '--uninstall');
  t.is(asked.code, 1);
  t.regex(
    asked.stdout,
    /^This removes for good:\n- the schemas gateway and records with \d+ objects; with rows: gateway/,
  );
  t.regex(asked.stdout, /- drop index if exists app\.gateway_klanten_gewijzigd\n/);
  t.regex(asked.stdout, /- grant temporary on database alone to public\n/);
  t.is(asked.stderr, 'Nothing was changed. To agree without being asked, add --yes.\n');

  const done = await migrate(url, '--uninstall', '--yes');
  t.is(done.code, 0, done.stderr);
  t.deepEqual(await linesOf('alone'), before);
  t.deepEqual(await migrate(url, '--uninstall', '--yes'), { code: 0, stdout: 'nothing to do\n', stderr: '' });
  await install(url);
  t.is((await migrate(url, '--uninstall', '--yes')).code, 0, 'after a second time as well');
  t.deepEqual(await linesOf('alone'), before);
});

test('a view of the app that reads one of the gateway stops it, and nothing is changed', async (t) => {
  await appDatabase('read');
  const url = cluster.primary.url('read');
  await install(url);
  await asAdmin(url, (client) => client.query('create view app.report as select id from records.klanten'));
  const before = await linesOf('read');
  const { code, stderr } = await migrate(url, '--uninstall', '--yes');
  t.is(code, 1);
  t.regex(stderr, /view app\.report depends on/);
  t.deepEqual(await linesOf('read'), before);
  await asAdmin(url, (client) => client.query('drop view app.report'));
  t.is((await migrate(url, '--uninstall', '--yes')).code, 0);
});

test('roles that another database uses stay as they are there', async (t) => {
  await appDatabase('kept');
  await appDatabase('removed');
  for (const name of ['kept', 'removed']) await install(cluster.primary.url(name));
  await cluster.primary.query('grant connect on database kept to gateway_reader');
  const kept = await linesOf('kept');
  const { code, stdout, stderr } = await migrate(cluster.primary.url('removed'), '--uninstall', '--yes');
  t.is(code, 0, stderr);
  t.regex(stdout, /took the privileges of gateway_reader, which another database uses/);
  t.deepEqual(await linesOf('kept'), kept);
  const ofGateway = (await linesOf('removed')).filter((line) => /gateway|\brecords\b/.test(line));
  t.true(
    ofGateway.every((line) => /^(role|member) /.test(line)),
    ofGateway.join('\n'),
  );
  t.is((await migrate(cluster.primary.url('kept'), '--uninstall', '--yes')).code, 0);
});

test('the owner of the database, who is no superuser, can remove what it made', async (t) => {
  await appDatabase('owned', 'app_admin');
  const url = new URL(cluster.primary.url('owned'));
  [url.username, url.password] = ['app_admin', 'secret'];
  const before = await linesOf('owned');
  await install(url.href);
  const { code, stderr } = await migrate(url.href, '--uninstall', '--yes');
  t.is(code, 0, stderr);
  t.deepEqual(await linesOf('owned'), before);
});
