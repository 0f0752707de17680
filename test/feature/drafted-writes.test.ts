import { randomUUID } from 'node:crypto';
import pg from 'pg';
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

const columns = `
  create schema auth; set search_path = public;
  create table auth.staff (id bigint generated always as identity primary key, company_id bigint not null, code integer not null unique);
  create domain rating as integer default 3;
  create table companies (id bigint generated always as identity primary key, name text not null);
  create table staff (id bigint generated always as identity primary key, company_id bigint not null references companies, email text not null, is_owner boolean not null);
  create table plans (id bigint generated always as identity primary key, company_id bigint not null references companies, code integer not null unique, name text,
    created_at timestamptz not null default now());
  create table jobs (id bigint generated always as identity primary key, company_id bigint not null references companies, title text, note text,
    plan_id bigint references plans, plan_code integer references plans (code), assignee_id bigint references auth.staff,
    colour text default 'red', gate inet default '10.0.0.1', stars rating, serial_number integer generated by default as identity, short text generated always as (left(title, 3)) stored,
    version integer generated always as (length(coalesce(title, ''))) stored not null, created_at timestamptz not null default now());
  insert into companies (name) values ('North'), ('South');
  insert into staff (company_id, email, is_owner) select id, name || '@shop.example', true from companies;
  insert into auth.staff (company_id, code) select id, id from companies;
  insert into plans (company_id, code, name) select id, id + 10, name from companies;
  insert into jobs (company_id, title) select id, name from companies;
  do $$ begin
    if current_setting('server_version_num')::int >= 180000 then
      execute 'alter table jobs add status text generated always as (left(title, 1)) virtual, add updated_at timestamptz generated always as (created_at) virtual';
    end if;
  end $$`;

test.serial('clients write no column that the database fills, and no reference to what is no resource', async (t) => {
  const settings = await newDatabase(t, 'columns', (client) => client.query(columns));
  const draft = await adopted(t, settings, '--schema', 'public', '--write', 'jobs,plans');
  const jobs = draft.resources.get('jobs');
  const writable = Object.entries(jobs?.fields ?? {}).filter(([, field]) => 'write' in field);
  t.deepEqual(
    writable.map(([name]) => name),
    ['title', 'note', 'planId'],
  );
  t.is(jobs?.version, 'row_version');
  t.false('status' in (jobs?.filters ?? {})); // no index can have a virtual column
  for (const name of ['planCode', 'assigneeId', 'colour', 'stars', 'serialNumber', 'short', 'version'])
    t.true(Object.hasOwn(jobs?.fields ?? {}, name), name);
  t.deepEqual(await wrong(t, draft), []);

  const url = await served(t, settings, draft.resourcesDir);
  const token = { workspace: 'North', owner: 'North@shop.example', scopes: 'read:jobs,write:jobs' };
  const authorization = await authorizationOf(t, draft, token);
  const send = (method: string, path: string, body: object, more: object = {}): Promise<Response> => {
    const headers = { authorization, 'content-type': 'application/json', 'idempotency-key': randomUUID(), ...more };
    return fetch(`${url}/api/v1/jobs${path}`, { method, headers, body: JSON.stringify(body) });
  };
  const made = await send('POST', '', { title: 'second', planId: '1' });
  t.is(made.status, 201);
  const { id, ...values } = (await made.json()) as { id: string };
  t.like(values, { planId: '1', colour: 'red', gate: '10.0.0.1', stars: 3, short: 'sec' });
  const etag = String(made.headers.get('etag'));
  t.is((await send('PATCH', `/${id}`, { assigneeId: 2 }, { 'if-match': etag })).status, 400);
  const changed = await send('PATCH', `/${id}`, { title: 'third' }, { 'if-match': etag });
  t.is(changed.status, 200);
  t.like(await changed.json(), { title: 'third', short: 'thi' });
  t.not(changed.headers.get('etag'), etag);
});

const withParts = `
  create table companies (id bigint generated always as identity primary key, name text not null);
  create table staff (id bigint generated always as identity primary key, company_id bigint not null references companies, email text not null, is_owner boolean not null);
  create table jobs (id bigint generated always as identity primary key, company_id bigint not null references companies, title text, created_at timestamptz not null default now());
  create table job_hours (id bigint generated always as identity primary key, job_id bigint not null references jobs on delete cascade, hours integer not null);
  insert into companies (name) values ('North');
  insert into staff (company_id, email, is_owner) values (1, 'boss@shop.example', true);
  insert into jobs (company_id, title) values (1, 'first');
  insert into job_hours (job_id, hours) values (1, 3)`;

test.serial('the ETag of a record moves with its parts, on the replica, on the primary and in a write', async (t) => {
  const { database } = t.context;
  const settings = await newDatabase(t, 'parts', (client) => client.query(withParts));
  const draft = await adopted(t, settings, '--schema', 'public', '--write', 'jobs');
  t.deepEqual(await wrong(t, draft), []);
  const url = `${await served(t, settings, draft.resourcesDir)}/api/v1/jobs/1`;
  const token = { workspace: 'North', owner: 'boss@shop.example', scopes: 'read:jobs,write:jobs' };
  const authorization = await authorizationOf(t, draft, token);
  const read = (etag = ''): Promise<Response> =>
    fetch(url, { headers: { authorization, ...(etag && { 'if-none-match': etag }) } });
  const change = (title: string, etag: string): Promise<Response> => {
    const conditions = { 'idempotency-key': randomUUID(), 'if-match': etag };
    const headers = { authorization, 'content-type': 'application/json', ...conditions };
    return fetch(url, { method: 'PATCH', headers, body: JSON.stringify({ title }) });
  };
  const etagOf = (response: Response): string => response.headers.get('etag') as string;
  const before = etagOf(await read());
  t.is((await read(before)).status, 304);

  const admin = new pg.Client(settings.adminUrl as string);
  await admin.connect();
  t.teardown(() => admin.end());
  await admin.query('update job_hours set hours = 4');
  await database.caughtUp();
  const now = await read(before);
  t.is(now.status, 200);
  t.like(await now.json(), { hours: [{ hours: 4 }] });
  t.not(etagOf(now), before);

  const stale = await change('second', before);
  t.is(stale.status, 412);
  t.is(etagOf(stale), etagOf(now));
  const changed = await change('second', etagOf(now));
  t.is(changed.status, 200);
  t.like(await changed.json(), { title: 'second', hours: [{ hours: 4 }] });
  t.is(etagOf(await read()), etagOf(changed));
});
