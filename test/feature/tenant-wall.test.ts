import { randomUUID } from 'node:crypto';
import { mkdirSync, readFileSync, writeFileSync } from 'node:fs';
import { dirname, join } from 'node:path';
import pg from 'pg';
import { urlAs } from '../../demo/cluster/passwords.js';
import type { Finding } from '../../src/check/finding.js';
import { loadResources } from '../../src/definition/load.js';
import { viewsOf } from '../../src/definition/walls.js';
import { projectRoot, projectText } from '../../src/paths.js';
import {
  adopted,
  authorizationOf,
  commandsIn,
  emptyFolder,
  newDatabase,
  served,
  shop,
  wrong,
} from '../support/adopted.js';
import { commandLine } from '../support/command-line.js';
import { eventually, gatewayTest, shared } from '../support/workspace.js';

const test = gatewayTest();
/** The views without an order, and all that the reader may use. */
const views = ['klanten', 'installaties', 'werkbonnen', 'logboeken', 'werkbonnen_handelingen', 'werkbonnen_uren'];
const all = loadResources('').flatMap(viewsOf);
const refused = '42501'; // insufficient_privilege

/** A connection by hand as the role the gateway reads with. */
async function reader(server: string, database: string): Promise<pg.Client> {
  const client = new pg.Client(urlAs(server, 'gateway_reader', database));
  await client.connect();
  return client;
}

test.beforeEach(async (t) => {
  Object.assign(t.context, { hand: await reader(shared.replicas[0] as string, t.context.database.name) });
});
test.afterEach.always((t) => handOf(t.context).end());
const handOf = (context: unknown) => (context as { hand: pg.Client }).hand;

/** SQLSTATE the statement fails with; undefined when it works. */
async function failure(client: pg.Client, sql: string): Promise<string | undefined> {
  try {
    await client.query(sql);
    return undefined;
  } catch (error) {
    return (error as { code: string }).code;
  }
}

test('without a workspace the views show nothing', async (t) => {
  const hand = handOf(t.context);
  t.true(all.length > 20);
  for (const view of all) {
    const count = async () => (await hand.query<{ n: string }>(`select count(*) as n from ${view}`)).rows[0]?.n;
    t.is(await count(), '0', view);
    await hand.query("select set_config('gateway.workspace_id', '', false)");
    t.is(await count(), '0', `${view}, with an empty setting`);
    await hand.query("select set_config('gateway.workspace_id', '00000000-0000-0000-0000-000000000000', false)");
    t.is(await count(), '0', `${view}, in a workspace that does not exist`);
    await hand.query('reset gateway.workspace_id');
  }
});

test('no condition sees a row of another workspace, whatever it costs and however the view is read', async (t) => {
  const hand = handOf(t.context);
  const texts = {
    klanten: 'naam',
    installaties: 'naam',
    werkbonnen: 'nummer',
    logboeken: 'entity',
    werkbonnen_uren: 'part_id::text',
  };
  const { rows } = await hand.query<{ version: number }>(
    `select current_setting('server_version_num')::int as version`,
  );
  const version = rows[0]?.version as number;
  for (const scan of ['indexscan', 'indexonlyscan', 'bitmapscan']) await hand.query(`set enable_${scan} = off`);
  for (const workspace of ['', '00000000-0000-0000-0000-000000000000']) {
    await hand.query("select set_config('gateway.workspace_id', $1, false)", [workspace]);
    for (const [view, text] of Object.entries(texts)) {
      for (const condition of [
        `${text}::integer = 1`,
        `${text} like any (array['n%\\'])`,
        `set_config('', ${text}, true) is null`,
        ...(version < 160_000 ? [] : [`json_object(${text}: 1, ${text}: 2 with unique keys) is null`]),
      ]) {
        for (const order of ['', '_asc', '_desc'].slice(0, view === 'werkbonnen_uren' ? 2 : 3)) {
          const sql = `select from gateway.${view}${order} where ${order === '' ? condition : condition.replaceAll('part_id', 'id')}`;
          t.is(await failure(hand, sql), undefined, `${sql}, workspace "${workspace}"`);
        }
      }
    }
  }
});

