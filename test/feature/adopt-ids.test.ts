import { existsSync } from 'node:fs';
import { join } from 'node:path';
import { adopted, authorizationOf, emptyFolder, newDatabase, served, wrong } from '../support/adopted.js';
import { commandLine } from '../support/command-line.js';
import { gatewayTest } from '../support/workspace.js';

// An id must be that of one row, and a list must have its order from an index.

const test = gatewayTest();

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
