import { existsSync, mkdirSync, readdirSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { dirname, join } from 'node:path';
import { urlAs } from '../../demo/cluster/passwords.js';
import { apps } from '../../demo/seed/apps.js';
import { seed } from '../../demo/seed/seed.js';
import { projectRoot, readProject } from '../../src/base/paths.js';
import type { Finding } from '../../src/doctor/finding.js';
import type { Settings } from '../../src/settings.js';
import { adopted, apiOf, commandsIn, emptyFolder, newDatabase, titleOf, wrong } from '../support/adopt/adopted.js';
import { commandLine, connections } from '../support/command-line.js';
import { words } from '../support/words.js';
import { gatewayTest, shared } from '../support/workspace.js';

// `adopt` as a process on the reference apps, as an operator runs it on an app of another; then the commands that it recommends.

const test = gatewayTest();

/** The schema of an app with names in mixed case, keys of several columns, and a log; beside it schemas that cannot be adopted. */
const shop = `
  create schema "Shop Floor";
  set search_path = "Shop Floor";
  create table "Companies" ("Id" text primary key, "Name" text);
  create table "AppUser" ("CompanyId" text not null references "Companies", "userNo" bigint generated always as identity, "e-mail" text,
    "role" text, primary key ("CompanyId", "userNo"));
  create table "Orders" ("CompanyId" text not null references "Companies", "orderNo" bigint generated always as identity,
    "createdAt" timestamptz not null default now(), "order" text, "remarkText" varchar(40), "total price" numeric(14,4) not null default 1.1,
    "isDeleted" boolean not null default false, "Secret" bytea, "Default" boolean, primary key ("CompanyId", "orderNo"));
  create table "OrderLine" ("CompanyId" text not null, "orderNo" bigint not null, "lineNo" integer not null, "label" text,
    primary key ("CompanyId", "orderNo", "lineNo"), foreign key ("CompanyId", "orderNo") references "Orders");
  create table "ChangeLog" ("logId" bigint generated always as identity primary key, "CompanyId" text not null,
    "happenedAt" timestamptz not null default now(), "entityType" text not null, "entityId" text not null, "action" text not null,
    "actorType" text not null, "actorId" text, "changes" json not null);
  insert into "Companies" values ('3f2b8a52-7a43-4a57-9d6e-1b1f6a4a0001', 'North'), ('3f2b8a52-7a43-4a57-9d6e-1b1f6a4a0002', 'South');
  insert into "AppUser" ("CompanyId", "e-mail", "role") select "Id", "Name" || '@x.example', 'owner' from "Companies";
  insert into "Orders" ("CompanyId", "order") select "Id", 'x' from "Companies", generate_series(1, 20);
  insert into "OrderLine" select "CompanyId", "orderNo", 1, 'y' from "Orders";
  insert into "ChangeLog" ("CompanyId", "entityType", "entityId", "action", "actorType", "changes")
    select "CompanyId", 'Order', "orderNo"::text, 'update', 'user', '[{"field": "remarkText", "from": null, "to": "a"}]' from "Orders";
  create schema lonely; create table lonely.things (id integer primary key, name text);
  create schema bare;
`;

test.serial(
  'a draft of the first app is created and checked: its guesses alone are named, beside damaged values',
  async (t) => {
    const draft = await adopted(t, connections(t.context.database), '--schema', 'app');
    const { resources, output, folder } = draft;
    t.deepEqual([...resources.keys()], ['installaties', 'klanten', 'logboeken', 'werkbonnen']);
    t.like(resources.get('installaties'), { idType: 'uuid', version: 'version', auditEntity: 'installatie' });
    t.like(resources.get('klanten')?.fields.naam, { codec: 'aes-256-gcm' });
    const ordered = resources.get('werkbonnen')?.order.map(({ column }) => column);
    t.deepEqual(ordered, ['datum', 'id']);
    const parts = {
      handelingen: { view: 'gateway.werkbonnen_sync_handelingen', idType: 'uuid' },
      uren: { view: 'gateway.werkbonnen_sync_uren', idType: 'uuid' },
    };
    t.deepEqual(resources.get('werkbonnen')?.sync, { parts });
    t.like(resources.get('logboeken')?.sync, { parts: {}, appendOnly: { horizonHours: 72 } });
    t.deepEqual(Object.keys(resources.get('werkbonnen')?.fields ?? {}).slice(-2), ['handelingen', 'uren']);
    t.false(readFileSync(join(folder, 'sql/views/werkbonnen.sql'), 'utf8').includes('t.handtekening'));
    t.regex(output, /email, telefoon\): Columns are left out \(personal data, by the name\)/);
    const findings = await wrong(t, draft);
    // A tenth of the forms of gegevens is rarer than the sample is large.
    const titles = ['warning open_points klanten', 'warning shown werkbonnen', 'warning values klanten'];
    t.deepEqual(findings.map(titleOf).sort(), titles);
    t.regex(
      findings.find(({ code }) => code === 'open_points')?.detail ?? '',
      /\/fields\/land\/description: .*; the definition is .*klanten\.json\.$/,
    );
  },
);

