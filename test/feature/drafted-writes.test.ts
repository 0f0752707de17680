import { randomUUID } from 'node:crypto';

import { adopted, authorizationOf, newDatabase, served, wrong } from '../support/adopted.js';
import { gatewayTest } from '../support/workspace.js';

// Tables whose writes a draft cannot know whole: values of the app that are named like versions, needs of a new row, deleted references.

const test = gatewayTest();

const app = `
  create table companies (id bigint generated always as identity primary key, name text not null);
  create table staff (id bigint generated always as identity primary key, company_id bigint not null references companies, email text not null, is_owner boolean not null);
  create table plans (id bigint generated always as identity primary key, company_id bigint not null references companies, name text,
    created_at timestamptz not null default now(), deleted_at timestamptz);
  create table invoices (id bigint generated always as identity primary key, company_id bigint not null references companies, title text,
    version_number integer not null default 4, made_by bigint references staff, created_at timestamptz not null default now());
  create table documents (id bigint generated always as identity primary key, company_id bigint not null references companies, title text,
    version integer not null default 1, created_at timestamptz not null default now());
  create table orders (id bigint generated always as identity primary key, company_id bigint not null references companies, title text,
    plan_id bigint not null references plans, created_at timestamptz not null default now());
  create table bills (id bigint generated always as identity primary key, company_id bigint not null references companies, title text,
    entity_id uuid not null, created_at timestamptz not null default now());
  insert into companies (name) values ('North');
  insert into staff (company_id, email, is_owner) values (1, 'boss@shop.example', true);
  insert into plans (company_id, name, deleted_at) values (1, 'old', now());
  insert into invoices (company_id, title) values (1, 'first');
  insert into documents (company_id, title) values (1, 'first');
  insert into orders (company_id, title, plan_id) values (1, 'first', 1);
  insert into bills (company_id, title, entity_id) values (1, 'first', gen_random_uuid())`;

test.serial(
  'a draft leaves a version number of the app as it is, and check names what a new record lacks',
  async (t) => {
    const settings = await newDatabase(t, 'writes', (client) => client.query(app));
    const draft = await adopted(t, settings, '--schema', 'public', '--write', 'invoices,documents,orders,bills');
    t.is(draft.resources.get('invoices')?.version, 'row_version');
    const writable = Object.entries(draft.resources.get('invoices')?.fields ?? {}).filter(
      ([, field]) => 'write' in field,
    );
    t.deepEqual(
      writable.map(([name]) => name),
      ['title'],
    );
    t.like(draft.resources.get('documents'), { version: 'version', write: { onChange: { version: 'increment' } } });
    t.regex(draft.output, /documents\.sql: a change raises version, as each change by the app must: /);
    t.notRegex(draft.output, /invoices\.sql: a change raises/);

    const findings = await wrong(t, draft);
    t.deepEqual(findings.map(({ level, code, object }) => [level, code, object]).sort(), [
      ['failed', 'writes', 'bills'],
      ['warning', 'writes', 'orders'],
    ]);
    const detailOf = (name: string) => findings.find(({ object }) => object === name)?.detail ?? '';
    t.regex(detailOf('bills'), /^a new record with its required fields alone leaves entity_id without a value/);
    t.regex(detailOf('orders'), /the resource that \/planId refers to does not show the record/);

    const url = await served(t, settings, draft.resourcesDir);
    const token = { workspace: 'North', owner: 'boss@shop.example', scopes: 'read:invoices,write:invoices' };
    const authorization = await authorizationOf(t, draft, token);
    const before = await fetch(`${url}/api/v1/invoices/1`, { headers: { authorization } });
    const headers = {
      authorization,
      'content-type': 'application/json',
      'idempotency-key': randomUUID(),
      'if-match': String(before.headers.get('etag')),
    };
    const body = JSON.stringify({ title: 'second' });
    const changed = await fetch(`${url}/api/v1/invoices/1`, { method: 'PATCH', headers, body });
    t.is(changed.status, 200);
    t.like(await changed.json(), { title: 'second', versionNumber: 4 });
    t.not(changed.headers.get('etag'), before.headers.get('etag'));
  },
);