test('neither role can create a function, which could be cheaper than the wall', async (t) => {
  for (const role of ['gateway_reader', 'gateway_writer']) {
    const hand = new pg.Client(urlAs(shared.primary, role, t.context.database.name));
    await hand.connect();
    try {
      await hand.query('set default_transaction_read_only = off');
      for (const schema of ['pg_temp', 'public', 'app', 'gateway']) {
        const sql = `create function ${schema}.f(text) returns boolean language plpgsql cost 0.0000001 as 'begin return true; end'`;
        t.is(await failure(hand, sql), refused, `${role} in ${schema}`);
      }
      t.is(await failure(hand, 'create temporary table t ()'), refused, role);
    } finally {
      await hand.end();
    }
  }
});

test('with one workspace the views show all of it and nothing of the other, whatever the condition', async (t) => {
  const hand = handOf(t.context);
  const { database } = t.context;
  const [a, b] = database.workspaces.map(({ id }) => id);
  for (const [own, other] of [
    [a, b],
    [b, a],
  ]) {
    await hand.query("select set_config('gateway.workspace_id', $1, false)", [own]);
    for (const view of views) {
      const { rows } = await hand.query<{ own: string; other: string }>(
        `select count(*) filter (where workspace_id = $1) as own, count(*) filter (where workspace_id <> $1) as other
         from gateway.${view} where workspace_id = $1 or workspace_id = $2 or true`,
        [own, other],
      );
      const stored = await database.replica.query<{ n: string }>(
        `select count(*) as n from app.${view.replace('werkbonnen_', 'werkbon_')} where workspace_id = $1`,
        [own],
      );
      t.deepEqual(rows[0], { own: stored.rows[0]?.n as string, other: '0' }, view);
      t.true(Number(rows[0]?.own) > 0);
    }
  }
});

test('a setting for one transaction is gone with it', async (t) => {
  const hand = handOf(t.context);
  await hand.query('begin');
  await hand.query("select set_config('gateway.workspace_id', $1, true)", [t.context.database.workspaces[0]?.id]);
  t.is((await hand.query('select 1 from gateway.klanten limit 1')).rowCount, 1);
  await hand.query('commit');
  t.is((await hand.query('select 1 from gateway.klanten limit 1')).rowCount, 0);
});

test('the reader cannot select any column of any table of the app, nor anything else that is not a view of it', async (t) => {
  const hand = handOf(t.context);
  const { rows } = await t.context.database.replica.query<{ relation: string; column: string }>(
    `select format('%I.%I', n.nspname, c.relname) as relation, quote_ident(a.attname) as column
     from pg_class c join pg_namespace n on n.oid = c.relnamespace join pg_attribute a on a.attrelid = c.oid
     where c.relkind in ('r', 'p', 'v', 'm') and a.attnum > 0 and n.nspname in ('app', 'records', 'gateway')
       and not n.nspname || '.' || c.relname = any ($1)`,
    [[...all, 'gateway.applied_files']],
  );
  t.true(rows.length > 100);
  for (const { relation, column } of rows) {
    t.is(await failure(hand, `select ${column} from ${relation} limit 1`), refused, `${relation}.${column}`);
  }
});

