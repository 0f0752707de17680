import { readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { adopted, adoptedShop, apiOf, newDatabase, shopOf, titleOf, wrong } from '../support/adopt/adopted.js';
import { gatewayTest } from '../support/workspace.js';

// The workspace of a row: by a column of another width, through the record that a row is about, by names alone, and never another's.

const test = gatewayTest();

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

test.serial('a row that names a record and a person belongs to the company of the record', async (t) => {
  const draft = await adoptedShop(t, authored, {
    findings: ['warning sorted_lists history'],
  });
  const api = await apiOf(t, draft);
  for (const workspace of ['North', 'South'])
    for (const name of ['history', 'tickets']) {
      const ask = await api('read:history,read:tickets', workspace);
      const { body } = await ask<{ data: { title: string }[] }>(`/${name}`);
      t.deepEqual(new Set(body.data.map(({ title }) => title)), new Set([workspace]), name);
    }
  t.regex(draft.output, /history\.sql: user_id refers to records of other workspaces in some rows: /);

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

test.serial('without foreign keys names tell references, unless their values are in no row', async (t) => {
  const settings = await newDatabase(t, 'keyless', (client) => client.query(keyless));
  const draft = await adopted(t, settings, '--schema', 'shop', '--all-filters');
  t.deepEqual((await wrong(t, draft)).map(titleOf), []);
  t.regex(draft.output, /^Workspaces: company_id \(bigint\) is in 4 of 6 tables; references lead to shop\.company[;.]/);
  t.regex(draft.output, /tokens\.sql: no foreign key proves \d references, .*job\.customer_id \(customer\)/);
  t.regex(draft.output, /job_note\.sql: no foreign key proves what job_id refers to, /);
  t.like(draft.resources.get('job')?.fields, { customerId: { type: 'text', references: 'customer' } });
  t.false('references' in (draft.resources.get('job')?.fields.categoryId ?? {}), 'its values are in no row');
  const ask = await (await apiOf(t, draft))('read:job,read:job-note,read:customer', 'South');
  t.like((await ask('/job-note')).body, { data: [{ title: 'South', jobId: '2' }] });
  t.like((await ask('/job?customerId=c2')).body, { data: [{ title: 'South' }] });
  t.like((await ask('/job?customerId=c1')).body, { data: [] });
});
