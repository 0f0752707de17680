import { readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { adopted, adoptedShop, apiOf, newDatabase, shopOf, titleOf, wrong } from '../support/adopt/adopted.js';
import { gatewayTest } from '../support/workspace.js';

// The workspace of a row: by a column of another width, through the record that a row is about, by names alone, and never another's.

const test = gatewayTest().serial;

const authored = shopOf(`
  create table own_user ($own, email text not null);
  create table work_orders ($own, title text not null, created_at timestamptz not null default now());
  create table history (id bigint generated always as identity primary key, user_id bigint not null references own_user,
    work_order_id bigint not null references work_orders, title text not null, created_at timestamptz not null default now());
  create table tickets (id bigint generated always as identity primary key, company_id smallint not null, created_by bigint not null references own_user, title text);
  insert into own_user (company_id, email) values (1, 'n@shop.example'), (2, 's@shop.example');
  insert into work_orders (company_id, title) values (1, 'North'), (2, 'South');
  insert into history (user_id, work_order_id, title) select u.id, w.id, w.title from own_user u, work_orders w, generate_series(1, 3);
  insert into tickets (company_id, created_by, title) values (1, 2, 'North'), (2, 1, 'South')`);

test('a row that names a record and a person belongs to the company of the record', async (t) => {
  const draft = await adoptedShop(t, authored, { findings: ['warning sorted_lists history'] });
  const api = await apiOf(t, draft);
  for (const workspace of ['North', 'South'])
    for (const name of ['history', 'tickets']) {
      const ask = await api('read:history,read:tickets', workspace);
      const { body } = await ask<{ data: { title: string }[] }>(`/${name}`);
      t.deepEqual(new Set(body.data.map(({ title }) => title)), new Set([workspace]), name);
    }
  t.regex(draft.output, /history\.sql: history \(user_id\): A row refers to a record of another workspace: /);

  // The draft of an author's company, as a hand could write it.
  const path = join(draft.folder, 'sql/views/history.sql');
  const sql = readFileSync(path, 'utf8');
  writeFileSync(
    path,
    sql.replace('join shop.work_orders w1 on w1.id = t.work_order_id', 'join shop.own_user w1 on w1.id = t.user_id'),
  );
  t.is((await draft.run('migrate', '--views', join(draft.folder, 'sql/views'))).code, 0);
  t.true((await wrong(t, draft)).map(titleOf).includes('refused references history'));
  t.is((await draft.run('check')).code, 1);
});

const keyless = `
  create schema shop; set search_path = shop;
  create table company (id bigint primary key, name text not null);
  create table staff (id bigint primary key, company_id bigint not null, email text not null, is_owner boolean not null);
  create table customer (id text primary key, company_id bigint not null, title text not null);
  create table job (id bigint primary key, company_id integer not null, customer_id text, category_id bigint, title text not null);
  create table category (id bigint primary key, company_id bigint not null, title text not null);
  create table job_note (id bigint primary key, job_id bigint not null, title text not null);
  insert into company values (1, 'North'), (2, 'South');
  insert into staff select id, id, name || '@shop.example', true from company;
  insert into customer select 'c' || id, id, name from company;
  insert into job select id, id, 'c' || id, 100 + id, name from company;
  insert into category select id, id, name from company;
  insert into job_note select id, id, name from company; analyze`;

test('without foreign keys names tell references, unless their values are in no row', async (t) => {
  const settings = await newDatabase(t, 'keyless', (client) => client.query(keyless));
  const draft = await adopted(t, settings, '--schema', 'shop', '--all-filters');
  t.deepEqual((await wrong(t, draft)).map(titleOf), []);
  t.regex(draft.output, /^Workspaces: company_id \(bigint\) is in 4 of 6 tables; references lead to shop\.company[;.]/);
  t.regex(
    draft.output,
    /job\.sql: job \((?:(?!company_id).)*customer_id to customer\): No foreign key proves these references/,
  );
  t.regex(draft.output, /job_note\.sql: job_note \(job_id\): No foreign key proves what these columns refer to, /);
  t.like(draft.resources.get('job')?.fields, { customerId: { type: 'text', references: 'customer' } });
  t.false('references' in (draft.resources.get('job')?.fields.categoryId ?? {}), 'its values are in no row');
  const ask = await (await apiOf(t, draft))('read:job,read:job-note,read:customer', 'South');
  t.like((await ask('/job-note')).body, { data: [{ title: 'South', jobId: '2' }] });
  t.like((await ask('/job?customerId=c2')).body, { data: [{ title: 'South' }] });
  t.like((await ask('/job?customerId=c1')).body, { data: [] });
});

const behind = shopOf(`
  create table company_terms (id bigint primary key, title text not null);
  alter table companies add terms_id bigint unique references company_terms;
  create table document_meta (id bigint primary key, title text not null);
  create table documents ($own, meta_id bigint not null unique references document_meta, title text not null, deleted_at timestamptz);
  create table recipients (id bigint primary key, document_id bigint not null references documents, title text not null);
  create table signings (id bigint primary key, document_id bigint not null, recipient_id bigint not null references recipients, title text not null, created_at timestamptz not null default now());
  create table readings (id bigint primary key, document_id bigint not null, author_id bigint not null references staff, title text not null);
  create table remarks (id bigint primary key, document_type text not null, document_id bigint not null, title text not null);
  create table trades (id bigint primary key, title text not null);
  create table entries ($own, entryable_type text not null, entryable_id bigint not null, title text not null);
  create table trade_fees (id bigint primary key, trade_id bigint not null references trades, title text not null);
  create table account (id bigint primary key, staff_id bigint not null references staff, provider text);
  create policy none on documents; alter table documents enable row level security;
  insert into company_terms select id, name from companies; update companies set terms_id = id;
  insert into document_meta select i, name from companies, generate_series(id, 8, 2) i;
  insert into documents (company_id, meta_id, title, deleted_at) select 2 - id % 2, id, title, case when id > 6 then now() end from document_meta;
  insert into recipients select id, id, title from documents;
  insert into signings select id, id, id, title from documents; insert into readings select id, id, company_id, title from documents;
  insert into remarks select id, 'App\\Documents', id, title from documents; insert into trades select id, title from documents;
  insert into entries (company_id, entryable_type, entryable_id, title) select company_id, 'Trade', id, title from documents`);

test('a row belongs to the record that alone has its key; a foreign key goes before a name, and a kind is a sentence', async (t) => {
  const sorted = ['company-terms', 'document-meta', 'recipients', 'signings'];
  const draft = await adoptedShop(t, behind, { findings: ['warning sorted_lists signings'] });
  t.deepEqual(
    [...draft.resources.keys()],
    ['account', 'company-terms', 'document-meta', 'documents', 'entries', 'recipients', 'signings'],
  );
  const api = await apiOf(t, draft);
  for (const workspace of ['North', 'South']) {
    const ask = await api([...sorted, 'documents'].map((name) => `read:${name}`).join(), workspace);
    for (const name of sorted) {
      const titles = (await ask<{ data: { title: string }[] }>(`/${name}`)).body.data.map(({ title }) => title);
      t.deepEqual(titles, Array(name === 'company-terms' ? 1 : 3).fill(workspace), name);
    }
  }
  for (const sentence of [
    'shop.readings: .* no foreign key proves that its document_id leads to documents, and its foreign keys lead elsewhere',
    'shop.remarks: .* its document_type and document_id name its record, so show it by a view of your own',
    'shop.trades: .* rows of shop.entries name it by entryable_type and entryable_id, so show it',
    'shop.trade_fees: .* its trade_id leads to shop.trades, which has none either',
    "tokens.sql: The tenant wall divides the rows of these tables in place of the app's row-level security: .* In documents\\.",
  ])
    t.regex(draft.output, new RegExp(sentence));
});