test('the reader may call digest_of, find_token, key_ids, received_timeline and workspace, and no other function: it cannot list workspaces', async (t) => {
  const hand = handOf(t.context);
  const { rows } = await t.context.database.replica.query<{ name: string; callable: boolean }>(
    `select p.oid::regprocedure::text as name,
       has_schema_privilege('gateway_reader', n.oid, 'usage') and has_function_privilege('gateway_reader', p.oid, 'execute') as callable
     from pg_proc p join pg_namespace n on n.oid = p.pronamespace where n.nspname in ('app', 'gateway')`,
  );
  t.deepEqual(
    rows
      .filter(({ callable }) => callable)
      .map(({ name }) => name)
      .sort(),
    [
      'gateway.digest_of(text[])',
      'gateway.find_token(bytea)',
      'gateway.key_ids()',
      'gateway.received_timeline()',
      'gateway.workspace()',
    ],
  );
  t.true(rows.length > 6);
  t.is(await failure(hand, 'select app.installaties_versie()'), refused);
  t.is(await failure(hand, 'select gateway.list_tokens(null)'), refused);
  t.is(await failure(hand, 'select gateway.sample_workspaces()'), refused);
  t.is(await failure(hand, 'select id from records.klanten limit 1'), refused);
  t.is(await failure(hand, 'select id from gateway.workspaces limit 1'), refused);
  t.is(await failure(hand, "select pg_read_file('/etc/passwd')"), refused);
  t.is(await failure(hand, 'select * from pg_authid'), refused);
  t.is(await failure(hand, 'set role gateway_owner'), refused);
  t.is(await failure(hand, 'set role postgres'), refused);
});

test('even on the primary the reader can write nothing', async (t) => {
  const { database } = t.context;
  const hand = await reader(shared.primary, database.name);
  try {
    await hand.query('set default_transaction_read_only = off');
    await hand.query("select set_config('gateway.workspace_id', $1, false)", [database.workspaces[0]?.id]);
    for (const view of views) {
      t.is(await failure(hand, `delete from gateway.${view}`), refused);
      t.is(await failure(hand, `update gateway.${view} set id = id`), refused);
      t.is(await failure(hand, `insert into gateway.${view} (id) values (null)`), refused);
    }
    t.is(await failure(hand, 'create table public.x ()'), refused);
    t.is(await failure(hand, 'create table gateway.x ()'), refused);
  } finally {
    await hand.end();
  }
});

test('the reader is no superuser, member of nothing, and the signature is in no view', async (t) => {
  const { replica } = t.context.database;
  const { rows } = await replica.query(
    `select rolsuper or rolbypassrls or rolcreaterole or rolcreatedb or rolreplication as strong,
       exists (select from pg_auth_members m where m.member = r.oid) as member from pg_roles r where rolname = 'gateway_reader'`,
  );
  t.deepEqual(rows, [{ strong: false, member: false }]);
  const columns = await replica.query(
    `select 1 from pg_attribute a join pg_class c on c.oid = a.attrelid
     where c.relnamespace in ('gateway'::regnamespace, 'records'::regnamespace) and a.attname ~ 'handtekening|email|telefoon'
       and (has_column_privilege('gateway_reader', c.oid, a.attnum, 'select') or has_column_privilege('gateway_writer', c.oid, a.attnum, 'select'))`,
  );
  t.is(columns.rowCount, 0);
});

// An app whose own policies divide its tables: they know nothing of the gateway, so they show it no row.

const ownPolicies = `
  set search_path = "Shop Floor";
  alter table "Orders" enable row level security; alter table "Orders" force row level security;
  alter table "OrderLine" enable row level security;
  create policy own on "Orders" using ("CompanyId" = current_setting('shop.company', true));
  create policy present on "Orders" as restrictive using (not "isDeleted");
`;

