import { existsSync, readdirSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import {
  adopted,
  adoptedShop,
  apiOf,
  emptyFolder,
  newDatabase,
  shopOf,
  walk,
  wrong,
} from '../support/adopt/adopted.js';
import { commandLine } from '../support/command-line.js';
import { words } from '../support/words.js';
import { gatewayTest } from '../support/workspace.js';

// An app with more tables than a gateway has resources.

const test = gatewayTest();

const app = shopOf(`
  create table jobs ($own, title text not null, created_at timestamptz not null default now());
  create table job_lines ($own, job_id bigint not null references jobs, label text);
  create table api_keys ($own, value text);
  do $$ begin for i in 1..100 loop
    execute format('create table things_%s ($own, job_id bigint references jobs, created_at timestamptz not null default now())', i);
  end loop; end $$;
  insert into jobs (company_id, title) select id, name from companies;
  insert into job_lines (company_id, job_id, label) select company_id, id, 'part' from jobs;
  insert into things_7 (company_id, job_id) select company_id, id from jobs`);

test.serial(
  'of more than 100 tables those with rows and references are drafted, or those that --tables names',
  async (t) => {
    const settings = await newDatabase(t, 'tables', (client) => client.query(app));
    const folder = emptyFolder(t);
    const refusals: [string[], number, RegExp][] = [
      [
        ['--tables', 'jobs,companies'],
        1,
        /^--tables names what cannot be a resource: companies \(.*list of workspaces\)\./,
      ],
      [['--tables', 'jobs,job'], 1, /: job \("shop" has no such table\)\./],
      [['--tables', 'things_7', '--write', 'jobs'], 1, /^--write names no table that becomes a resource: jobs\./],
      [['--tables', ','], 2, /^Give --tables the names of tables/],
    ];
    for (const [args, code, message] of refusals) {
      const result = await commandLine(['adopt', '--schema', 'shop', ...args, '--out', folder], settings);
      t.is(result.code, code, args.join(' '));
      t.regex(result.stderr, message);
    }
    t.deepEqual(readdirSync(folder), []);
    const whole = await commandLine(['adopt', '--schema', 'shop', '--write', 'things_50', '--out', folder], settings);
    t.is(whole.code, 0, whole.stderr);
    const drafted = readdirSync(join(folder, 'config/resources'));
    t.is(drafted.length, 100);
    for (const name of ['jobs', 'things-7', 'things-50']) t.true(drafted.includes(`${name}.json`), name);
    t.is(whole.stdout.match(/: a gateway has at most 100 resources, .*: name it in --tables/g)?.length, 1);

    const options = words('--schema shop --tables jobs,things_7 --write things_7 --all-filters');
    const draft = await adopted(t, settings, ...options);
    t.deepEqual([...draft.resources.keys()], ['jobs', 'things-7']);
    t.is(draft.resources.get('things-7')?.filters.jobId?.kind, 'equals');
    t.like(draft.resources.get('jobs')?.fields, { lines: { column: 'lines' } });
    t.deepEqual(await wrong(t, draft), []);
    const parts = await adopted(t, settings, ...words('--schema shop --tables jobs,job_lines --all-filters'));
    t.deepEqual([...parts.resources.keys()], ['job-lines', 'jobs'], 'a part that is named is a resource');
    t.false('lines' in (parts.resources.get('jobs')?.fields ?? {}));
    t.is(parts.resources.get('job-lines')?.filters.jobId?.kind, 'equals');
  },
);

test.serial('tables and indexes whose names are the same when cut are told apart', async (t) => {
  const long = 'subscription_fixed_charge_units_override';
  const tables = [`${long}_plans`, `${long}_prices`, 'jobs', '"Jobs"', 'job', 'job_page'].map(
    (
      name,
    ) => `create table ${name} ($own, replaced_by_id bigint references ${name}, replaced_by_other_id bigint references ${name},
      created_at timestamptz not null default now());`,
  );
  const args = ['--write', 'jobs,Jobs', '--all-filters'];
  const { resources, folder } = await adoptedShop(t, shopOf(tables.join('\n')), { args });
  const indexes = readdirSync(join(folder, 'sql/views/indexes')).filter((name) => name.startsWith(long));
  t.is(indexes.length, 8, indexes.join());
  const cut = 'subscription-fixed-charge-units-over';
  t.deepEqual([...resources.keys()].sort(), ['job', 'job-page', 'jobs', 'jobs-2', cut, `${cut}-2`].sort());
  t.is(new Set([...resources.values()].map(({ view }) => view)).size, 6);
  for (const name of ['jobs', 'jobs-2'])
    t.like(resources.get(name)?.fields.replacedById, {
      references: name,
      write: { references: resources.get(name)?.view },
    });
});

// An id must be that of one row, and a list must have its order from an index.

const indexed = shopOf(`
  create extension citext;
  create table jobs (id bigint primary key, company_id bigint not null references companies, status text, created_at timestamptz not null default now());
  create index jobs_brin on jobs using brin (company_id, created_at, id);
  create index jobs_included on jobs (company_id, created_at) include (id);
  create index jobs_mixed on jobs (company_id, created_at desc, id);
  create index jobs_status on jobs (company_id, status) include (created_at, id);
  create table visits (id bigint primary key, company_id bigint not null references companies, planned_on date not null, status text,
    created_at timestamptz not null default now());
  create index visits_list on visits (company_id, planned_on desc, id desc) include (status);
  create index visits_status on visits (company_id, status, planned_on desc, id desc);
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
  create table gaps (id bigint primary key, company_id bigint not null references companies, created_at timestamptz);
  create table pauses (id bigint primary key, company_id bigint not null references companies, created_at timestamptz);
  create table codes (code citext primary key, company_id bigint not null references companies, created_at timestamptz not null default now());
  create table numbers (id numeric(19,0) primary key, company_id bigint not null references companies, created_at timestamptz not null default now());
  create table kinds (id smallint primary key, company_id bigint not null references companies, created_at timestamptz not null default now());
  create table kind_lines (id numeric(19,0) primary key, company_id bigint not null references companies, kind_id smallint not null references kinds, label text);
  insert into jobs select n, 1 + n % 2, 'open' from generate_series(1, 100) n;
  insert into visits select n, 1 + n % 2, date '2026-01-01' + n % 7, 'open' from generate_series(1, 100) n;
  insert into rates select n % 10, 1 + n % 2, n, date '2026-01-01' + n from generate_series(1, 100) n;
  insert into prices (id, company_id, amount, valid_from) select id, company_id, amount, valid_from from rates;
  insert into events (company_id, label, created_at) select 1 + n % 2, 'event', '2026-02-01' from generate_series(1, 100) n;
  insert into gaps select n, 1 + n % 2, case when n % 3 > 0 then timestamptz '2026-01-01' end from generate_series(1, 30) n;
  insert into pauses select n, 1 + n % 2, timestamptz '2026-01-01' from generate_series(1, 30) n;
  insert into codes select 'c' || n, 1 + n % 2 from generate_series(1, 30) n;
  insert into numbers select n, 1 + n % 2 from generate_series(1, 30) n;
  insert into kinds select n, 1 + n % 2 from generate_series(1, 30) n;
  insert into kind_lines select id, company_id, id, 'a' from kinds;
  do $$ begin
    -- Before PostgreSQL 18 each NOT NULL holds for all rows, and the column is one that may be null.
    if current_setting('server_version_num')::int >= 180000 then
      execute 'alter table gaps add constraint gaps_created not null created_at not valid';
    end if;
  end $$`);

test.serial('ids are columns that an index proves, and lists have the order of one', async (t) => {
  const draft = await adoptedShop(t, indexed, { args: ['--all-filters'] });
  const { resources, output, folder } = draft;
  t.is([...resources.keys()].join(' '), 'codes events gaps jobs kinds numbers pauses prices rates visits');
  const reason = 'no unique index over columns that are NOT NULL, and that clients may see, identifies its rows';
  t.true(output.includes(`  shop.old_things: ${reason}`));
  t.true(output.includes('  shop.things: another table inherits from it, and no key covers the rows of both: '));
  t.regex(output, /views\/events\.sql: id is unique beside created_at alone, as PostgreSQL has it in a table with /);
  const orderOf = (name: string) => String(resources.get(name)?.order.map(({ column }) => column));
  t.deepEqual(['jobs', 'visits', 'gaps'].map(orderOf), ['created_at,id', 'planned_on,id', 'created_at,id']);
  const isProposed = (name: string): boolean => existsSync(join(folder, `sql/views/indexes/${name}.sql`));
  const names = ['jobs_list', 'jobs_status', 'visits_list', 'visits_status'];
  t.deepEqual(names.filter(isProposed), ['jobs_list', 'jobs_status']);

  const alter = 'alter table shop.pauses alter column created_at set not null';
  t.true(output.includes(`pauses.sql: pauses (${alter}): Each row of a sample has the time by which `));
  t.notRegex(output, /gaps \(alter table/);
  const listIn = (folder: string) => readFileSync(join(folder, 'sql/views/indexes/pauses_list.sql'), 'utf8');
  t.regex(listIn(folder), /\(company_id, \(coalesce\(created_at, '-infinity'\)\), id\)/);
  await draft.query(alter);
  const again = emptyFolder(t);
  await commandLine(['adopt', '--schema', 'shop', '--tables', 'pauses', '--out', again], draft.settings);
  t.regex(listIn(again), /\(company_id, created_at, id\)/);

  const args = ['adopt', '--schema', 'shop', '--write', 'events', '--out', emptyFolder(t)];
  const { stderr } = await commandLine(args, draft.settings);
  t.regex(stderr, /^shop\.events cannot be written: it has no column of its version,/);
  const ask = await (await apiOf(t, draft))('read:prices');
  const found = (await walk(ask, '/prices?perPage=3')).map(({ id }) => id);
  t.deepEqual([found.length, new Set(found).size], [50, 50]);
});

test.serial('a table that is left out is named with its remedy', async (t) => {
  const apart = shopOf(`
    create table jobs ($own, title text not null, created_at timestamptz not null default now());
    create table visits (id bigint primary key, job_id bigint references jobs, label text, created_at timestamptz);
    create table addresses (id bigint primary key, street text);
    create table places ($own, address_id bigint not null references addresses, created_at timestamptz not null default now());
    create table countries (code text primary key, label text);
    create table marks (company_id bigint not null references companies, label text);
    create table aliases (company_id bigint not null references companies, email text, primary key (company_id, email));
    create unlogged table caches ($own, label text);
    create materialized view totals as select company_id, count(*) from jobs group by 1`);
  const { output } = await adoptedShop(t, apart);
  for (const [table, remedy] of Object.entries({
    visits: 'no required reference .*: its job_id leads to shop\\.jobs and can be NULL; .* `set not null`',
    addresses:
      'no required reference .*: rows of shop\\.places refer to it by address_id, so show it by a view of your own',
    countries:
      'no required reference .*: show it by a view of your own: with a row for each workspace if all may see its rows',
    marks: 'no unique index over columns that are NOT NULL, .*: give it a primary key',
    aliases:
      'its primary key has email \\(personal data, by the name\\): where clients may see that, name aliases\\.email in --show',
    caches: 'it is unlogged, .*: alter it with `set logged`',
    totals: 'it is a materialized view: show it by a view of your own with a workspace and an id',
  }))
    t.regex(output, new RegExp(`\\n {2}shop\\.${table}: .*${remedy}`));
});

test.serial(
  'schemas with the same tables are named, where one tenant each has them and where the workspaces are found',
  async (t) => {
    const tables = words('customers invoices payments').map(
      (name) => `create table ${name} (id bigint primary key, title text);`,
    );
    const copies = words('north south').map(
      (name) => `create schema ${name}; set search_path = ${name}; ${tables.join(' ')}`,
    );
    const old = `create schema old; create table old.companies (id bigint); create table old.staff (id bigint); create table old.jobs (id bigint)`;
    const fill = `${copies.join(' ')} ${old}; ${shopOf('create table jobs ($own, title text)')}`;
    const settings = await newDatabase(t, 'copies', (client) => client.query(fill));
    const drafted = (schema: string) => commandLine(['adopt', '--schema', schema, '--out', emptyFolder(t)], settings);
    const { code, stderr } = await drafted('north');
    t.is(code, 1);
    t.regex(
      stderr,
      /^Nothing in the schema "north" divides its rows .* The same tables are in south: an app with a schema for each/,
    );
    t.regex(
      (await drafted('shop')).stdout,
      /tokens\.sql: The same tables are in old: .*, for one draft shows one schema\./,
    );
  },
);
