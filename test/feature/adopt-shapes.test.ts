import { readdirSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import type { Field } from '../../src/resource/definition/resource.js';
import { adopted, adoptedShop, apiOf, newDatabase, shopOf, wrong } from '../support/adopt/adopted.js';
import { gatewayTest } from '../support/workspace.js';

// Shapes of tables that other apps have: domains, columns with the names of aliases.

const test = gatewayTest().serial;

test('a domain is shown and written as the type below all domains, and keeps their NOT NULL', async (t) => {
  const app = shopOf(`
    create domain label as varchar(5); create domain required_label as label not null; create domain title as required_label;
    create domain moment as timestamptz; create domain app_moment as moment default now();
    create domain amount as integer; create domain places as amount;
    create type state as enum ('open', 'done'); create domain first_state as state; create domain job_state as first_state;
    create domain labels as text[]; create domain many_labels as labels;
    create table jobs ($own, title title, subtitle label, places places, state job_state, labels many_labels, created_at app_moment not null);
    insert into jobs (company_id, title, places, state, labels) values (1, 'first', 3, 'open', '{a,b}')`);
  const draft = await adoptedShop(t, app, { args: ['--write', 'jobs'] });
  const types = Object.entries(draft.resources.get('jobs')?.fields ?? {}).map(
    ([name, field]) => `${name}:${Object(field).type}`,
  );
  t.is(
    types.join(' '),
    'id:bigint title:text subtitle:text places:integer state:enum labels:json createdAt:timestamp rowVersion:bigint',
  );
  const ask = await (await apiOf(t, draft))('read:jobs,write:jobs');
  const { body } = await ask<{ data: object[] }>('/jobs');
  t.like(body.data[0], { title: 'first', places: 3, state: 'open', labels: ['a', 'b'] });
  const statusOf = async (title: string | null) => (await ask('/jobs', { body: { title } })).status;
  t.deepEqual([await statusOf(null), await statusOf('longer'), await statusOf('short')], [400, 400, 201]);
  t.is((await ask('/jobs', { body: { subtitle: 'a' } })).status, 400);
});

test('columns may have the names of the aliases that a draft uses, and of the members that the gateway makes', async (t) => {
  const app = shopOf(`
    create table jobs ($own, t text, p text, w1 text, s text, v text, sync_version text, created_at timestamptz not null default now());
    create table job_lines ($own, job_id bigint not null references jobs, p integer, t text, w1 text);
    create table job_times (id bigint primary key, job_id bigint not null references jobs, t text, p text, w1 text, created_at timestamptz not null default now());
    insert into jobs (company_id, t, p, w1, s, v, sync_version) values (1, 'a', 'b', 'c', 'd', 'e', 'f');
    insert into job_lines (company_id, job_id, p, t, w1) values (1, 1, 7, 'f', 'g');
    insert into job_times values (1, 1, 'h', 'i', 'j')`);
  const draft = await adoptedShop(t, app, { findings: ['warning sorted_lists job-times'] });
  const ask = await (await apiOf(t, draft))('read:jobs,read:job-times');
  const { body } = await ask('/jobs/1');
  t.like(body, { t: 'a', p: 'b', w1: 'c', s: 'd', v: 'e', ownSyncVersion: 'f' });
  t.like((body.lines as object[])[0], { p: 7, t: 'f', w1: 'g' });
  t.like((await ask('/job-times/1')).body, { t: 'h', p: 'i', w1: 'j' });
});

test('in lists, also of lists, and in composite types values have the form of columns', async (t) => {
  const app = shopOf(`
    create type stay as ("from At" timestamptz, rate numeric, nights date[]);
    create table jobs ($own, grid timestamptz[][], stays stay[], created_at timestamptz not null default now());
    create table job_lines ($own, job_id bigint not null references jobs, stay stay);
    insert into jobs (company_id, grid, stays) values (1, '{{infinity,2026-01-01 02:00+02}}', array[row('-infinity', 'NaN', '{infinity,2026-01-01}')::stay]);
    insert into job_lines (company_id, job_id, stay) values (1, 1, row('2026-01-01 00:00Z', 1.50, null)::stay)`);
  const ask = await (await apiOf(t, await adoptedShop(t, app)))('read:jobs');
  t.like((await ask('/jobs/1')).body, {
    grid: [[null, '2026-01-01T00:00:00.000Z']],
    stays: [{ fromAt: null, rate: null, nights: [null, '2026-01-01'] }],
    lines: [{ id: '1', stay: { fromAt: '2026-01-01T00:00:00.000Z', rate: 1.5, nights: null } }],
  });
});

interface List {
  readonly data: readonly { readonly id: string; readonly createdAt: string | null }[];
  readonly pagination: { readonly next: string | null };
}

test('a list is in the order of its times, those without one first, and a period is one of the business', async (t) => {
  const app = shopOf(`
    create table notes ($own, label text, created_at timestamptz);
    create table visits ($own, label text, created_at timestamp, start timestamp not null);
    create table bills ($own, invoice_date date, created_at timestamptz not null default '2020-01-01');
    create table places ($own, label text);
    insert into notes (company_id, created_at) select 1 + n % 2, case when n % 5 > 0 then timestamptz '2026-01-01 00:00Z' + n % 7 * interval '1 h' end from generate_series(1, 100) n;
    insert into visits (company_id, start) select 1, timestamp '2026-03-01' + n * interval '1 h' from generate_series(0, 71) n;
    insert into bills (company_id, invoice_date) select 1, case when n % 3 > 0 then date '2026-03-01' + n end from generate_series(1, 30) n`);
  const draft = await adoptedShop(t, app);
  const orderOf = (name: string) => draft.resources.get(name)?.order.map(({ column }) => column);
  t.deepEqual(['notes', 'visits', 'bills', 'places'].map(orderOf), [
    ...[
      ['created_at', 'id'],
      ['start', 'id'],
    ],
    ...[['created_at', 'id'], ['id']],
  ]);
  const ask = await (await apiOf(t, draft))('read:notes,read:visits,read:bills');
  const notes: List['data'][number][] = [];
  for (let next: string | null = '/notes?perPage=8'; next !== null; ) {
    const { data, pagination }: List = (await ask<List>(next)).body;
    notes.push(...data);
    next = pagination.next;
  }
  t.deepEqual([notes.length, new Set(notes.map(({ id }) => id)).size], [50, 50]);
  const isAbsent = notes.map(({ createdAt }) => createdAt === null);
  const areFirst = notes.map((_, i) => i < 10);
  t.deepEqual(isAbsent, areFirst);
  t.deepEqual(
    notes.slice(10).map(({ createdAt }) => createdAt),
    notes
      .slice(10)
      .map(({ createdAt }) => createdAt)
      .sort(),
  );
  const total = async (path: string) => (await ask<{ pagination: { total: number } }>(path)).body.pagination.total;
  t.is(await total('/notes?from=2026-01-01&to=2026-01-01&total=true'), 40);
  t.is(await total('/visits?from=2026-03-02&to=2026-03-02&total=true'), 24);
  t.is(await total('/bills?from=2026-03-02&to=2026-03-08&total=true'), 5);
});

const busy = shopOf(`
  create table kinds ($own, label text);
  create table jobs ($own, kind_id bigint references kinds, other_kind_id bigint references kinds, third_kind_id bigint references kinds,
    number text not null, code integer not null, third text not null, status text, created_at timestamptz not null default now(), updated_at timestamptz, start date,
    unique (company_id, number), unique (company_id, code), unique (company_id, third));
  create index jobs_kind on jobs (company_id, kind_id, created_at, id);
  create table job_lines (id bigint primary key, job_id bigint not null references jobs, label text);
  insert into jobs (company_id, number, code, third) select 1 + n % 2, n, n, n from generate_series(1, 50000) n`);

test('a draft proposes few indexes, says what each costs, and takes the other filters on demand', async (t) => {
  const settings = await newDatabase(t, 'busy', (client) => client.query(busy));
  const draft = await adopted(t, settings, '--schema', 'shop');
  const indexesOf = ({ folder }: { folder: string }) =>
    readdirSync(join(folder, 'sql/views/indexes'))
      .filter((name) => name.startsWith('jobs_'))
      .map((name) => name.replace('.sql', ''));
  t.is(indexesOf(draft).join(' '), 'jobs_code jobs_number jobs_start jobs_sync jobs_sync_lines');
  const filters = draft.resources.get('jobs')?.filters ?? {};
  t.deepEqual(Object.keys(filters).sort(), ['code', 'from', 'ids', 'kindId', 'number', 'to']);
  t.true(filters.number?.nearlyUnique);
  t.regex(draft.output, /Indexes:\n {2}Proposed: 6, tables: 3, about \d+ MB in all; each makes every insert slower\. /);
  t.regex(
    draft.output,
    /\n {2}Filters without an index of the app are not drafted: 4, which the views name\. With --all-filters /,
  );
  const view = readFileSync(join(draft.folder, 'sql/views/jobs.sql'), 'utf8');
  t.regex(view, /^-- Filters without an index, not drafted: otherKindId, thirdKindId, status, updatedSince\.$/m);
  const text = readFileSync(join(draft.folder, 'sql/views/indexes/jobs_start.sql'), 'utf8');
  t.regex(
    text,
    /^-- For GET \/jobs: the order of the list\.\n-- For GET \/jobs: from=… and to=….\n-- About [1-4] MB, by the estimate of 50,000 rows\.\n/,
  );
  t.deepEqual(await wrong(t, draft), []);
  const ask = await (await apiOf(t, draft))('read:jobs');
  t.is((await ask<{ data: unknown[] }>('/jobs?number=7&code=7')).body.data.length, 0);
  t.is((await ask<{ data: unknown[] }>('/jobs?number=8&code=8')).body.data.length, 1);

  const all = await adopted(
    t,
    await newDatabase(t, 'all', (client) => client.query(busy)),
    '--schema',
    'shop',
    '--all-filters',
  );
  t.deepEqual(await wrong(t, all), []);
  t.is(indexesOf(all).length, 9);
});

test('a draft lists each form of free JSON in its sample, check counts forms that came since, and personal fields and states are marked', async (t) => {
  const app = shopOf(`
    create table orders ($own, customer_name text, brand text, notes text, data jsonb, marks jsonb[], later jsonb, created_at timestamptz not null default now());
    create table order_lines ($own, order_id bigint not null references orders, detail json, birth_place text);
    create table activity ($own, entity_type text not null, entity_id bigint not null, action text not null, changes jsonb, created_at timestamptz not null default now());
    insert into activity (company_id, entity_type, entity_id, action, changes)
      select 1, 'order', n, 'update', '{"brand": ["Bitzer", "Daikin"], "notes": ["Jansen", null]}' from generate_series(1, 9) n;
    insert into orders (company_id, customer_name, brand, data, marks)
      select 1, 'Jansen', 'Bitzer', (array['42', '"text"', '["red", "green"]', '{"size": 1, "place": {"row": 2}}']::jsonb[])[1 + n % 4],
        array['1', '{"at": 1, "in": {"n": 1}}']::jsonb[] from generate_series(1, 100) n;
    insert into orders (company_id, data) values (1, '{"size": {"width": 3}, "place": 4}');
    insert into order_lines (company_id, order_id, detail) values (1, 1, '  true'), (1, 1, '[1, {"a": "b"}]')`);
  const draft = await adoptedShop(t, app);
  const { data, marks, later, customerName, brand, notes, lines } = (draft.resources.get('orders')?.fields ??
    {}) as Record<string, Field>;
  t.deepEqual(data?.show, ['', '/place', '/place/row', '/size', '/size/width']);
  t.deepEqual([marks?.show, later], [['', '/at', '/in/n'], undefined]);
  t.deepEqual(lines?.items?.fields?.detail?.show, ['', '/a']);
  t.deepEqual([customerName?.personal, brand?.personal, brand?.log, notes?.log], [true, undefined, 'text', undefined]);
  const ask = await (await apiOf(t, draft))('read:orders,read:activity');
  const { body } = await ask<{ data: { data: unknown }[] }>('/orders?perPage=3');
  t.deepEqual(
    body.data.map((order) => order.data),
    ['text', ['red', 'green'], { size: 1, place: { row: 2 } }],
  );
  const log = await ask<{ data: { changes: unknown }[] }>('/activity?perPage=1');
  t.deepEqual(log.body.data[0]?.changes, [
    { field: 'brand', old: 'Bitzer', new: 'Daikin' },
    { field: 'notes', shielded: true },
  ]);
  await draft.query(`insert into shop.orders (company_id, marks) values (1, array['{"at": {"x": 1}, "in": "x"}', 'true']::jsonb[]);
      insert into shop.order_lines (company_id, order_id, detail) values (1, 2, '{"a": {"b": 1}}')`);
  const [finding, ...others] = (await wrong(t, draft)).filter(({ code }) => code === 'shown');
  t.deepEqual(others, []);
  t.regex(
    finding?.detail ?? '',
    /\/fields\/marks leaves out objects at \/at in 1 of \d+ records.*leaves out texts at \/in in 1/s,
  );
  t.regex(finding?.detail ?? '', /\/fields\/lines\/items\/fields\/detail leaves out objects at \/a in 1 of/);
});