test.serial(
  'the views of tables with row-level security of the app show the rows of the workspace and write them, by a policy of their own; without it check refuses them',
  async (t) => {
    const settings = await newDatabase(t, 'policies', (client) => client.query(shop + ownPolicies));
    const draft = await adopted(t, settings, '--schema', 'Shop Floor', '--write', 'Orders');
    t.regex(
      draft.output,
      /row_security\.sql: the restrictive policy present of "Shop Floor"\."Orders" holds for the views' owner, too/,
    );
    t.deepEqual(await wrong(t, draft), []);
    const policies = join(draft.folder, 'sql/views/row_security.sql');
    t.regex(readFileSync(policies, 'utf8'), /^create policy gateway on "Shop Floor"\."OrderLine" to current_user /m);
    const client = new pg.Client(settings.adminUrl as string);
    await client.connect();
    // A superuser sees all rows: another role owns the views, as where such a role runs `migrate`.
    await client
      .query(`grant usage on schema "Shop Floor" to gateway_owner; grant select on all tables in schema "Shop Floor" to gateway_owner;
        alter view records.orders owner to gateway_owner`)
      .finally(() => client.end());
    let detail = '';
    await eventually(t, 'check refuses the view', async () => {
      const { findings } = JSON.parse((await draft.run('check', '--json')).stdout) as { findings: Finding[] };
      detail = findings.find(({ level, object }) => level === 'refused' && object === 'gateway.orders')?.detail ?? '';
      return detail !== '';
    });
    t.regex(detail, /row-level security of .*"Shop Floor"\."Orders" hides rows: create a policy .* `to gateway_owner /);
  },
);

test.serial(
  'check says that row-level security hides the workspaces or the users from the owner of their views',
  async (t) => {
    const forced = `
      alter table "Companies" enable row level security; alter table "Companies" force row level security;
      create policy own on "Companies" using ("Id" = current_setting('shop.company', true));`;
    const settings = await newDatabase(t, 'forced', (client) => client.query(shop + forced));
    const draft = await adopted(t, settings, '--schema', 'Shop Floor');
    t.deepEqual(await wrong(t, draft), [], 'a superuser sees all rows');
    const client = new pg.Client(settings.adminUrl as string);
    await client.connect();
    await client
      .query(
        `grant select on "Shop Floor"."Companies" to gateway_owner; alter view gateway.workspaces owner to gateway_owner`,
      )
      .finally(() => client.end());
    let found: Finding[] = [];
    await eventually(t, 'check finds it', async () => {
      found = await wrong(t, draft);
      return found.length > 0;
    });
    t.deepEqual(
      found.map(({ level, code }) => [level, code]),
      [
        ['failed', 'workspaces'],
        ['failed', 'migrated'],
      ],
    );
    t.regex(found[0]?.detail ?? '', /^Row-level security hides rows of "Shop Floor"\."Companies" from gateway_owner, /);
  },
);

const read = (path: string): string => readFileSync(join(projectRoot, path), 'utf8');

test('an admin without CREATEROLE migrates, once a DBA has run deploy/roles.sql', async (t) => {
  const admin = `admin_${randomUUID().slice(0, 8)}`;
  const dba = new pg.Client(shared.primary);
  await dba.connect();
  try {
    await dba.query(`create role ${admin} login password 'secret'`);
    await dba.query(`create database ${admin} owner ${admin}`);
    const adminUrl = Object.assign(new URL(shared.primary), {
      username: admin,
      password: 'secret',
      pathname: admin,
    }).href;
    const app = new pg.Client(adminUrl);
    await app.connect();
    await app.query(read('sql/apps/first/schema.sql')).finally(() => app.end());
    const refused = await commandLine(['migrate'], { adminUrl });
    t.is(refused.code, 1);
    t.regex(refused.stderr, /core\/001_roles\.sql.*(permission denied|must have)/);
    await dba.query(`set gateway.admin = '${admin}'; ${read('deploy/roles.sql')}`);
    const { stderr, code } = await commandLine(['migrate'], { adminUrl });
    t.deepEqual({ stderr, code }, { stderr: '', code: 0 });
    const pending = await commandLine(['migrate', '--pending'], { adminUrl });
    t.is(pending.code, 0, pending.stdout);
  } finally {
    await dba.query(`drop database ${admin} with (force)`);
    await dba.query(`drop role ${admin}`);
    await dba.end();
  }
});

test('deploy/roles.sql gives the roles the settings of sql/core/001_roles.sql', (t) => {
  const settings = (path: string): string[] => read(path).match(/\('gateway_\w+', '\w+', '[^']*'\)/g) ?? [];
  t.is(settings('deploy/roles.sql').length, 18);
  t.deepEqual(settings('deploy/roles.sql'), settings('sql/core/001_roles.sql'));
});

// The files of docs/adapting.md for an app without workspaces, as an operator copies them, and the app of docs/tutorial.md.

const [, section = ''] = projectText('docs/adapting.md').split(/^## An app of one company$/m);
const [recipe = ''] = section.split(/^## /m);
const [, definition = ''] = /```json\n([^`]+)```/.exec(recipe) ?? [];
const recipes = recipe.matchAll(/```sql\n-- (\S+): ([^`]+)```/g);
const files = new Map([...recipes].map(([, name, sql]) => [name as string, `-- ${sql}`]));
files.set('config/resources/jobs.json', definition);

const ofOneCompany = `
  create schema shop;
  create table shop.jobs (id bigint generated always as identity primary key, title text not null, state text not null,
    created_at timestamptz not null default now());
  create index on shop.jobs (created_at, id);
  create index on shop.jobs (state, created_at, id);
  create table shop.staff (id text primary key, email text not null, is_admin boolean not null);
  insert into shop.staff values ('1', 'boss@shop.example', true);
  insert into shop.jobs (title, state) select 'job ' || i, case i % 3 when 0 then 'done' else 'open' end from generate_series(1, 3000) i;
  analyze shop.jobs`;

test.serial('an app without workspaces gets one by its views, as docs/adapting.md says', async (t) => {
  const settings = await newDatabase(t, 'company', (client) => client.query(ofOneCompany));
  const folder = emptyFolder(t);
  const { run, resourcesDir } = commandsIn(folder, settings);
  const names = ['jobs', 'key_ids', 'tokens'].map((name) => `sql/views/${name}.sql`);
  t.deepEqual([...files.keys()].sort(), ['config/resources/jobs.json', ...names]);
  for (const [name, text] of files) {
    mkdirSync(dirname(join(folder, name)), { recursive: true });
    writeFileSync(join(folder, name), text);
  }
  const { code, stderr } = await run('migrate', '--views', join(folder, 'sql/views'));
  t.is(code, 0, stderr);
  t.deepEqual(await wrong(t, { run }), []);

  const url = await served(t, settings, resourcesDir);
  const token = { workspace: 'Our company', owner: 'boss@shop.example', scopes: 'read:jobs' };
  const headers = { authorization: await authorizationOf(t, { run }, token) };
  const answer = await fetch(`${url}/api/v1/jobs?state=done&perPage=2`, { headers });
  const { data } = (await answer.json()) as { data: { title: string }[] };
  t.deepEqual(
    data.map(({ title }) => title),
    ['job 3', 'job 6'],
  );
});

test.serial(
  'the table of docs/tutorial.md becomes an API without a decision, and its tenants see their own orders',
  async (t) => {
    const [, sql = ''] = /```sql\n(create schema shop;[^`]+)```/.exec(projectText('docs/tutorial.md')) ?? [];
    const settings = await newDatabase(t, 'tutorial', (client) => client.query(sql));
    const app = await adopted(t, settings, '--schema', 'shop');
    t.deepEqual(await wrong(t, app), []);

    const url = await served(t, settings, app.resourcesDir);
    const token = { workspace: 'Bakery', owner: 'ann@bakery.example', scopes: 'read:orders' };
    const headers = { authorization: await authorizationOf(t, app, token) };
    const answer = await fetch(`${url}/api/v1/orders?state=paid&perPage=1&total=true`, { headers });
    const { data, pagination } = (await answer.json()) as { data: unknown; pagination: { total: number } };
    t.deepEqual(
      [data, pagination.total],
      [[{ id: '6', number: 'A6', state: 'paid', total: 1.5, createdAt: '2026-01-01T06:00:00.000Z' }], 833],
    );
  },
);
