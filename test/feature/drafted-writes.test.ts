import { readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { setTimeout as sleep } from 'node:timers/promises';
import { startGateway } from '../../src/serve/gateway.js';
import { loadSettings } from '../../src/settings.js';
import { type Adopted, adoptedShop, apiOf, shopOf } from '../support/adopt/adopted.js';
import { eventually, gatewayTest } from '../support/workspace.js';

// Tables whose writes a draft cannot know whole: versions of the app, needs of a new row, times and ids that the app sets.

const test = gatewayTest();

const writable = (draft: Adopted, name: string): string =>
  Object.entries(draft.resources.get(name)?.fields ?? {})
    .flatMap(([member, field]) => ('write' in field ? [member] : []))
    .join(' ');

const unknown = shopOf(`
  create table plans ($own, name text, created_at timestamptz not null default now(), deleted_at timestamptz);
  create table invoices ($own, title text, version_number integer not null default 4, made_by bigint references staff, created_at timestamptz not null default now());
  create table documents ($own, title text, version integer not null default 1, created_at timestamptz not null default now());
  create table orders ($own, title text, plan_id bigint not null references plans, created_at timestamptz not null default now());
  create table bills ($own, title text, entity_id uuid not null, created_at timestamptz not null default now());
  create table notes ($own, title text, created_by bigint not null references staff, created_at timestamptz not null default now());
  create table receipts ($own, title text, number numeric not null, created_at timestamptz not null default now());
  create function numbered() returns trigger language plpgsql as $$ begin new := json_populate_record(new, '{"number": 7}'); return new; end $$;
  create function kept() returns trigger language plpgsql as $$ begin return new; end $$;
  create trigger numbered before insert on receipts for each row execute function numbered();
  create trigger kept before insert on bills for each row execute function kept();
  insert into plans (company_id, name, deleted_at) values (1, 'old', now());
  insert into invoices (company_id, title) values (1, 'first');
  insert into documents (company_id, title) values (1, 'first');
  insert into orders (company_id, title, plan_id) values (1, 'first', 1);
  insert into bills (company_id, title, entity_id) values (1, 'first', gen_random_uuid())`);

test.serial(
  'a draft leaves a version number of the app as it is, and a POST out that cannot work, which check and serve refuse',
  async (t) => {
    const draft = await adoptedShop(t, unknown, {
      args: ['--write', 'invoices,documents,orders,bills,notes,receipts'],
      findings: ['warning writes orders'],
    });
    t.is(draft.resources.get('invoices')?.version, 'row_version');
    t.is(writable(draft, 'invoices'), 'title');
    t.like(draft.resources.get('documents'), { version: 'version', write: { onChange: { version: 'increment' } } });
    t.regex(draft.output, /documents\.sql: a change raises version, as each change by the app must: /);
    t.notRegex(draft.output, /invoices\.sql: a change raises/);
    const { stdout } = await draft.run('check');
    t.regex(stdout, /writes orders: .*the resource that \/planId refers to does not show the record/);
    t.regex(
      draft.output,
      /bills\.sql: there is no POST \("creates" is false\), because a new row needs entity_id, which/,
    );
    t.regex(draft.output, /notes\.sql: a new record has the owner of the token in created_by: /);

    const names = ['invoices', 'bills', 'notes', 'receipts'];
    const ask = await (await apiOf(t, draft))(names.flatMap((name) => [`read:${name}`, `write:${name}`]).join(','));
    t.is((await ask('/bills', { body: { title: 'second' } })).status, 405);
    const bill = await ask('/bills/1', { body: { title: 'second' }, etag: (await ask('/bills/1')).etag });
    t.deepEqual([bill.status, bill.body.title], [200, 'second']);
    const note = await ask('/notes', { body: { title: 'first' } });
    t.deepEqual([note.status, note.body.createdBy], [201, '1'], 'the owner of the token');
    const receipt = await ask('/receipts', { body: { title: 'first' } });
    t.deepEqual([receipt.status, receipt.body.number], [201, 7], 'the trigger of the app sets it');
    const { etag } = await ask('/invoices/1');
    const changed = await ask('/invoices/1', { body: { title: 'second' }, etag });
    t.is(changed.status, 200);
    t.not(changed.etag, etag);
    t.like(changed.body, { title: 'second', versionNumber: 4 });

    const bills = join(draft.folder, 'config/resources/bills.json');
    writeFileSync(bills, readFileSync(bills, 'utf8').replace('"creates": false,', ''));
    t.is((await draft.run('migrate', '--views', join(draft.folder, 'sql/views'))).code, 0);
    const lacks = /write view gateway\.bills_write: a new record leaves entity_id of shop\.bills without a value/;
    t.regex((await draft.run('check')).stdout, new RegExp(`REFUSED +${lacks.source}.*\\n.*"creates" to false`));
    t.regex((await t.throwsAsync(startGateway(loadSettings({}, draft.settings))))?.message ?? '', lacks);
  },
);

const filled = shopOf(`
  create schema auth;
  create table auth.staff (id bigint generated always as identity primary key, company_id bigint not null, code integer not null unique);
  create domain rating as integer default 3;
  create table plans ($own, code text not null unique, name text, created_at timestamptz not null default now());
  create table jobs ($own, title text, note text, plan_id bigint references plans, plan_code text references plans (code), assignee_id bigint references auth.staff,
    colour text default 'red', gate inet default '10.0.0.1', stars rating, serial_number integer generated by default as identity, short text generated always as (left(title, 3)) stored,
    version integer generated always as (length(coalesce(title, ''))) stored not null, created_at timestamptz not null default now());
  insert into auth.staff (company_id, code) select id, id from companies;
  insert into plans (company_id, code, name) select id, (id + 10)::text, name from companies;
  insert into jobs (company_id, title) select id, name from companies;
  do $$ begin
    if current_setting('server_version_num')::int >= 180000 then
      execute 'alter table jobs add status text generated always as (left(title, 1)) virtual, add updated_at timestamptz generated always as (created_at) virtual';
    end if;
  end $$`);

test.serial('clients write no column that the database fills, and no reference to what is no resource', async (t) => {
  const draft = await adoptedShop(t, filled, {
    args: ['--write', 'jobs,plans', '--all-filters'],
    findings: ['warning unique plans'],
  });
  const jobs = draft.resources.get('jobs');
  t.is(writable(draft, 'jobs'), 'title note planId');
  t.is(jobs?.version, 'row_version');
  t.false('status' in (jobs?.filters ?? {})); // no index can have a virtual column
  for (const name of ['planCode', 'assigneeId', 'colour', 'stars', 'serialNumber', 'short', 'version'])
    t.true(Object.hasOwn(jobs?.fields ?? {}, name), name);

  const ask = await (await apiOf(t, draft))('read:jobs,write:jobs');
  const { status, etag, body } = await ask('/jobs', { body: { title: 'second', planId: '1' } });
  t.is(status, 201);
  t.like(body, { planId: '1', colour: 'red', gate: '10.0.0.1', stars: 3, short: 'sec' });
  t.is((await ask(`/jobs/${body.id}`, { body: { assigneeId: 2 }, etag })).status, 400);
  const changed = await ask(`/jobs/${body.id}`, { body: { title: 'third' }, etag });
  t.is(changed.status, 200);
  t.like(changed.body, { title: 'third', short: 'thi' });
  t.not(changed.etag, etag);
});

const withParts = shopOf(`
  create table jobs ($own, title text, created_at timestamptz not null default now());
  create table job_hours (id bigint generated always as identity primary key, job_id bigint not null references jobs on delete cascade, hours integer not null);
  insert into jobs (company_id, title) values (1, 'first');
  insert into job_hours (job_id, hours) values (1, 3)`);

test.serial('the ETag of a record moves with its parts, on the replica, on the primary and in a write', async (t) => {
  const draft = await adoptedShop(t, withParts, { args: ['--write', 'jobs'] });
  const ask = await (await apiOf(t, draft))('read:jobs,write:jobs');
  const before = (await ask('/jobs/1')).etag;
  t.is((await ask('/jobs/1', { etag: before })).status, 304);

  await draft.query('update shop.job_hours set hours = 4');
  await t.context.database.caughtUp();
  const now = await ask('/jobs/1', { etag: before });
  t.is(now.status, 200);
  t.like(now.body, { hours: [{ hours: 4 }] });
  t.not(now.etag, before);

  const stale = await ask('/jobs/1', { body: { title: 'second' }, etag: before });
  t.deepEqual([stale.status, stale.etag], [412, now.etag]);
  const changed = await ask('/jobs/1', { body: { title: 'second' }, etag: now.etag });
  t.is(changed.status, 200);
  t.like(changed.body, { title: 'second', hours: [{ hours: 4 }] });
  t.is((await ask('/jobs/1')).etag, changed.etag);
});

const times = {
  rails: 'created_at timestamp(6) not null, updated_at timestamp(6) not null',
  django: 'created timestamptz not null, modified timestamptz not null',
  prisma: '"createdAt" timestamp(3) not null default current_timestamp, "updatedAt" timestamp(3) not null',
  cuid: '"createdAt" timestamp(3) not null default current_timestamp, "updatedAt" timestamp(3) not null',
  laravel: 'created_at timestamp(0), updated_at timestamp(0)',
  triggers: 'created_at timestamptz not null default now(), updated_at timestamptz not null default now()',
};
const names = Object.keys(times);
const timed = shopOf(`
  ${Object.entries(times)
    .map(([name, columns]) => `create table ${name} ($own, title text, ${columns});`)
    .join('\n')}
  alter table cuid alter column id drop identity; alter table cuid alter column id type text;
  create function touch() returns trigger language plpgsql as $$ begin new.updated_at := now(); return new; end $$;
  create trigger touch before update on triggers for each row execute function touch()`);

test.serial('a write sets the times and the id of a record that the app sets itself', async (t) => {
  const draft = await adoptedShop(t, timed, { args: ['--write', names.join(',')] });
  const ask = await (await apiOf(t, draft))(names.flatMap((name) => [`read:${name}`, `write:${name}`]).join(','));
  const timesOf = (record: Readonly<Record<string, unknown>>): number[] =>
    Object.keys(record)
      .filter((name) => /created|updated|modified/.test(name))
      .map((name) => Date.parse(record[name] as string));
  const changeOne = async (name: string): Promise<void> => {
    const startMs = Date.now();
    const made = await ask(`/${name}`, { body: { title: 'first' } });
    t.is(made.status, 201, name);
    await sleep(1100); // Laravel's times have whole seconds
    const changed = await ask(`/${name}/${made.body.id}`, { body: { title: 'second' }, etag: made.etag });
    t.is(changed.status, 200, name);
    const [created = 0, moved = 0] = timesOf(changed.body);
    const isNear = (ms: number): boolean => ms > startMs - 1000 && ms < Date.now() + 1000;
    t.true([...timesOf(made.body), created, moved].every(isNear), `${name}: ${JSON.stringify([made, changed])}`);
    t.is(created, timesOf(made.body)[0] ?? 0, name);
    t.true(moved > (timesOf(made.body)[1] ?? 0), name);
  };
  await Promise.all(names.map(changeOne)); // each waits for more than a second
});

const labelled = shopOf(`
  create type "JobStatus" as enum ('OPEN', 'IN_PROGRESS', 'it''s "done"');
  create table jobs ($own, title text not null, status "JobStatus" not null, before "JobStatus", version integer not null default 1,
    created_at timestamptz not null default now());
  create index on jobs (company_id, created_at, id);
  create index on jobs (company_id, status, created_at, id);
  insert into jobs (company_id, title, status)
    select 1 + i % 2, 'job ' || i, case when i % 1000 < 2 then 'it''s "done"' else 'OPEN' end::"JobStatus" from generate_series(1, 20000) i`);

interface Jobs {
  readonly data: readonly { readonly title: string; readonly status: string }[];
}

test.serial('labels of an enumerated type are shown, filtered behind the barrier and written', async (t) => {
  const draft = await adoptedShop(t, labelled, { args: ['--write', 'jobs'] });
  const resource = draft.resources.get('jobs');
  t.deepEqual([resource?.filters.status?.kind, resource?.filters.status?.type], ['equals', 'enum']);
  const { rows } =
    await draft.query(`select relname from pg_class where relnamespace = 'gateway'::regnamespace and relname ~ '^jobs'
      and relkind = 'v' and not coalesce(array_to_string(reloptions, ',') ~ 'security_barrier=true', false)`);
  t.deepEqual(rows, [], 'each view has its barrier');
  const ask = await (await apiOf(t, draft))('read:jobs,write:jobs');
  const found = async (status: string): Promise<Jobs['data']> =>
    (await ask<Jobs>(`/jobs?status=${encodeURIComponent(status)}&perPage=100`)).body.data;
  const statuses = (await found(`it's "done"`)).map(({ status }) => status);
  t.deepEqual(statuses, Array(20).fill(`it's "done"`));
  for (const other of ['done', 'open', 'OPEN ', 'NULL']) t.deepEqual(await found(other), [], other);

  const made = await ask('/jobs', { body: { title: 'new', status: 'IN_PROGRESS' } });
  t.is(made.status, 201);
  t.like(made.body, { status: 'IN_PROGRESS', before: null });
  await eventually(t, 'the new record is found', async () => (await found('IN_PROGRESS'))[0]?.title === 'new');
  const path = `/jobs/${made.body.id}`;
  const changed = await ask(path, { body: { before: 'IN_PROGRESS', status: 'OPEN' }, etag: made.etag });
  t.is(changed.status, 200);
  t.like(changed.body, { status: 'OPEN', before: 'IN_PROGRESS' });
  const detail = `This must be one of: OPEN, IN_PROGRESS, it's "done".`;
  const refused = [{ pointer: '/status', code: 'invalid', detail }];
  const body = { title: 'x', status: 'Open' };
  for (const answer of [await ask('/jobs', { body }), await ask(path, { body, etag: changed.etag })])
    t.deepEqual([answer.status, answer.body.errors], [400, refused]);
});

const triggered = shopOf(`
  create table jobs ($own, title text, created_at timestamptz not null default now());
  create table counts (company_id bigint primary key references companies, jobs integer not null default 0);
  create function counted() returns trigger language plpgsql as $$ begin
    update shop.counts set jobs = jobs + 1 where company_id = new.company_id; return new; end $$;
  create function noted() returns trigger language plpgsql as $$ begin
    new.title := coalesce(new.title, '') || current_setting('app.user_id'); return new; end $$;
  create function checked() returns trigger language plpgsql security definer set search_path = shop as $$ begin
    perform from counts; return new; end $$;
  create trigger a before insert or update on jobs for each row execute function checked();
  insert into jobs (company_id, title) values (1, 'first');
  create trigger b before insert on jobs for each row execute function counted();
  create trigger c before insert or update on jobs for each row execute function noted()`);

test.serial(
  'a draft names the triggers of the app that need what the writer lacks, and check their remedies',
  async (t) => {
    const draft = await adoptedShop(t, triggered, { args: ['--write', 'jobs'], findings: ['failed writes jobs'] });
    t.regex(draft.output, /the trigger function shop\.counted uses tables as gateway_writer, .*SECURITY DEFINER/);
    t.regex(draft.output, /the trigger function shop\.noted reads app\.user_id, which the gateway does not set/);
    t.notRegex(draft.output, /shop\.checked/);
    const { stdout } = await draft.run('check');
    t.regex(stdout, /FAILED +writes jobs: .*\n +.*(current_setting|SECURITY DEFINER)/);
    t.notRegex(stdout, /FAILED +writes jobs: .*\n +Run migrate/);
  },
);
