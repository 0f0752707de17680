import { randomUUID } from 'node:crypto';
import { asAdmin } from '../../src/postgres/admin.js';
import { adopted, authorizationOf, newDatabase, served, wrong } from '../support/adopted.js';
import { gatewayTest } from '../support/workspace.js';

// Columns and rows that a draft must not show, or not let clients write.

const test = gatewayTest();

const app = `
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
  const settings = await newDatabase(t, 'left', (client) => client.query(app));
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
