import { existsSync } from 'node:fs';
import { join } from 'node:path';
import { adopted, newDatabase, wrong } from '../support/adopted.js';
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
