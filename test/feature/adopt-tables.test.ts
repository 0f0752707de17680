import { existsSync, readdirSync, readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { loadResources } from '../../src/definition/load.js';
import type { Settings } from '../../src/settings.js';
import { adopted, authorizationOf, commandsIn, emptyFolder, newDatabase, served, wrong } from '../support/adopted.js';
import { commandLine } from '../support/command-line.js';
import { gatewayTest } from '../support/workspace.js';

// An app with more tables than a gateway has resources.

const test = gatewayTest();

function draftIn(folder: string, settings: Partial<Settings>) {
  const commands = commandsIn(folder, settings);
  return { ...commands, resources: new Map(loadResources(commands.resourcesDir).map((each) => [each.name, each])) };
}

const app = `
  create schema shop; set search_path = shop;
  create table companies (id bigint generated always as identity primary key, name text not null);
  create table staff (id bigint generated always as identity primary key, company_id bigint not null references companies, email text not null, is_owner boolean not null);
  create table jobs (id bigint generated always as identity primary key, company_id bigint not null references companies, title text not null,
    created_at timestamptz not null default now());
  create table job_lines (id bigint generated always as identity primary key, company_id bigint not null references companies,
    job_id bigint not null references jobs, label text);
  create table api_keys (id bigint generated always as identity primary key, company_id bigint not null references companies, value text);
  do $$ begin for i in 1..100 loop
    execute format('create table things_%s (id bigint generated always as identity primary key, company_id bigint not null references companies, job_id bigint references jobs, created_at timestamptz not null default now())', i);
  end loop; end $$;
  insert into companies (name) values ('North'), ('South');
  insert into jobs (company_id, title) select id, name from companies;
  insert into job_lines (company_id, job_id, label) select company_id, id, 'part' from jobs;
  insert into things_7 (company_id, job_id) select company_id, id from jobs;`;

test.serial('an app with more than 100 tables is adopted by the tables that --tables names', async (t) => {
  const settings = await newDatabase(t, 'tables', (client) => client.query(app));
  const folder = emptyFolder(t);
  const refusals: [string[], number, RegExp][] = [
    [[], 1, /^The schema "shop" has 101 tables of workspaces; a gateway has at most 100 resources\. Name .*--tables /],
    [
      ['--tables', 'jobs,companies'],
      1,
      /^--tables names what cannot be a resource: companies \(.*list of workspaces\)\./,
    ],
    [['--tables', 'api_keys,job'], 1, /api_keys \(its name speaks of secrets\), job \("shop" has no such table\)\./],
    [['--tables', 'things_7', '--write', 'jobs'], 1, /^--write names no table that becomes a resource: jobs\./],
    [['--tables', ','], 2, /^Give --tables the names of tables/],
  ];
  for (const [args, code, message] of refusals) {
    const result = await commandLine(['adopt', '--schema', 'shop', ...args, '--out', folder], settings);
    t.is(result.code, code, args.join(' '));
    t.regex(result.stderr, message);
  }
  t.deepEqual(readdirSync(folder), []);

  const draft = await adopted(t, settings, '--schema', 'shop', '--tables', 'jobs,things_7', '--write', 'things_7');
  t.deepEqual([...draft.resources.keys()], ['jobs', 'things-7']);
  t.is(draft.resources.get('things-7')?.filters.jobId?.kind, 'equals');
  t.like(draft.resources.get('jobs')?.fields, { lines: { column: 'lines' } });
  t.deepEqual(await wrong(t, draft), []);
});

test.serial('--tables adds to the drafts in a folder, and leaves its files as they are', async (t) => {
  const settings = await newDatabase(t, 'adds', (client) => client.query(app));
  const folder = emptyFolder(t);
  const add = (tables: string) =>
    commandLine(['adopt', '--schema', 'shop', '--tables', tables, '--out', folder], settings);
  t.is((await add('jobs')).code, 0);
  const jobs = join(folder, 'config/resources/jobs.json');
  writeFileSync(jobs, readFileSync(jobs, 'utf8').replace('"The jobs of the workspace."', '"Mine."'));
  const added = await add('things_7');
  t.is(added.code, 0, added.stderr);
  t.regex(added.stdout, /wrote sql\/views\/things_7\.sql/);
  t.notRegex(added.stdout, /wrote sql\/views\/(jobs|tokens)\.sql/);
  const { resources, run } = draftIn(folder, settings);
  t.is(resources.get('jobs')?.description, 'Mine.');
  t.is(resources.get('things-7')?.filters.jobId?.kind, 'equals', 'it refers to a resource that was there');
  t.is((await run('migrate', '--views', join(folder, 'sql/views'))).code, 0);
  const again = await add('things_7');
  t.is(again.code, 1);
  t.regex(again.stderr, /^Nothing was written, because adopt overwrites no file\./);
});

test.serial('a part that --tables names is a resource of its own', async (t) => {
  const settings = await newDatabase(t, 'part', (client) => client.query(app));
  const { resources } = await adopted(t, settings, '--schema', 'shop', '--tables', 'jobs,job_lines');
  t.deepEqual([...resources.keys()], ['job-lines', 'jobs']);
  t.false('lines' in (resources.get('jobs')?.fields ?? {}));
  t.is(resources.get('job-lines')?.filters.jobId?.kind, 'equals');
});

test.serial('tables and indexes whose names are the same when cut are told apart', async (t) => {
  const long = 'subscription_fixed_charge_units_override';
  const settings = await newDatabase(t, 'names', (client) =>
    client.query(`create schema shop; set search_path = shop;
      create table companies (id bigint generated always as identity primary key, name text not null);
      create table staff (id bigint generated always as identity primary key, company_id bigint not null references companies, email text not null);
      ${[`${long}_plans`, `${long}_prices`, 'jobs', '"Jobs"', 'job', 'job_page']
        .map(
          (
            name,
          ) => `create table ${name} (id bigint generated always as identity primary key, company_id bigint not null references companies,
            replaced_by_id bigint references ${name}, replaced_by_other_id bigint references ${name}, created_at timestamptz not null default now());
            insert into ${name} (company_id) select 1 where false;`,
        )
        .join('\n')}
      insert into companies (name) values ('North'), ('South')`),
  );
  const draft = await adopted(t, settings, '--schema', 'shop', '--write', 'jobs,Jobs');
  const cut = 'subscription-fixed-charge-units-over';
  t.deepEqual([...draft.resources.keys()].sort(), ['job', 'job-page', 'jobs', 'jobs-2', cut, `${cut}-2`].sort());
  t.is(new Set([...draft.resources.values()].map(({ view }) => view)).size, 6);
  for (const name of ['jobs', 'jobs-2'])
    t.like(draft.resources.get(name)?.fields.replacedById, {
      write: { references: draft.resources.get(name)?.view.replace('gateway.', 'records.') },
    });
  t.deepEqual(await wrong(t, draft), []);
});

// Apps whose users belong to several workspaces: another table tells which.

/** Tables of workspaces, users and jobs; `more` says how users belong to workspaces. */
const appWith = (more: string): string => `
  create schema shop; set search_path = shop;
  create table "User" (id text primary key, email text not null);
  create table organizations (id text primary key, name text not null, "ownerId" text references "User");
  create table jobs (id text primary key, organization_id text not null references organizations, author_id text references "User",
    title text not null, created_at timestamptz not null default now());
  create table user_settings (organization_id text not null references organizations, user_id text not null references "User", role text,
    primary key (organization_id, user_id));
  insert into "User" values ('anna', 'anna@x.example'), ('bram', 'bram@x.example');
  insert into organizations values ('north', 'North', 'anna'), ('south', 'South', 'bram');
  insert into jobs select id || '-1', id, "ownerId", name from organizations;
  ${more}`;
const memberships = `create type "Role" as enum ('MEMBER', 'OWNER');
  create table "OrganizationMembership" (id text primary key, "organizationId" text not null references organizations, "invitedById" text references "User",
    "userId" text not null references "User", role "Role" not null, unique ("organizationId", "userId"));
  insert into "OrganizationMembership" values ('1', 'north', 'bram', 'anna', 'OWNER'), ('2', 'south', null, 'anna', 'MEMBER'), ('3', 'south', null, 'bram', 'OWNER');`;
const members = `create table users_organizations (organization_id text references organizations, user_id text references "User", primary key (organization_id, user_id));
  insert into users_organizations values ('north', 'anna'), ('north', 'bram');`;
const plain = `alter table organizations drop column "ownerId"; ${members}`;

const ways: readonly [way: string, more: string, owners: string[], others: string[]][] = [
  ['a table of memberships with a role', memberships, ['north anna', 'south bram'], ['south anna', 'north bram']],
  ['a table of memberships without a role', plain, ['north anna', 'north bram'], ['south bram']],
  ['the owner in the list of workspaces', members, ['north anna', 'south bram'], ['north bram']],
];

for (const [way, more, owners, others] of ways) {
  test.serial(`users of several workspaces: ${way} tells the users who may have tokens made`, async (t) => {
    const settings = await newDatabase(t, 'users', (client) => client.query(appWith(more)));
    const draft = await adopted(t, settings, '--schema', 'shop', '--tables', 'jobs');
    t.deepEqual(await wrong(t, draft), []);
    const create = (pair: string) => {
      const [workspace = '', owner = ''] = pair.split(' ');
      return draft.run(
        'tokens',
        'create',
        '--workspace',
        workspace,
        '--owner',
        owner,
        '--name',
        'x',
        '--scopes',
        'read:jobs',
      );
    };
    for (const pair of owners) {
      const { code, stderr } = await create(pair);
      t.is(code, 0, `${pair}: ${stderr}`);
    }
    for (const pair of others) t.not((await create(pair)).code, 0, pair);
    const isOpen = readFileSync(join(draft.folder, 'sql/views/tokens.sql'), 'utf8').includes(
      'add a condition for the owners',
    );
    t.is(isOpen, more === plain);
  });
}

// An id must be that of one row, and a list must have its order from an index.

const companies = `
  create schema shop; set search_path = shop;
  create table companies (id bigint primary key, name text not null);
  create table staff (id bigint primary key, company_id bigint not null references companies, email text not null, is_owner boolean not null);
  insert into companies values (1, 'North'), (2, 'South');
  insert into staff select id, id, name || '@shop.example', true from companies;`;

const indexed = `${companies}
  create table jobs (id bigint primary key, company_id bigint not null references companies, status text, created_at timestamptz not null default now());
  create index jobs_brin on jobs using brin (company_id, created_at, id);
  create index jobs_included on jobs (company_id, created_at) include (id);
  create index jobs_mixed on jobs (company_id, created_at desc, id);
  create index jobs_status on jobs (company_id, status) include (created_at, id);
  create table visits (id bigint primary key, company_id bigint not null references companies, planned_on date not null, status text,
    created_at timestamptz not null default now());
  create index visits_list on visits (company_id, planned_on desc, id desc) include (status);
  create index visits_status on visits (company_id, status, planned_on desc, id desc);
  insert into jobs select n, 1 + n % 2, 'open' from generate_series(1, 100) n;
  insert into visits select n, 1 + n % 2, date '2026-01-01' + n % 7, 'open' from generate_series(1, 100) n;
  analyze;`;

test.serial('an index that holds the columns of a list without giving their order serves none', async (t) => {
  const settings = await newDatabase(t, 'indexes', (client) => client.query(indexed));
  const draft = await adopted(t, settings, '--schema', 'shop');
  const orderOf = (name: string) => draft.resources.get(name)?.order.map(({ column }) => column);
  t.deepEqual(orderOf('jobs'), ['created_at', 'id']);
  t.deepEqual(orderOf('visits'), ['planned_on', 'id']);
  const isProposed = (name: string): boolean => existsSync(join(draft.folder, `sql/views/indexes/${name}.sql`));
  const names = ['jobs_list', 'jobs_status', 'visits_list', 'visits_status'];
  t.deepEqual(names.filter(isProposed), ['jobs_list', 'jobs_status']);
  t.deepEqual(await wrong(t, draft), []);
});

const repeated = `${companies}
  create table rates (id bigint not null, company_id bigint not null references companies, amount numeric, valid_from date not null,
    primary key (id, valid_from));
  create unique index on rates (id) where amount is null;
  create table prices (id bigint not null, company_id bigint not null references companies, amount numeric, valid_from date not null,
    revision_no bigint generated always as identity unique, primary key (id, valid_from));
  create table things (id bigint primary key, company_id bigint not null references companies, label text);
  create table old_things () inherits (things);
  create table events (id bigint generated always as identity, company_id bigint not null references companies, label text,
    created_at timestamptz not null default now(), primary key (id, created_at)) partition by range (created_at);
  create table events_2026 partition of events for values from ('2026-01-01') to ('2027-01-01');
  insert into rates select n % 10, 1 + n % 2, n, date '2026-01-01' + n from generate_series(1, 100) n;
  insert into prices (id, company_id, amount, valid_from) select id, company_id, amount, valid_from from rates;
  insert into events (company_id, label, created_at) select 1 + n % 2, 'event', '2026-02-01' from generate_series(1, 100) n;
  analyze;`;

interface Answer {
  readonly data: readonly { readonly id: string }[];
  readonly pagination: { readonly next: string | null };
}

test.serial('a column that repeats, as in a table with a history, is no id', async (t) => {
  const settings = await newDatabase(t, 'ids', (client) => client.query(repeated));
  const args = ['adopt', '--schema', 'shop', '--write', 'events', '--out', emptyFolder(t)];
  t.regex(
    (await commandLine(args, settings)).stderr,
    /^shop\.events cannot be written: it has no column of its version,/,
  );
  const draft = await adopted(t, settings, '--schema', 'shop');
  t.deepEqual([...draft.resources.keys()], ['events', 'prices']);
  const reason = 'no unique index proves that a column which clients may see alone identifies a row of a workspace';
  for (const table of ['rates', 'things', 'old_things'])
    t.regex(draft.output, new RegExp(`  shop\\.${table}: ${reason}`));
  t.regex(
    draft.output,
    /views\/events\.sql: id is unique beside created_at alone, as PostgreSQL has it in a table with /,
  );
  t.deepEqual(await wrong(t, draft), []);

  const api = await served(t, settings, draft.resourcesDir);
  const token = { workspace: 'North', owner: 'North@shop.example', scopes: 'read:prices' };
  const authorization = await authorizationOf(t, draft, token);
  const found: string[] = [];
  for (let url: string | null = `${api}/api/v1/prices?perPage=3`; url !== null; ) {
    const { data, pagination } = (await (await fetch(url, { headers: { authorization } })).json()) as Answer;
    found.push(...data.map(({ id }) => id));
    url = pagination.next;
  }
  t.is(found.length, 50);
  t.is(new Set(found).size, 50);
});

const unvalidated = `${companies}
  create table jobs (id bigint primary key, company_id bigint not null references companies, created_at timestamptz);
  insert into jobs select n, 1 + n % 2, case when n % 3 > 0 then timestamptz '2026-01-01' end from generate_series(1, 30) n;
  do $$ begin
    -- Before PostgreSQL 18 each NOT NULL holds for all rows, and the column is one that may be null.
    if current_setting('server_version_num')::int >= 180000 then
      execute 'alter table jobs add constraint jobs_created not null created_at not valid';
    end if;
  end $$;`;

test.serial('a column that holds NULLs from before its constraint orders no list, and may be null', async (t) => {
  const settings = await newDatabase(t, 'nulls', (client) => client.query(unvalidated));
  const draft = await adopted(t, settings, '--schema', 'shop');
  const jobs = draft.resources.get('jobs');
  t.deepEqual(
    jobs?.order.map(({ column }) => column),
    ['id'],
  );
  t.like(jobs?.fields.createdAt, { nullable: true });
  t.deepEqual(await wrong(t, draft), []);
});

const printed = `${companies}
  create extension citext;
  create table codes (code citext primary key, company_id bigint not null references companies, created_at timestamptz not null default now());
  create table numbers (id numeric(19,0) primary key, company_id bigint not null references companies, created_at timestamptz not null default now());
  create table kinds (id smallint primary key, company_id bigint not null references companies, created_at timestamptz not null default now());
  create table kind_lines (id numeric(19,0) primary key, company_id bigint not null references companies, kind_id smallint not null references kinds, label text);
  insert into codes select 'c' || n, 1 + n % 2 from generate_series(1, 30) n;
  insert into numbers select n, 1 + n % 2 from generate_series(1, 30) n;
  insert into kinds select n, 1 + n % 2 from generate_series(1, 30) n;
  insert into kind_lines select id, company_id, id, 'a' from kinds;
  analyze;`;

test.serial('an id that a view shows in another form has indexes of that form', async (t) => {
  const settings = await newDatabase(t, 'printed', (client) => client.query(printed));
  const draft = await adopted(t, settings, '--schema', 'shop');
  t.deepEqual([...draft.resources.keys()], ['codes', 'kinds', 'numbers']);
  t.deepEqual(await wrong(t, draft), []);
});
