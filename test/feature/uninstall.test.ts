import { join } from 'node:path';
import suite, { type ExecutionContext } from 'ava';
import type pg from 'pg';
import { type Cluster, startCluster } from '../../demo/cluster/cluster.js';
import { readProject } from '../../src/base/paths.js';
import { runAsAdmin } from '../../src/postgres/admin.js';
import { commandsIn, emptyFolder, shopOf } from '../support/adopt/adopted.js';
import { commandLine } from '../support/command-line.js';
import { makeMac, wallKey } from '../support/walls.js';

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
  union all select concat_ws(' ', 'policy', polname, polrelid::regclass, polcmd, polpermissive, polroles::regrole[], pg_get_expr(polqual, polrelid), pg_get_expr(polwithcheck, polrelid)) from pg_policy
  union all select concat_ws(' ', 'owner', oid::regclass, relowner::regrole, relrowsecurity, relforcerowsecurity) from pg_class where relnamespace <> 'pg_toast'::regnamespace
  union all select concat_ws(' ', 'default', defaclrole::regrole, defaclobjtype, defaclacl) from pg_default_acl
  union all select concat_ws(' ', 'trigger', tgname, tgrelid::regclass) from pg_trigger
  order by 1`;

const linesOf = async (database: string): Promise<string[]> =>
  (await runAsAdmin(cluster.primary.url(database), (client) => client.query<{ line: string }>(catalogs))).rows.map(
    ({ line }) => line,
  );

async function appDatabase(name: string, owner = 'postgres'): Promise<void> {
  await cluster.primary.query(`create database ${name} owner ${owner}`);
  await runAsAdmin(cluster.primary.url(name), async (client) => {
    await client.query(`set role ${owner}; ${readProject('sql/apps/first/schema.sql')}`);
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
  await runAsAdmin(url, (client) => client.query('grant select on app.klanten to gateway_reader')); // by hand
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

const shop = (rules: string) => `
  ${shopOf('create table jobs ($own, title text not null, created_at timestamptz not null default now()); create index on jobs (company_id, created_at, id)')};
  insert into jobs (company_id, title) select 1 + i % 2, 'job ' || i from generate_series(1, 40) i; ${rules}`;
const forced = `alter table jobs enable row level security; alter table jobs force row level security;
  create policy own on jobs using (company_id = current_setting('shop.company', true)::bigint);`;
/** Each migrates as the owner of its tables; the app itself logs in as the owner, too, or where rows are secured as another role. */
const kinds = {
  plain: '',
  secured: `alter default privileges grant select, insert, update on tables to secured_api;
    alter default privileges grant usage on schemas to secured_api; alter table jobs enable row level security;
    create policy own on jobs to secured_api using (company_id = current_setting('shop.company', true)::bigint);
    grant usage on schema shop to secured_api; grant select, insert, update on all tables in schema shop to secured_api`,
  forced,
  restrictive: `${forced} create policy dated on jobs as restrictive using (created_at is not null)`,
} as const;

type Kind = keyof typeof kinds;
const wall = `gateway.workspace_id', '${makeMac('1')}`;

function asRole<T>(kind: Kind, role: string, setting: string, work: (client: pg.Client) => Promise<T>): Promise<T> {
  return runAsAdmin(cluster.primary.url(kind), async (client) => {
    await client.query(`begin; set local session authorization ${role}; select set_config('${setting}', true)`);
    return work(client);
  });
}

/** Counts jobs, and those of company 1 among them. */
const jobsSeen = (kind: Kind, role: string, table: string, setting: string) =>
  asRole(kind, role, setting, async (client) => {
    const text = `select count(*)::int as n, count(*) filter (where title ~ '[02468]$')::int as even from ${table}`;
    return (await client.query<{ n: number; even: number }>(text)).rows[0];
  });

async function appKeepsItsWalls(t: ExecutionContext, kind: Kind, role: string): Promise<void> {
  const seen = () => jobsSeen(kind, role, 'shop.jobs', "shop.company', '2");
  const expected = kind === 'plain' ? { n: 40, even: 20 } : { n: 20, even: 0 };
  t.deepEqual(await seen(), expected);
  await cluster.primary.query(`grant gateway_reader, gateway_writer to ${role}`);
  t.deepEqual(await seen(), expected, 'also when it may become a login of the gateway');
  await asRole(kind, role, "shop.company', '2", async (client) => {
    const { rowCount } = await client.query('update shop.jobs set title = title where company_id = 1');
    t.is(rowCount, kind === 'plain' ? 20 : 0);
    if (kind === 'plain') return;
    await client.query('savepoint fine');
    const added = client.query(`insert into shop.jobs (company_id, title) values (1, 'x')`);
    await t.throwsAsync(added, { message: /row-level security/ });
    await client.query('rollback to fine');
    if (kind === 'secured')
      await t.throwsAsync(client.query('select from records.jobs'), {
        message: /permission denied for schema records/,
      });
  });
}

async function gatewayReadsAndWrites(t: ExecutionContext, kind: Kind): Promise<void> {
  await cluster.primary.query(
    `grant gateway_reader to ${kind}_second; grant gateway_reader, pg_monitor to ${kind}_like`,
  );
  for (const role of ['gateway_reader', `${kind}_second`])
    t.deepEqual(await jobsSeen(kind, role, 'gateway.jobs', wall), { n: 20, even: 20 }, role);
  const seen = await jobsSeen(kind, `${kind}_like`, 'gateway.jobs', wall);
  t.is(seen?.n, kind === 'plain' || kind === 'secured' ? 20 : 0, 'a role of more is no login of the gateway');
  await cluster.primary.query(`revoke pg_monitor from ${kind}_like`);
  await asRole(kind, 'gateway_writer', wall, async (client) => {
    t.is((await client.query(`update gateway.jobs_write set title = 'by the API'`)).rowCount, 20);
    t.is((await client.query(`insert into gateway.jobs_write (title) values ('by the API')`)).rowCount, 1);
  });
}

for (const kind of Object.keys(kinds) as Kind[])
  test(`an app with ${kind} tables keeps its walls while the gateway is there, and has the catalogs of before afterwards`, async (t) => {
    await cluster.primary.query(`create role ${kind}_app login createrole password 'secret'; create role ${kind}_api login;
      create role ${kind}_second login; create role ${kind}_like login`);
    await cluster.primary.query(`create database ${kind} owner ${kind}_app`);
    const url = new URL(cluster.primary.url(kind));
    [url.username, url.password] = [`${kind}_app`, 'secret'];
    await runAsAdmin(url.href, (client) => client.query(shop(kinds[kind])));
    const before = await linesOf(kind);
    const folder = emptyFolder(t);
    const { run } = commandsIn(folder, { adminUrl: url.href, wallKey });
    const views = ['--views', join(folder, 'sql/views')];
    const drafted = ['adopt', '--schema', 'shop', '--write', 'jobs', '--out', folder];
    for (const args of [drafted, ['migrate', ...views], ['migrate', ...views, '--indexes']]) {
      const { code, stderr } = await run(...args);
      t.is(code, 0, `${args.join(' ')}: ${stderr}`);
    }
    await gatewayReadsAndWrites(t, kind);
    await appKeepsItsWalls(t, kind, kind === 'secured' ? 'secured_api' : `${kind}_app`);
    const { code, stderr } = await run('migrate', '--uninstall', '--yes');
    t.is(code, 0, stderr);
    const after = await linesOf(kind);
    t.deepEqual(
      [after.filter((line) => !before.includes(line)), before.filter((line) => !after.includes(line))],
      [[], []],
    );
  });

test('another migration, or a view of the app that reads one of the gateway, stops it, and nothing is changed', async (t) => {
  await appDatabase('read');
  const url = cluster.primary.url('read');
  await install(url);
  await runAsAdmin(url, (client) => client.query('create view app.report as select id from records.klanten'));
  const before = await linesOf('read');
  await runAsAdmin(url, async (client) => {
    await client.query('begin; lock table gateway.migration_lock in share update exclusive mode');
    t.regex((await migrate(url, '--uninstall', '--yes')).stderr, /^Another migration is under way/);
    await client.query('rollback');
  });
  const { code, stderr } = await migrate(url, '--uninstall', '--yes');
  t.is(code, 1);
  t.regex(stderr, /view app\.report depends on/);
  t.deepEqual(await linesOf('read'), before);
  await runAsAdmin(url, (client) => client.query('drop view app.report'));
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
