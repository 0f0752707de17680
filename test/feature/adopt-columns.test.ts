import { createCipheriv, randomBytes, randomUUID } from 'node:crypto';
import { readdirSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import { asAdmin } from '../../src/postgres/admin.js';
import { adopted, authorizationOf, emptyFolder, newDatabase, served, wrong } from '../support/adopted.js';
import { commandLine } from '../support/command-line.js';
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

// Columns and rows that a draft must not show, or not let clients write.

const hiddenApp = `
  create schema auth;
  create table auth.staff (id bigint primary key, company_id bigint);
  create schema shop; set search_path = shop;
  create table companies (id bigint primary key, name text not null);
  create table users (id bigint primary key, company_id bigint not null references companies, email text not null);
  create table customers (id bigint generated always as identity primary key, company_id bigint not null references companies,
    first text not null, last text, email text, priority text default 'normal', assignee_id bigint references auth.staff,
    full_name text generated always as (first || ' ' || coalesce(last, '')) stored,
    search_text text generated always as (lower(first || ' ' || coalesce(email, ''))) stored,
    search_vector tsvector generated always as (to_tsvector('simple', first || ' ' || coalesce(email, ''))) stored,
    created_at timestamptz not null default now());
  create table customer_notes (id bigint generated always as identity primary key, company_id bigint not null references companies,
    customer_id bigint not null references customers, label text, is_deleted boolean not null default false,
    phone text default '06-1', card text generated always as (phone || label) stored,
    old_values text default '{"email":"old@x.example"}', photo_data text default 'data:image/png;base64,iVBORw0KGgo=');
  create table audit_log (id bigint generated always as identity primary key, company_id bigint not null references companies,
    table_name text not null, record_id text not null, action text not null, old_data jsonb, new_data jsonb, dump text,
    created_at timestamptz not null default now());
  create table audits (id bigint generated always as identity primary key, company_id bigint not null references companies,
    event text, old_values text, new_values text, object text, tags text, created_at timestamptz not null default now());
  create unlogged table caches (id bigint primary key, company_id bigint not null references companies, value text);
  insert into companies values (1, 'North'), (2, 'South');
  insert into users values (1, 1, 'north@shop.example');
  insert into auth.staff values (7, 2);
  insert into customers (company_id, first, last, email) values (1, 'Anna', 'B', 'anna@x.example'), (2, 'Cas', 'D', 'cas@x.example');
  insert into customer_notes (company_id, customer_id, label, is_deleted) select company_id, id, 'kept', false from customers;
  insert into customer_notes (company_id, customer_id, label, is_deleted) select company_id, id, 'thrown away', true from customers;
  insert into audit_log (company_id, table_name, record_id, action, old_data, new_data, dump)
    select company_id, 'customers', id, 'UPDATE', '{}', to_jsonb(c), to_jsonb(c)::text from customers c;
  insert into audits (company_id, event, old_values, new_values, object, tags)
    select company_id, 'updated', '{}', to_jsonb(c)::text, E'---\\nemail: ' || email, 'a' from customers c;`;

test.serial('a draft shows no states of other records, no search index, and no deleted parts', async (t) => {
  const settings = await newDatabase(t, 'left', (client) => client.query(hiddenApp));
  const draft = await adopted(t, settings, '--schema', 'shop', '--write', 'customers');
  t.regex(draft.output, /shop\.caches: it is unlogged, so replicas do not have its rows/);
  t.regex(draft.output, /old_data.*\(states of other records\)|states of other records/);
  const text = JSON.stringify([...draft.resources.values()].map(({ name, fields }) => [name, Object.keys(fields)]));
  t.deepEqual(JSON.parse(text), [
    ['audit-log', ['id', 'entity', 'entityId', 'action', 'oldData', 'createdAt']],
    ['audits', ['id', 'event', 'tags', 'createdAt']],
    ['customers', ['id', 'first', 'last', 'priority', 'assigneeId', 'fullName', 'createdAt', 'rowVersion', 'notes']],
  ]);
  t.deepEqual(
    (await wrong(t, draft)).map(({ level, code, object }) => [level, code, object]),
    [['warning', 'open_points', 'audit-log']],
  );

  const url = await served(t, settings, draft.resourcesDir);
  const scopes = 'read:customers,write:customers,read:audits,read:audit-log';
  const token = { workspace: 'North', owner: 'north@shop.example', scopes };
  const headers = { authorization: await authorizationOf(t, draft, token), 'content-type': 'application/json' };
  for (const list of ['customers', 'audits', 'audit-log']) {
    const body = await (await fetch(`${url}/api/v1/${list}`, { headers })).text();
    t.regex(body, /"id":"1"/);
    t.notRegex(body, /anna@x|thrown away|06-1|old@x|iVBOR/, list);
  }
  const refused = await fetch(`${url}/api/v1/customers`, {
    method: 'POST',
    headers: { ...headers, 'idempotency-key': randomUUID() },
    body: JSON.stringify({ first: 'Dirk', priority: 'high', assigneeId: 7, fullName: 'x' }),
  });
  t.is(refused.status, 400);
  const created = await fetch(`${url}/api/v1/customers`, {
    method: 'POST',
    headers: { ...headers, 'idempotency-key': randomUUID() },
    body: JSON.stringify({ first: 'Dirk', last: 'E' }),
  });
  t.is(created.status, 201);
  t.like(await created.json(), { fullName: 'Dirk E', priority: 'normal', assigneeId: null });
});

const partitioned = `
  create schema shop; set search_path = shop;
  create table companies (id bigint primary key, name text not null);
  create table messages (id bigint generated always as identity, company_id bigint not null references companies, text text,
    created_at timestamptz not null default now(), primary key (id, created_at)) partition by range (created_at);
  create table messages_2026 partition of messages for values from ('2026-01-01') to ('2027-01-01');
  insert into companies values (1, 'North');
  insert into messages (company_id, text, created_at)
    select 1, 'enc:v2:k1:' || encode(sha256(n::text::bytea) || substr(sha256(n::text::bytea), 1, 16), 'base64'), '2026-01-01'
    from generate_series(1, 60000) n;`;

test.serial('key ids of a table that was never analysed, as one with partitions, come from a sample', async (t) => {
  const settings = await newDatabase(t, 'sample', (client) => client.query(partitioned));
  await adopted(t, settings, '--schema', 'shop');
  const [sampled] = await asAdmin(settings.adminUrl as string, async (client) => {
    await client.query('set role gateway_owner');
    return (await client.query<{ n: number }>('select sum(seen)::int as n from gateway.key_ids()')).rows;
  });
  t.true((sampled?.n ?? 0) > 5000 && (sampled?.n ?? 0) < 45_000, `${sampled?.n} of 60,000 values`);
});

// Keys and names that adopt must not take for others: ids that count from one in each workspace, workspaces that others refer to by
// another column than the primary key, columns that have the same name in small letters, and names that SQL could take for its own.

const keysApp = `
  create schema shop; set search_path = shop;
  create table users (id bigint primary key, email text not null);
  create table companies (id bigint primary key, number bigint unique not null, name text not null, owner_id bigint references users);
  create table invoices (company_number bigint not null references companies (number), no bigint not null, title text not null,
    "имя" text, "город" text, "createdAt" text, lines jsonb, created_at timestamptz not null default now(), primary key (company_number, no));
  create table invoice_lines (company_number bigint not null, invoice_no bigint not null, place int not null, "Größe" text, "Grüße" text,
    primary key (company_number, invoice_no, place), foreign key (company_number, invoice_no) references invoices (company_number, no));
  create table jobs (company_number bigint not null references companies (number), id bigint not null, title text, primary key (company_number, id));
  do $$ begin for i in 1..9 loop
    execute format('create table jobs_part_%s (company_number bigint not null, job_id bigint not null, id bigint, label text,
      primary key (company_number, id), foreign key (company_number, job_id) references jobs (company_number, id))', i);
  end loop; end $$;
  insert into users values (1, 'north@shop.example'), (2, 'south@shop.example');
  insert into companies values (1, 2, 'North', 1), (2, 1, 'South', 2);
  insert into invoices select c.number, n, c.name || ' ' || n, 'name of ' || c.name, 'town', 'text', '[1]', '2026-01-01'
    from companies c, generate_series(1, 30) n;
  insert into invoice_lines select company_number, no, 1, 'size', 'greetings' from invoices;
  insert into jobs select c.number, n, case when n > 8 then c.name else 'given to each company' end from companies c, generate_series(1, 30) n;`;

test.serial('ids may be the same in two workspaces, and the workspace is what others refer to', async (t) => {
  const settings = await newDatabase(t, 'keys', (client) => client.query(keysApp));
  const draft = await adopted(t, settings, '--schema', 'shop');
  t.deepEqual(
    Object.values(draft.resources.get('invoices')?.fields ?? {}).map((field) => 'column' in field && field.column),
    ['id', 'title', 'x_', 'x__2', 'created_at_2', 'lines', 'created_at', 'lines_2'],
  );
  t.deepEqual(Object.keys(draft.resources.get('jobs')?.sync?.parts ?? {}).length, 8);
  t.true(draft.resources.has('jobs-part-9'));
  t.deepEqual(await wrong(t, draft), []);

  const url = await served(t, settings, draft.resourcesDir);
  for (const [workspace, owner] of [
    ['North', 'north@shop.example'],
    ['South', 'south@shop.example'],
  ] as const) {
    const authorization = await authorizationOf(t, draft, { workspace, owner, scopes: 'read:invoices,read:jobs' });
    const read = async (path: string): Promise<unknown> =>
      (await fetch(`${url}/api/v1/${path}`, { headers: { authorization } })).json();
    const { data } = (await read('invoices?perPage=100&total=true')) as { data: { id: string; title: string }[] };
    t.is(data.length, 30);
    t.true(data.every(({ id, title }) => title === `${workspace} ${id}`));
    t.like(await read('invoices/7'), {
      ...{ title: `${workspace} 7`, x: `name of ${workspace}`, x2: 'town', createdAt: '2026-01-01T00:00:00.000Z' },
      ...{ createdAt2: 'text', lines: [1], lines2: [{ place: 1, gr_e: 'size', gr_e_2: 'greetings' }] },
    });
  }
});

/** Ends a comment, a quoted name, a text or the body of a function, where such a name is not written as one. */
const end = `"" -- */ /* $$ ' % ; create role hostile;`;
const key = randomBytes(32);

function sealed(text: string): string {
  const nonce = randomBytes(12);
  const cipher = createCipheriv('aes-256-gcm', key, nonce);
  return Buffer.concat([nonce, cipher.update(text), cipher.final(), cipher.getAuthTag()]).toString('base64');
}

const hostile = `
  create schema "s${end}"; set search_path = "s${end}";
  create type "kind${end}" as enum ('a\n; create role hostile; --', 'b''"$$');
  create table companies (id bigint primary key, name text not null);
  create table users (id bigint primary key, company_id bigint not null references companies, email text not null);
  create table "jobs${end}" (id bigint generated always as identity primary key, company_id bigint not null references companies,
    "title${end}" text, "t.created  at" timestamp not null default now(), "kind" "kind${end}", "a(b" integer not null default 0,
    "cell $$" text, "dek_$$_version" integer, "n\u00efet ${'x'.repeat(57)}" text, "deleted at" timestamp,
    constraint "c\n${end}" check (id > 0));
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
  insert into "lines${end}" select id, company_id, id, 'line' from "jobs${end}";`;

test.serial('names that hold the ends of comments, names, texts and functions are drafted as names', async (t) => {
  const made = await newDatabase(t, 'hostile', (client) => client.query(hostile));
  const settings = { ...made, dataKeys: JSON.stringify({ 7: key.toString('base64') }) };
  const schema = `s${end}`.replaceAll('""', '"');
  const draft = await adopted(t, settings, '--schema', schema, '--write', `jobs${end}`.replaceAll('""', '"'));
  const [jobs] = [...draft.resources.values()];
  t.is(draft.resources.size, 1);
  t.like(jobs?.codecs, { cell: { keyId: { column: 'dek_version' }, layout: ['nonce12', 'data', 'tag16'] } });
  t.deepEqual(await wrong(t, draft), []);
  const url = await served(t, settings, draft.resourcesDir);
  const scopes = `read:${jobs?.name}`;
  const authorization = await authorizationOf(t, draft, { workspace: 'North', owner: 'North@shop.example', scopes });
  const answer = await fetch(`${url}/api/v1/${jobs?.name}?perPage=1`, { headers: { authorization } });
  const { data } = (await answer.json()) as { data: [Record<string, unknown>] };
  t.is(data[0].cell, 'text 0');
  t.like(Object.values(data[0]).find(Array.isArray), [{ id: 1 }]);
  await asAdmin(settings.adminUrl as string, async (client) => {
    const { rows } = await client.query(`select from pg_roles where rolname = 'hostile'`);
    t.deepEqual(rows, []);
  });
});

test.serial('a name with a control character, a line end or a mark of direction is refused by name', async (t) => {
  const name = 'klant\ncreate role hostile;\n--';
  const changes: readonly (readonly [string, string])[] = [
    [`alter table jobs rename to "${name}"`, `table ${JSON.stringify(name)}`],
    [`alter table jobs rename title to "a\rb"`, String.raw`column "a\rb"`],
    [`alter table jobs rename title to "a\u2028b"`, String.raw`column "a\u2028b"`],
    [`alter table jobs rename title to "a\u202eb"`, String.raw`column "a\u202eb"`],
    [`create policy "p\nq" on jobs as restrictive using (true)`, 'policy '],
    [`create type "t\nx" as (x int); alter table jobs add c "t\nx"`, 'type '],
  ];
  for (const [i, [change, named]] of changes.entries()) {
    const settings = await newDatabase(t, `refused_${i}`, (client) => client.query(`${keysApp}; ${change}`));
    const folder = emptyFolder(t);
    const { code, stderr } = await commandLine(['adopt', '--schema', 'shop', '--out', folder], settings);
    t.is(code, 1);
    t.true(stderr.startsWith('Nothing is drafted from names with control characters, '), stderr);
    t.true(stderr.includes(named), stderr);
    t.is(stderr.split('\n').length, 2);
    t.deepEqual(readdirSync(folder), []);
  }
});

// Parts of a record whose key is the reference alone, and tables with the names of files that adopt writes.

const partsApp = `
  create schema shop; set search_path = shop;
  create table companies (id bigint primary key, name text not null);
  create table staff (id bigint primary key, company_id bigint not null references companies, email text not null, is_owner boolean not null);
  create table jobs (id bigint primary key, company_id bigint not null references companies, created_at timestamptz not null default now());
  create table job_contacts (job_id bigint primary key references jobs, email text, phone text);
  create table job_settings (job_id bigint primary key references jobs, settings json, label text);
  create table job_places (job_id bigint not null references jobs, place point, label text);
  create table access (id bigint primary key, company_id bigint not null references companies, label text, created_at timestamptz not null default now());
  create table key_ids (id bigint primary key, company_id bigint not null references companies, label text, created_at timestamptz not null default now());
  insert into companies values (1, 'North');
  insert into staff values (1, 1, 'north@shop.example', true);
  insert into jobs values (7, 1, '2026-01-01');
  insert into job_contacts values (7, 'hidden@x.example', '06-1');
  insert into job_settings values (7, '{"size": 2}', 'a');
  insert into job_places values (7, '(1,2)', 'b'), (7, '(1,2)', 'a');
  insert into access values (8, 1, 'gate', '2026-01-01');`;

test.serial('parts whose key is the reference alone are drafted, and no table takes the file of another', async (t) => {
  const settings = await newDatabase(t, 'parts', (client) => client.query(partsApp));
  const draft = await adopted(t, settings, '--schema', 'shop');
  t.deepEqual(
    [...draft.resources.values()].map(({ name, view }) => [name, view]),
    [
      ['access', 'gateway.access'],
      ['jobs', 'gateway.jobs'],
      ['key-ids', 'gateway.app_key_ids'],
    ],
  );
  t.deepEqual(await wrong(t, draft), []);
  const api = await served(t, settings, draft.resourcesDir);
  const token = { workspace: 'North', owner: 'north@shop.example', scopes: 'read:jobs,read:access' };
  const authorization = await authorizationOf(t, draft, token);
  const read = async (path: string): Promise<unknown> =>
    (await fetch(`${api}/api/v1/${path}`, { headers: { authorization } })).json();
  t.like(await read('jobs/7'), {
    contacts: [{}],
    settings: [{ settings: { size: 2 }, label: 'a' }],
    places: [
      { place: '(1,2)', label: 'a' },
      { place: '(1,2)', label: 'b' },
    ],
  });
  t.like(await read('access/8'), { label: 'gate' });
});