test.serial(
  'a draft of the second app leaves its sealed customers out; described as docs/adopt/adapting.md does, check finds only damaged values',
  async (t) => {
    const now = new Date('2026-11-21T12:00:00Z');
    const keys = Object.fromEntries(Object.entries(shared.keys).map(([id, key]) => [id, Buffer.from(key, 'base64')]));
    const settings = await newDatabase(t, 'second', async (client) => {
      await client.query(readFileSync(join(projectRoot, 'sql/apps/second/schema.sql'), 'utf8'));
      await seed(client, apps.second, { rows: '750', keys, now });
    });
    const draft = await adopted(t, settings, '--schema', 'fieldops', '--write', 'assets');
    const { resources, folder } = draft;
    t.deepEqual([...resources.keys()], ['activity', 'assets', 'customers', 'work-orders']);
    const customers = resources.get('customers');
    t.like(customers, { idType: 'bigint', auditEntity: 'Customer' });
    t.deepEqual(Object.keys(customers?.fields ?? {}), ['id', 'createdAt', 'updatedAt']);
    t.like(resources.get('activity')?.fields.diff, { clean: 'audit-diff', diff: { old: 0, new: 1 } });
    t.regex(readFileSync(join(folder, 'sql/views/assets.sql'), 'utf8'), /\n {2}where t\.deleted_at is null;\n/);
    t.like(resources.get('activity')?.sync, { appendOnly: { horizonHours: 72 } });
    t.like(resources.get('assets')?.sync, { parts: {} });
    t.like(resources.get('assets')?.write, {
      ids: 'database',
      onChange: { lock_version: 'increment', updated_at: 'now' },
      audit: { created: 'create', changed: 'update' },
    });
    t.deepEqual(await wrong(t, draft), []);
    const [, decisions = ''] = readProject('docs/adopt/adapting.md').split(/^Customers are sealed/m);
    const [codecs, fields, grants, keyIds] = [...decisions.matchAll(/```\w+\n([^`]+)```/g)].map(([, block]) => block);
    const changes: [file: string, before: string, after: string][] = [
      ['sql/views/customers.sql', 'select\n', 'select t.sealed, t.vault_key,\n'],
      ['config/resources/customers.json', '"fields": {', `${codecs} "fields": { ${fields}`],
      ['sql/views/key_ids.sql', 'create function', `${grants} create function`],
      ['sql/views/key_ids.sql', 'select null::text, 0::bigint, null::text[] where false', keyIds ?? ''],
    ];
    for (const [file, before, after] of changes) {
      const text = readFileSync(join(folder, file), 'utf8');
      t.true(text.includes(before), file);
      writeFileSync(
        join(folder, file),
        text.replace(before, () => after),
      );
    }
    t.is((await draft.run('migrate', '--views', join(folder, 'sql/views'))).stderr, '');
    const findings = await wrong(t, draft);
    t.deepEqual(findings.map(titleOf), ['warning values customers']);
    t.regex(findings[0]?.detail ?? '', /^[/]fields[/]name: \d of \d+ values /);
  },
);

test.serial(
  'names in other letters are quoted and shown in small ones, and a key of several columns is read without those of the workspace and the record',
  async (t) => {
    const settings = await newDatabase(t, 'shop', (client) => client.query(shop));
    const draft = await adopted(t, settings, '--schema', 'Shop Floor', '--write', 'Orders');
    const { folder, resources } = draft;
    const orders = resources.get('orders');
    const members = 'id createdAt order remarkText totalPrice default rowVersion line';
    t.is(Object.keys(orders?.fields ?? {}).join(' '), members);
    t.like(orders?.write, {
      ids: 'database',
      audit: { changed: 'update', diff: { field: 'field', old: 'from', new: 'to' } },
    });
    t.like(orders?.fields.remarkText, { write: { auditName: 'remarkText' } });
    t.like(orders?.sync?.parts, { line: { view: 'gateway.orders_sync_line', idType: 'bigint' } });
    const ordered = resources.get('change-log')?.order.map(({ column }) => column);
    t.deepEqual(ordered, ['happened_at', 'id']);
    t.regex(
      readFileSync(join(folder, 'sql/views/tokens.sql'), 'utf8'),
      /"userNo" as id, t."e-mail" as email\n {2}from .*\n {2}where t."?role"? = 'owner';/,
    );
    t.regex(draft.output, /\(Secret\): Columns are left out \(secrets, by the name\)/);
    t.deepEqual(await wrong(t, draft), []);
  },
);

// The policies of an app know nothing of the gateway, so they show it no row.
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
      /orders\.sql: Orders: The tenant wall divides the rows of these tables in place of the app's/,
    );
    t.deepEqual(await wrong(t, draft), []);
    const view = readFileSync(join(draft.folder, 'sql/views/orders.sql'), 'utf8');
    t.regex(
      view,
      /^create policy gateway_select on "Shop Floor"\."OrderLine" for select to current_user, gateway_owner using \(current_user in /m,
    );
    t.regex(view, /^create policy gateway_update on "Shop Floor"\."Orders" for update /m);
    t.notRegex(view, /gateway_(insert|update) on "Shop Floor"\."OrderLine"/);
    // A superuser sees all rows: another role owns the view, as where such a role runs `migrate`.
    const judged = async (sql: string): Promise<readonly Finding[]> => {
      await draft.query(sql);
      return (await wrong(t, draft)).filter(({ object }) => object === 'gateway.orders');
    };
    const onOrders = 'on "Shop Floor"."Orders"';
    const [hides] =
      await judged(`create role policies_api login; create role policies_reports login; grant usage on schema "Shop Floor" to policies_api;
      grant select on all tables in schema "Shop Floor" to policies_api; alter view records.orders owner to policies_api`);
    t.is(hides?.level, 'refused');
    t.regex(
      hides?.detail ?? '',
      /row-level security of .*"Shop Floor"\."Orders" hides rows from policies_api, the role that reads them/,
    );
    const [, remedy = ''] = /file of the view: (drop policy .*?;.*?;) Let /.exec(hides?.advice ?? '') ?? [];
    const [restricted] = await judged(remedy);
    t.regex(restricted?.detail ?? '', /, by the restrictive policy present on "Shop Floor"\."Orders"[;.]/);
    const binding = `alter policy present ${onOrders}`;
    t.true(restricted?.advice.startsWith(`Let the roles of the app alone meet what restricts: ${binding} using (`));
    const [bound] = await judged(`grant select on "Shop Floor"."Orders" to policies_reports`);
    t.true(bound?.advice.endsWith(`: ${binding} to policies_reports;`), bound?.advice);
    const adminUrl = `${settings.adminUrl}?options=-crole%3Dpolicies_api`;
    const again = words('adopt --tables Orders --out').concat(emptyFolder(t), '--schema', 'Shop Floor');
    const { stdout } = await commandLine(again, { ...settings, adminUrl });
    t.regex(stdout, / present hides rows of .* from this draft: .* \(alter policy present on .* to policies_reports\)/);
    t.regex(stdout, /\n {2}orders: .*; beside rows that own, present of row-level security may hide from ADMIN_URL\n/);
    for (const advice of [restricted?.advice, bound?.advice])
      t.deepEqual(await judged(`${advice?.replace(/^.*?: /, '')}`), [], 'the remedy cures');
    const [lifts] = await judged(`create policy everything ${onOrders} to policies_api using (1 = 1)`);
    t.is(lifts?.level, 'refused');
    t.regex(
      lifts?.detail ?? '',
      /^the policy everything on "Shop Floor"\."Orders" lifts row-level security for policies_api, which can log in/,
    );
    const [reports] = await judged(
      `drop policy everything ${onOrders}; create policy reports ${onOrders} to policies_reports using (true)`,
    );
    t.is(reports?.level, 'failed');
    t.deepEqual(await judged(`alter policy reports ${onOrders} using (current_user = 'policies_reports')`), []);
    // They are not dropped: `migrate` of another test may have granted them what it took from PUBLIC in its database.
    await draft.query('alter role policies_api nologin; alter role policies_reports nologin');
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
    await draft.query(
      `drop policy gateway_select on "Shop Floor"."Companies"; grant select on "Shop Floor"."Companies" to gateway_owner; alter view gateway.workspaces owner to gateway_owner`,
    );
    const found = await wrong(t, draft);
    t.deepEqual([...new Set(found.map(titleOf))].sort(), [
      'failed token_look_up ',
      'failed workspaces ',
      'refused migrated ',
    ]);
    t.regex(
      found[0]?.detail ?? '',
      /^gateway\.workspaces: row-level security of "Shop Floor"\."Companies" hides rows from gateway_owner/,
    );
  },
);

test.serial('adopt overwrites no file, and names those that are there', async (t) => {
  const folder = emptyFolder(t);
  const settings = connections(t.context.database);
  const args = ['adopt', '--schema', 'app', '--out', folder];
  t.is((await commandLine(args, settings)).code, 0);
  const file = join(folder, 'sql/views/klanten.sql');
  writeFileSync(file, '-- mine');
  rmSync(join(folder, 'sql/views/werkbonnen.sql'));
  const { code, stderr } = await commandLine(args, settings);
  t.is(code, 1);
  t.regex(stderr, /^Nothing was written, because adopt overwrites no file\. .*sql\/views\/klanten\.sql/);
  t.is(readFileSync(file, 'utf8'), '-- mine');
  t.false(existsSync(join(folder, 'sql/views/werkbonnen.sql')));
  const spaced = join(folder, "Anna's draft");
  const { stdout } = await commandLine(['adopt', '--schema', 'app', '--out', spaced], settings);
  const quoted = `'${folder}/Anna'\\''s draft`;
  t.true(stdout.includes(`migrate --views ${quoted}/sql/views'\n`), stdout);
  t.true(stdout.includes(`RESOURCES_DIR=${quoted}/config/resources'\n`), stdout);
});

test.serial('a schema that cannot be adopted is refused in a plain sentence, and nothing is written', async (t) => {
  const settings = await newDatabase(t, 'refused', (client) => client.query(shop));
  const folder = emptyFolder(t);
  const stranger = { ...settings, adminUrl: urlAs(settings.adminUrl as string, 'gateway_reader') };
  const own = '--schema Shop Floor';
  const cases: [string, number, RegExp, Partial<Settings>?][] = [
    ['--schema none', 1, /^There is no table in a schema "none"\. Schemas with tables: Shop Floor, lonely\./],
    ['--schema bare', 1, /^There is no table in a schema "bare"\./],
    ['--schema lonely', 1, /divides its rows among workspaces: .*--tenant COLUMN; docs\/adopt\/adapting\.md /],
    [`${own} --tenant nothing`, 1, /^No table of "Shop Floor" has the column "nothing"/],
    [own, 1, /permission denied for schema Shop Floor .*Give the URL of a role that may do this\./, stranger],
    ['', 2, /^Give --schema NAME/],
  ];
  for (const [args, code, message, given = settings] of cases) {
    const words = args.split(/ (?!Floor)/).filter((word) => word !== '');
    const result = await commandLine(['adopt', ...words, '--out', folder], given);
    t.is(result.code, code, args);
    t.regex(result.stderr, message);
  }
  t.deepEqual(readdirSync(folder), []);
});

// The files of docs/adopt/adapting.md for an app without workspaces, as an operator copies them.

const [, section = ''] = readProject('docs/adopt/adapting.md').split(/^## An app of one company$/m);
const [recipe = ''] = section.split(/^## /m);
const [, definition = ''] = /```json\n([^`]+)```/.exec(recipe) ?? [];
const views = recipe.matchAll(/```sql\n-- (\S+): ([^`]+)```/g);
const files = new Map([...views].map(([, name, sql]) => [name as string, `-- ${sql}`]));
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

test.serial('an app without workspaces gets one by its views, as docs/adopt/adapting.md says', async (t) => {
  const settings = await newDatabase(t, 'company', (client) => client.query(ofOneCompany));
  const folder = emptyFolder(t);
  const company = commandsIn(folder, settings);
  const names = ['jobs', 'key_ids', 'tokens'].map((name) => `sql/views/${name}.sql`);
  t.deepEqual([...files.keys()].sort(), ['config/resources/jobs.json', ...names]);
  for (const [name, text] of files) {
    mkdirSync(dirname(join(folder, name)), { recursive: true });
    writeFileSync(join(folder, name), text);
  }
  const { code, stderr } = await company.run('migrate', '--views', join(folder, 'sql/views'));
  t.is(code, 0, stderr);
  t.deepEqual(await wrong(t, company), []);

  const ask = await (await apiOf(t, company))('read:jobs', 'Our company', 'boss@shop.example');
  const { data } = (await ask<{ data: { title: string }[] }>('/jobs?state=done&perPage=2')).body;
  const titles = data.map(({ title }) => title);
  t.deepEqual(titles, ['job 3', 'job 6']);
});
