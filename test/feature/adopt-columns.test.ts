import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { adopted, authorizationOf, newDatabase, served, wrong } from '../support/adopted.js';
import { gatewayTest } from '../support/workspace.js';

// Columns whose values repeat those of others, which clients must not see: the rows that an audit log keeps, and indexes for search.

const test = gatewayTest();

/** A row of staff as logs keep it; clients must see neither value. */
const row = { email: 'boss@hidden.example', encrypted_password: '$2a$10$hidden' };
const yaml = `---\nemail: ${row.email}\nencrypted_password: ${row.encrypted_password}\n`;

const app = `
  create schema shop; set search_path = shop; create extension hstore;
  create table companies (id bigint generated always as identity primary key, name text not null);
  create table staff (id bigint generated always as identity primary key, company_id bigint not null references companies, email text not null, is_owner boolean not null);
  create table jobs (id bigint generated always as identity primary key, company_id bigint not null references companies, title text not null, created_at timestamptz not null default now());
  create table trigger_log (id bigint generated always as identity primary key, company_id bigint not null references companies, table_name text not null,
    record_id bigint not null, action text not null, old_data jsonb, new_data jsonb, row_data hstore, changed text[], created_at timestamptz not null default now());
  create table audits (id bigint generated always as identity primary key, company_id bigint not null references companies, event text not null, auditable_type text not null,
    auditable_id bigint not null, old_values text, new_values text, url text, created_at timestamptz not null default now());
  create table versions (id bigint generated always as identity primary key, company_id bigint not null references companies, item_type text not null, item_id bigint not null,
    event text not null, whodunnit text, object text, created_at timestamptz not null default now(), object_changes jsonb);
  create table job_history (id bigint generated always as identity primary key, company_id bigint not null references companies, job_id bigint not null references jobs, record_type text, record_id bigint,
    event text, old_row jsonb, noticed_by text);
  insert into companies (name) values ('North');
  insert into staff (company_id, email, is_owner) values (1, 'boss@shop.example', true);
  insert into jobs (company_id, title) values (1, 'first');
  insert into trigger_log (company_id, table_name, record_id, action, old_data, new_data, row_data, changed) select 1, 'staff', 1, 'UPDATE', r, r, hstore('email', r ->> 'email'), array['${row.email}']
    from (select '${JSON.stringify(row)}'::jsonb) v (r);
  insert into audits (company_id, event, auditable_type, auditable_id, old_values, new_values, url) values (1, 'updated', 'User', 1, '[]', '${JSON.stringify(row)}', 'https://shop.example/1');
  insert into versions (company_id, item_type, item_id, event, whodunnit, object, object_changes) values (1, 'Job', 1, 'update', 'anna', '${yaml}', '{"title": ["zeroth", "first"], "email": [null, "${row.email}"]}');
  insert into job_history (company_id, job_id, record_type, record_id, event, old_row, noticed_by) values (1, 1, 'staff', 1, 'update', '${JSON.stringify(row)}', 'anna')`;

test.serial(
  'the rows that an audit log keeps beside its changes are left out of a draft, and the operator is told',
  async (t) => {
    const settings = await newDatabase(t, 'columns', (client) => client.query(app));
    const draft = await adopted(t, settings, '--schema', 'shop');
    const columnsOf = (name: string) =>
      Object.values(draft.resources.get(name)?.fields ?? {}).map((field) => ('column' in field ? field.column : ''));
    t.deepEqual(columnsOf('trigger-log'), ['id', 'table_name', 'record_id', 'action', 'old_data', 'created_at']);
    t.like(draft.resources.get('trigger-log')?.fields.oldData, { clean: 'audit-diff' });
    t.deepEqual(columnsOf('audits'), ['id', 'event', 'auditable_type', 'auditable_id', 'url', 'created_at']);
    t.like(draft.resources.get('versions')?.fields.objectChanges, { clean: 'audit-diff', diff: { old: 0, new: 1 } });
    t.deepEqual(columnsOf('jobs'), ['id', 'title', 'created_at', 'history']);
    for (const [file, columns] of [
      ['trigger_log', 'new_data, row_data, changed'],
      ['audits', 'old_values, new_values'],
      ['versions', 'object'],
    ] as const)
      t.regex(draft.output, new RegExp(`views/${file}\\.sql: left out: ${columns} \\(documents of an audit log, `));
    t.regex(draft.output, /views\/jobs\.sql: old_row of shop\.job_history is left out\./);
    const findings = await wrong(t, draft);
    t.deepEqual(
      findings.map(({ level, code, object }) => [level, code, object]),
      [['warning', 'open_points', 'trigger-log']],
    );

    const api = await served(t, settings, draft.resourcesDir);
    const names = ['jobs', 'trigger-log', 'audits', 'versions'];
    const token = {
      workspace: 'North',
      owner: 'boss@shop.example',
      scopes: names.map((name) => `read:${name}`).join(),
    };
    const authorization = await authorizationOf(t, draft, token);
    for (const name of names) {
      const answer = await fetch(`${api}/api/v1/${name}`, { headers: { authorization } });
      const text = await answer.text();
      t.is(answer.status, 200, text);
      t.is((JSON.parse(text) as { data: unknown[] }).data.length, 1);
      t.notRegex(text, /hidden/, name);
    }
  },
);

test.serial(
  'the search index of a table, which has the words of its e-mail addresses, is left out of a draft',
  async (t) => {
    const settings = await newDatabase(t, 'search', (client) =>
      client.query(`create schema shop; set search_path = shop;
      create table companies (id bigint generated always as identity primary key, name text not null);
      create table jobs (id bigint generated always as identity primary key, company_id bigint not null references companies, title text not null, email text,
        search tsvector generated always as (to_tsvector('simple', title || ' ' || coalesce(email, ''))) stored, created_at timestamptz not null default now());
      create table job_lines (id bigint generated always as identity primary key, company_id bigint not null references companies, job_id bigint not null references jobs,
        label text, words tsvector);
      insert into companies (name) values ('North');
      insert into jobs (company_id, title, email) values (1, 'first', '${row.email}')`),
    );
    const draft = await adopted(t, settings, '--schema', 'shop');
    t.deepEqual(Object.keys(draft.resources.get('jobs')?.fields ?? {}), ['id', 'title', 'createdAt', 'lines']);
    t.regex(draft.output, /views\/jobs\.sql: left out: search \(search index of other columns, by the type\)/);
    t.regex(draft.output, /views\/jobs\.sql: words of shop\.job_lines is left out\./);
    t.notRegex(readFileSync(join(draft.folder, 'sql/views/jobs.sql'), 'utf8'), /\b(t\.search|p\.words)\b/);
  },
);
