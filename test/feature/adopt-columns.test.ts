import { createCipheriv, randomBytes } from 'node:crypto';
import { readdirSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import { runAsAdmin } from '../../src/postgres/admin.js';
import { adopted, adoptedShop, apiOf, emptyFolder, newDatabase, shopOf, wrong } from '../support/adopt/adopted.js';
import { commandLine } from '../support/command-line.js';
import { gatewayTest } from '../support/workspace.js';

// Columns and rows that a draft must not show, or not let clients write: rows that logs keep, indexes for search, deleted parts.

const test = gatewayTest().serial;
/** A row of staff as logs keep it; clients must see neither value. */
const row = { email: 'boss@hidden.example', encrypted_password: '$2a$10$hidden' };
const json = JSON.stringify(row);
const yaml = `---\nemail: ${row.email}\nencrypted_password: ${row.encrypted_password}\n`;

const app = shopOf(`
  create extension hstore;
  create schema auth; create table auth.staff (id bigint primary key, company_id bigint); insert into auth.staff values (7, 2);
  create table customers ($own, first text not null, last text, email text, priority text default 'normal', assignee_id bigint references auth.staff,
    full_name text generated always as (first || ' ' || coalesce(last, '')) stored,
    search_text text generated always as (lower(first || ' ' || coalesce(email, ''))) stored,
    search_vector tsvector generated always as (to_tsvector('simple', first || ' ' || coalesce(email, ''))) stored,
    created_at timestamptz not null default now());
  create table customer_notes ($own, customer_id bigint not null references customers, label text, is_deleted boolean not null default false,
    phone text default '06-hidden', card text generated always as (phone || label) stored, words tsvector,
    old_values text default '{"email":"hidden@x.example"}', photo_data text default 'data:image/png;base64,iVBORw0KGgo=');
  create table jobs ($own, title text not null, created_at timestamptz not null default '2026-01-01');
  create table job_history ($own, job_id bigint not null references jobs, record_type text, record_id bigint, event text, old_row jsonb, noticed_by text);
  create table job_contacts (job_id bigint primary key references jobs, email text, phone text);
  create table job_settings (job_id bigint primary key references jobs, settings json, label text);
  create table key_ids ($own, label text, created_at timestamptz not null default now());
  create table audit_log ($own, table_name text not null, record_id text not null, action text not null, old_data jsonb, new_data jsonb, row_data hstore,
    changed text[], dump text, created_at timestamptz not null default now());
  create table audits ($own, event text not null, auditable_type text not null, auditable_id bigint not null, old_values text, new_values text, url text,
    created_at timestamptz not null default now());
  create table changes ($own, event text, old_values text, new_values text, object text, tags text, created_at timestamptz not null default now());
  create table versions ($own, item_type text not null, item_id bigint not null, event text not null, whodunnit text, object text,
    created_at timestamptz not null default now(), object_changes jsonb);
  create unlogged table caches (id bigint primary key, company_id bigint not null references companies, value text);
  insert into customers (company_id, first, last, email) values (1, 'Anna', 'B', 'anna@hidden.example');
  insert into customer_notes (company_id, customer_id, label, is_deleted) values (1, 1, 'kept', false), (1, 1, 'hidden by deletion', true);
  insert into jobs (company_id, title) values (1, 'first');
  insert into job_history (company_id, job_id, record_type, record_id, event, old_row, noticed_by) values (1, 1, 'staff', 1, 'update', '${json}', 'anna');
  insert into job_contacts values (1, 'hidden@x.example', '06-hidden');
  insert into job_settings values (1, '{"size": 2}', 'a');
  insert into audit_log (company_id, table_name, record_id, action, old_data, new_data, row_data, changed, dump)
    select 1, 'staff', 1, 'UPDATE', r, r, hstore('email', r ->> 'email'), array['${row.email}'], r::text from (select '${json}'::jsonb) v (r);
  insert into audits (company_id, event, auditable_type, auditable_id, old_values, new_values, url) values (1, 'updated', 'User', 1, '[]', '${json}', 'https://shop.example/1');
  insert into changes (company_id, event, old_values, new_values, object, tags) values (1, 'updated', '{}', '${json}', '${yaml}', 'a');
  insert into versions (company_id, item_type, item_id, event, whodunnit, object, object_changes)
    values (1, 'Job', 1, 'update', 'anna', '${yaml}', '{"title": ["zeroth", "first"], "email": [null, "${row.email}"]}')`);

const shown = {
  'audit-log': 'entity entityId action oldData createdAt',
  audits: 'event auditableType auditableId url createdAt',
  changes: 'event tags createdAt',
  customers: 'first last priority assigneeId fullName createdAt rowVersion notes',
  jobs: 'title createdAt history settings',
  'key-ids': 'label createdAt',
  versions: 'entity entityId event whodunnit createdAt objectChanges',
};

test('a draft shows no personal data, no rows of logs, no search index and no deleted parts', async (t) => {
  const draft = await adoptedShop(t, app, {
    args: ['--write', 'customers'],
    findings: ['warning open_points audit-log'],
  });
  const { resources, output, folder } = draft;
  const fieldsOf = ([name, { fields }]: [string, { fields: object }]) => [name, Object.keys(fields).slice(1).join(' ')];
  t.deepEqual(Object.fromEntries([...resources].map(fieldsOf)), shown);
  t.is(resources.get('key-ids')?.view, 'gateway.app_key_ids'); // key_ids.sql is a file of its own
  t.like(resources.get('audit-log')?.fields.oldData, { clean: 'audit-diff' });
  t.like(resources.get('versions')?.fields.objectChanges, { clean: 'audit-diff', diff: { old: 0, new: 1 } });
  for (const text of [
    'shop.caches: it is unlogged, so replicas do not have its rows',
    'audit_log.sql: audit_log (new_data, row_data, changed, dump): Columns are left out (documents of an audit log, ',
    'audits.sql: audits (old_values, new_values): Columns are left out (documents of an audit log, ',
    'versions.sql: versions (object): Columns are left out (documents of an audit log, ',
    'changes.sql: changes (old_values, new_values, object): Columns are left out (states of other records, by the name)',
    'shop.job_contacts: a list in shop.jobs would show no column of it: email (personal data, by the name), phone (personal ',
    'jobs.sql: job_history (old_row): Columns are left out (documents of an audit log, ',
    'customers.sql: customers (search_vector): Columns are left out (search index of other columns, by the type)',
  ])
    t.true(output.includes(text), text);
  t.notRegex(readFileSync(join(folder, 'sql/views/customers.sql'), 'utf8'), /\b(t\.search_\w+|p\.words)\b/);

  const api = await apiOf(t, draft);
  const ask = await api(`write:customers,${Object.keys(shown).map((name) => `read:${name}`)}`);
  for (const name of Object.keys(shown)) {
    const { status, body } = await ask<{ data: object[] }>(`/${name}`);
    t.is(status, 200);
    t.is(body.data.length, name === 'key-ids' ? 0 : 1, name);
    t.notRegex(JSON.stringify(body), /hidden|iVBOR/, name);
  }
  t.like((await ask('/jobs/1')).body, { settings: [{ settings: { size: 2 }, label: 'a' }] });
  const refused = { first: 'Dirk', priority: 'high', assigneeId: 7, fullName: 'x' };
  t.is((await ask('/customers', { body: refused })).status, 400);
  const { status, body } = await ask('/customers', { body: { first: 'Dirk', last: 'E' } });
  t.is(status, 201);
  t.like(body, { fullName: 'Dirk E', priority: 'normal', assigneeId: null });
});

const partitioned = shopOf(`
  create table messages (id bigint generated always as identity, company_id bigint not null references companies, text text,
    created_at timestamptz not null default now(), primary key (id, created_at)) partition by range (created_at);
  create table messages_2026 partition of messages for values from ('2026-01-01') to ('2027-01-01');
  insert into messages (company_id, text, created_at)
    select 1, 'enc:v2:k1:' || encode(sha256(n::text::bytea) || substr(sha256(n::text::bytea), 1, 16), 'base64'), '2026-01-01'
    from generate_series(1, 60000) n`).replace('analyze', '');

test('key ids of a table that was never analysed, as one with partitions, come from a sample', async (t) => {
  const settings = await newDatabase(t, 'sample', (client) => client.query(partitioned));
  await adopted(t, settings, '--schema', 'shop');
  const [sampled] = await runAsAdmin(settings.adminUrl as string, async (client) => {
    await client.query('set role gateway_owner');
    return (await client.query<{ n: number }>('select sum(seen)::int as n from gateway.key_ids()')).rows;
  });
  t.true((sampled?.n ?? 0) > 5000 && (sampled?.n ?? 0) < 45_000, `${sampled?.n} of 60,000 values`);
});

// Keys and names that adopt must not take for others: ids per workspace, other keys of workspaces, letters alike, SQL within names.

const keyed = `
  create schema shop; set search_path = shop;
  create table companies (id bigint primary key, number bigint unique not null, name text not null);
  create table users (id bigint primary key, company_number bigint not null references companies (number), email text not null);
  create table invoices (company_number bigint not null references companies (number), no bigint not null, title text not null,
    "имя" text, "город" text, "createdAt" text, lines jsonb, created_at timestamptz not null default now(), primary key (company_number, no));
  create table invoice_lines (company_number bigint not null, invoice_no bigint not null, place int not null, "Größe" text, "Grüße" text,
    primary key (company_number, invoice_no, place), foreign key (company_number, invoice_no) references invoices (company_number, no));
  create table jobs (company_number bigint not null references companies (number), id bigint not null, title text, primary key (company_number, id));
  do $$ begin for i in 1..9 loop
    execute format('create table jobs_part_%s (company_number bigint not null, job_id bigint not null, id bigint, label text,
      primary key (company_number, id), foreign key (company_number, job_id) references jobs (company_number, id))', i);
  end loop; end $$;
  insert into companies values (1, 2, 'North'), (2, 1, 'South');
  insert into users values (1, 2, 'north@shop.example'), (2, 1, 'south@shop.example');
  insert into invoices select c.number, n, c.name || ' ' || n, 'name of ' || c.name, 'town', 'text', '[1]', '2026-01-01'
    from companies c, generate_series(1, 30) n;
  insert into invoice_lines select company_number, no, 1, 'size', 'greetings' from invoices;
  insert into jobs select c.number, n, case when n > 8 then c.name else 'given to each company' end from companies c, generate_series(1, 30) n;`;

test('ids may be the same in two workspaces, and the workspace is what others refer to', async (t) => {
  const draft = await adoptedShop(t, keyed);
  const columns = Object.values(draft.resources.get('invoices')?.fields ?? {}).map(
    (field) => 'column' in field && field.column,
  );
  t.deepEqual(columns, ['id', 'title', 'x_', 'x__2', 'created_at_2', 'lines', 'created_at', 'lines_2']);
  t.deepEqual(Object.keys(draft.resources.get('jobs')?.sync?.parts ?? {}).length, 8);
  t.true(draft.resources.has('jobs-part-9'));
  const api = await apiOf(t, draft);
  for (const workspace of ['North', 'South']) {
    const ask = await api('read:invoices,read:jobs', workspace, `${workspace.toLowerCase()}@shop.example`);
    const { data } = (await ask<{ data: { id: string; title: string }[] }>('/invoices?perPage=100&total=true')).body;
    t.is(data.length, 30);
    t.true(data.every(({ id, title }) => title === `${workspace} ${id}`));
    t.like((await ask('/invoices/7')).body, {
      ...{ title: `${workspace} 7`, x: `name of ${workspace}`, x2: 'town', createdAt: '2026-01-01T00:00:00.000Z' },
      ...{ createdAt2: 'text', lines: [1], lines2: [{ place: 1, grE: 'size', grE2: 'greetings' }] },
    });
  }
});

/** Ends a comment, a quoted name, a text or the body of a function, where such a name is not written as one. */
const end = `"" -- */ /* $$ ' % ; create role hostile;`;
const key = randomBytes(32);

function sealed(text: string): string {
  const nonce = randomBytes(12);
  const cipher = createCipheriv('aes-256-gcm', key, nonce);
  return `enc:v1:7:${Buffer.concat([nonce, cipher.update(text), cipher.final(), cipher.getAuthTag()]).toString('base64')}`;
}

const hostile = `
  create schema "s${end}"; set search_path = "s${end}";
  create type "kind${end}" as enum ('a\n; create role hostile; --', 'b''"$$');
  create table companies (id bigint primary key, name text not null);
  create table users (id bigint primary key, company_id bigint not null references companies, email text not null);
  create table "jobs${end}" ("records.id" bigint generated always as identity primary key, company_id bigint not null references companies,
    "title${end}" text, "t.created  at" timestamp not null default now(), "kind" "kind${end}", "a(b" integer not null default 0,
    "cell $$" text, "dek_$$_version" integer, "n\u00efet ${'x'.repeat(57)}" text, "deleted at" timestamp,
    constraint "c\n${end}" check ("records.id" > 0));
  create index "i\n${end}" on "jobs${end}" ("title${end}");
  create function touch() returns trigger language plpgsql as 'begin new."a(b" := 1; return new; end';
  create trigger touch before update on "jobs${end}" for each row execute function touch();
  alter table "jobs${end}" enable row level security;
  create policy "p${end}" on "jobs${end}" as restrictive to public using (true);
  create table "lines${end}" (id bigint primary key, company_id bigint not null references companies,
    "job${end}" bigint not null references "jobs${end}", "label${end}" text);
  insert into companies values (1, 'North'), (2, 'South');
  insert into users select id, id, name || '@shop.example' from companies;
  insert into "jobs${end}" (company_id, "title${end}", kind, "cell $$", "dek_$$_version") values
    ${Array.from({ length: 20 }, (_, i) => `(1, 'first', 'b''"$$', '${sealed(`text ${i}`)}', 7)`).join(', ')};
  insert into "lines${end}" select "records.id", company_id, "records.id", 'line' from "jobs${end}";`;

test('names that hold the ends of comments, names, texts and functions are drafted as names', async (t) => {
  const made = await newDatabase(t, 'hostile', (client) => client.query(hostile));
  const settings = { ...made, dataKeys: JSON.stringify({ 7: key.toString('base64') }) };
  const schema = `s${end}`.replaceAll('""', '"');
  const draft = await adopted(t, settings, '--schema', schema, '--write', `jobs${end}`.replaceAll('""', '"'));
  const [jobs] = [...draft.resources.values()];
  t.is(draft.resources.size, 1);
  const codes = (await wrong(t, draft)).map(({ code }) => code);
  t.deepEqual(codes, ['open_points']);
  const ask = await (await apiOf(t, draft))(`read:${jobs?.name}`);
  const { body } = await ask<{ data: [Record<string, unknown>] }>(`/${jobs?.name}?perPage=1`);
  t.is(body.data[0].cell, 'text 0');
  t.like(Object.values(body.data[0]).find(Array.isArray), [{ id: '1' }]);
  t.deepEqual((await draft.query(`select from pg_roles where rolname = 'hostile'`)).rows, []);
});

test('a name with a control character, a line end or a mark of direction is refused by name', async (t) => {
  const name = 'klant\ncreate role hostile;\n--';
  const changes: readonly (readonly [string, string])[] = [
    [`alter table jobs rename to "${name}"`, JSON.stringify(name)],
    [`alter table jobs rename title to "a\rb"`, String.raw`"a\rb"`],
    [`alter table jobs rename title to "a\u2028b"`, String.raw`"a\u2028b"`],
    [`alter table jobs rename title to "a\u202eb"`, String.raw`"a\u202eb"`],
    [`create type "t\nx" as (x int); alter table jobs add c "t\nx"`, String.raw`t\nx`],
  ];
  for (const [i, [change, named]] of changes.entries()) {
    const settings = await newDatabase(t, `refused_${i}`, (client) => client.query(`${keyed}; ${change}`));
    const folder = emptyFolder(t);
    const { code, stderr } = await commandLine(['adopt', '--schema', 'shop', '--out', folder], settings);
    t.is(code, 1);
    t.true(stderr.startsWith('Nothing is drafted from names with control characters, '), stderr);
    t.true(stderr.includes(named), stderr);
    t.is(stderr.split('\n').length, 2);
    t.deepEqual(readdirSync(folder), []);
  }
});
