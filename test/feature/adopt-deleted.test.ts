import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import type { ExecutionContext } from 'ava';
import type { ResourceLedger } from '../../src/operate/adopt/rows.js';
import { type Adopted, type Ask, adopted, adoptedShop, apiOf, newDatabase, shopOf } from '../support/adopt/adopted.js';
import { gatewayTest } from '../support/workspace.js';

// Rows that the app has deleted and that stay in its tables: by any mark, through records above them, and as workspaces and users.

const test = gatewayTest().serial;

// Kinds, and groups below them, can be of no company; in the first shape nothing marks a kind as deleted.
const ofNoCompany = [2, 4].map(
  (kinds, i) => `
  create table kinds${i} (id int primary key, company_id bigint references companies, title text, created_at timestamptz not null default now());
  insert into kinds${i} select k, nullif(k % 2, 0), case when k > 2 then 'gone' else 'kept' end from generate_series(1, ${kinds}) k;
  create table groups${i} (id serial primary key, company_id bigint references companies, kind_id int not null references kinds${i} on delete cascade,
    title text, created_at timestamptz not null default now());
  create table items${i} ($own, group_id int not null references groups${i} on delete cascade, title text, created_at timestamptz not null default now());
  create table pieces${i} ($own, kind_id int not null references kinds${i} on delete cascade, title text);
  create table labels${i} (id serial primary key, kind_id int not null references kinds${i} on delete cascade, title text, created_at date not null default now());
  create table covers${i} (id int primary key, title text, created_at date not null default now());
  create table books${i} ($own, cover_id int not null unique references covers${i}, title text, created_at date not null default now());
  create table pages${i} ($own, cover_id int not null references covers${i} on delete cascade, title text, created_at date not null default now());
  insert into covers${i} select id, title from kinds${i}; insert into books${i} (company_id, cover_id, title) values (1, 1, 'kept');
  insert into pages${i} (company_id, cover_id, title) select 1, id, title from covers${i};
  insert into groups${i} (company_id, kind_id, title) select nullif(n, 0), id, title from kinds${i}, generate_series(0, 1) n;
  insert into items${i} (company_id, group_id, title) select 1, id, title from groups${i};
  insert into pieces${i} (company_id, kind_id, title) select 1, id, title from kinds${i};
  insert into labels${i} (kind_id, title) select id, title from kinds${i};`,
);

const app = shopOf(`${ofNoCompany.join('\n')}
  alter table kinds1 add deleted_at date; update kinds1 set deleted_at = now() where id > 2; alter table covers1 add deleted_at date; update covers1 set deleted_at = now() where id > 2;
  create table jobs ($own, title text not null, is_deleted boolean, deleted_at timestamptz, created_at timestamptz not null default now());
  create index jobs_kept on jobs (company_id, created_at, id) where deleted_at is null;
  create table orders ($own, title text not null, deleted_at timestamptz not null default 'infinity');
  create table codes ($own, title text not null, del_flag smallint not null default 0, archived_at timestamptz, recycled boolean);
  create table folders ($own, title text not null, discarded_at timestamp);
  create table documents (id bigint generated always as identity primary key, folder_id bigint not null references folders, title text not null,
    deleted_at timestamptz, created_at timestamptz not null default now());
  create table recipients (id bigint generated always as identity primary key, document_id bigint not null references documents, title text not null,
    created_at timestamptz not null default now());
  create table places ($own, order_id bigint not null references orders on delete cascade, title text not null, created_at timestamptz not null default now());
  create table visits ($own, order_id bigint not null references orders, title text not null, created_at timestamptz not null default now());
  alter table staff add deleted_at timestamptz;
  create type state as enum ('live', 'deleted');
  create table projects ($own, title text not null, deleted_at timestamptz, created_at timestamptz not null default now());
  create table tasks ($own, project_id bigint references projects on delete cascade, parent_id bigint references tasks on delete cascade,
    created_by bigint references staff on delete cascade, title text not null, status state not null default 'live', created_at timestamptz not null default now());
  create table task_lines (id bigint generated always as identity primary key, task_id bigint not null references tasks on delete cascade, title text not null,
    created_at timestamptz not null default now());
  create table line_notes ($own, line_id bigint not null references task_lines on delete cascade, title text not null, created_at timestamptz not null default now());
  create table marks ($own, title text not null, lifecycle_state text, record_status char(1), row_status text check (row_status in ('A', 'D')), deleted_yn char(1),
    gmt_deleted timestamp, tombstone boolean, deleted_by bigint, dr smallint not null default 0, archive_status text, is_visible boolean, valid_to date, kind text, i integer, value text, life_cycle smallint,
    created_at timestamptz not null default now());
  create table stays (company_id bigint not null references companies, room text not null, "from.Day" date not null, title text not null, deleted_at timestamptz,
    primary key (company_id, room, "from.Day"));
  create table job_lines (job_id bigint not null references jobs, no integer, title text not null, removed boolean not null default false, trashed_at date, primary key (job_id, no));
  insert into jobs (company_id, title, is_deleted, deleted_at) values (1, 'kept', false, null), (1, 'kept', null, null),
    (1, 'gone', true, null), (1, 'gone', false, now()), (1, 'gone', true, now()), (2, 'gone', null, null);
  insert into orders (company_id, title, deleted_at) values (1, 'kept', 'infinity'), (1, 'gone', '2026-01-01'), (1, 'kept', '2999-01-01');
  insert into codes (company_id, title, del_flag, archived_at) values (1, 'kept', 0, null), (1, 'kept', 0, now()), (1, 'gone', 1, null);
  insert into codes (company_id, title, recycled) values (1, 'gone', true);
  insert into folders (company_id, title, discarded_at) values (1, 'kept', null), (1, 'gone', now());
  insert into documents (folder_id, title, deleted_at) values (1, 'kept', null), (1, 'gone', now()), (2, 'gone', null);
  insert into recipients (document_id, title) values (1, 'kept'), (2, 'gone'), (3, 'gone');
  insert into places (company_id, order_id, title) values (1, 1, 'kept'), (1, 2, 'gone');
  insert into visits (company_id, order_id, title) values (1, 1, 'kept'), (1, 2, 'kept');
  insert into staff values (3, 1, 'left@shop.example', false, now());
  insert into projects (company_id, title, deleted_at) values (1, 'kept', null), (1, 'gone', now());
  insert into tasks (company_id, project_id, created_by, title) values (1, 1, 3, 'kept'), (1, 2, 1, 'gone'), (1, null, 3, 'kept');
  insert into tasks (company_id, parent_id, title) values (1, 1, 'kept'), (1, 2, 'gone'), (1, 5, 'gone');
  insert into task_lines (task_id, title) select id, title from tasks order by id;
  insert into line_notes (company_id, line_id, title) select 1, id, title from task_lines;
  insert into marks (company_id, title, lifecycle_state, record_status, deleted_yn, archive_status, is_visible, kind, valid_to, life_cycle)
    select 1, 'kept', 'live', 'A', 'N', 'live', true, 'normal', date '2030-01-01' + day, day % 2 from generate_series(1, 20) day;
  insert into marks (company_id, title, lifecycle_state, record_status, deleted_yn, gmt_deleted, tombstone) values (1, 'gone', 'deleted', null, null, null, null),
    (1, 'gone', null, 'D', null, null, null), (1, 'gone', null, null, 'Y', null, null), (1, 'gone', null, null, null, now(), null), (1, 'gone', null, null, null, null, true);
  insert into marks (company_id, title, deleted_by, dr, archive_status, is_visible, valid_to, kind) values (1, 'kept', 1, 0, null, null, null, null),
    (1, 'kept', null, 1, null, null, null, null), (1, 'kept', null, 0, 'archived', null, null, null), (1, 'kept', null, 0, null, false, '2020-01-01', 'void');
  insert into stays select 1, room, '2026-01-01', case room when 'a''t.x' then 'gone' else 'kept' end, case room when 'a''t.x' then now() end from unnest(array['a''t.x', 'b']) room;
  insert into job_lines values (1, 1, 'kept', false, null), (1, 2, 'gone', true, null), (1, 3, 'gone', false, '2026-01-01')`);

async function compareLedgers(
  t: ExecutionContext,
  { folder, query, run }: Adopted,
  asks: readonly Ask[],
): Promise<void> {
  for (const { resource, table, rows, shown, hidden } of JSON.parse(
    readFileSync(join(folder, 'ledger.json'), 'utf8'),
  ) as ResourceLedger[]) {
    const lists = await Promise.all(asks.map((ask) => ask<{ data: unknown[] }>(`/${resource}`)));
    const [all] = (await query(`select count(*)::int from ${table}`)).rows;
    const seen = lists.reduce((sum, { body }) => sum + body.data.length, 0);
    t.deepEqual(
      [rows, shown, hidden.reduce((sum, cause) => sum + cause.rows, shown)],
      [all?.count, seen, rows],
      resource,
    );
  }
  for (const name of ['kinds0', 'visits']) {
    const [view] = (await query(`select rtrim(pg_get_viewdef('records.${name}'), ';') as sql`)).rows;
    await query(`create or replace view records.${name} as select v.* from (${view?.sql}) v where id <> 1`);
  }
  await query(
    `create or replace view records.projects as select company_id as workspace_id, id, title, created_at, xmin as row_xid from shop.projects`,
  );
  const { rows } = JSON.parse((await run('check', '--rows', '--json')).stdout) as { rows: ResourceLedger[] };
  const ledgerOf = (name: string) => rows.find(({ resource }) => resource === name);
  t.like(ledgerOf('projects'), {
    rows: 2,
    shown: 2,
    hidden: [],
    shownAlthough: [{ by: 'deleted_at', rows: 1, ids: ['2'] }],
  });
  t.like(ledgerOf('stays'), { rows: 2, shown: 1, hidden: [{ by: 'deleted_at', rows: 1, ids: ["1767225600-a't.x"] }] });
  for (const name of ['groups0', 'labels0', 'pieces0'])
    t.like(ledgerOf(name), { shownAlthough: [{ by: 'the record in shop.kinds0', rows: 1 }] }, name);
  const by = 'another condition of the view';
  t.like(ledgerOf('visits'), { rows: 2, shown: 1, hidden: [{ by, rows: 1, ids: ['1'] }] });
}

test('no row that counts as deleted is shown, by whichever mark of its own or of a record above it', async (t) => {
  const draft = await adoptedShop(t, app, {
    findings: 'covers0 covers1 documents labels0 labels1 recipients task-lines'
      .split(' ')
      .map((name) => `warning sorted_lists ${name}`),
  });
  const names = [...draft.resources.keys()];
  t.is(
    names.join(' '),
    'books0 books1 codes covers0 covers1 documents folders groups0 groups1 items0 items1 jobs kinds0 kinds1 labels0 labels1 line-notes marks orders pages0 pages1 pieces0 pieces1 places projects recipients stays task-lines tasks visits',
  );
  t.like(draft.resources.get('tasks')?.fields.status, { values: ['live', 'deleted'] });
  t.like(draft.resources.get('marks')?.fields.rowStatus, { values: ['A', 'D'] });
  const [api, scopes] = [await apiOf(t, draft), names.map((name) => `read:${name}`).join()];
  const ask = await api(scopes);
  t.false(/ \((deleted_at|status|title): .*Rows are shown whatever|by created_by/.test(draft.output));
  for (const name of names) {
    const { body } = await ask<{ data: { title: string }[] }>(`/${name}`);
    t.true(body.data.length > 0 && body.data.every(({ title }) => title === 'kept'), `${name} ${JSON.stringify(body)}`);
  }
  await compareLedgers(t, draft, [await api(scopes), await api(scopes, 'South')]); // within 60 requests a minute of each token
  t.like((await ask('/jobs/1')).body, { lines: [{ no: 1, title: 'kept' }] });
  for (const gone of ['recipients', 'places']) t.is((await ask(`/${gone}/2`)).status, 404);
  for (const point of [
    'tasks: 6 rows, 3 shown; hidden: 2 by the record in shop.tasks, 1 by the record in shop.projects\n',
    'labels0: 2 rows, 1 shown; hidden: 1 by no company_id in shop.kinds0\n',
    'labels1: 4 rows, 1 shown; hidden: 2 by no company_id in shop.kinds1, 1 by the record in shop.kinds1\n',
    'covers0: 2 rows, 1 shown; hidden: 1 by id leads to no row of shop.books0\n',
    'pages1: 4 rows, 2 shown; hidden: 2 by the record in shop.covers1\n',
    'items1: 8 rows, 4 shown; hidden: 4 by the record in shop.groups1\n',
    'tasks.sql: shop.tasks (3 of 6: 2 by the record in shop.tasks, such as 5, 6; 1 by ',
    'visits.sql: rows are shown although a record that they refer to is not: 1 by order_id (shop.orders), such as 2. ',
    'jobs.sql: jobs (is_deleted, deleted_at): Rows with these marks count as deleted and are not shown.',
    'codes.sql: codes (archived_at: set in 1 of 2 rows): Rows are shown whatever these columns say: ',
    'recipients.sql: recipients (shop.documents): Rows whose record in these tables counts as deleted are not shown.',
    'tasks.sql: tasks (status): Rows with these marks count as deleted and are not shown.',
    'tasks.sql: tasks (shop.tasks, shop.projects): Rows whose record in these tables counts as deleted are not shown.',
    'marks.sql: marks (lifecycle_state, record_status, row_status, deleted_yn, gmt_deleted, tombstone): Rows with these marks count as deleted and are not shown.',
    'marks.sql: marks (deleted_by: NULL 23, 1 1): Rows are shown whatever these columns say: ',
    'marks.sql: marks (dr: 0 23, 1 1): Rows are shown whatever these columns say: ',
    'marks.sql: marks (archive_status: live 20, NULL 3, archived 1): Rows are shown whatever these columns say: ',
    'marks.sql: marks (is_visible: true 20, NULL 3, false 1): Rows are shown whatever these columns say: ',
    'marks.sql: marks (valid_to: set in 21 of 24 rows): Rows are shown whatever these columns say: ',
    'marks.sql: marks (life_cycle: 0 10, 1 10, NULL 4): Numbers tell these states, and rows with each are shown: ',
    'marks.sql: marks (kind: normal 20, NULL 3, void 1): Rows are shown whatever these columns say: ',
    'places.sql: places (shop.orders): Rows whose record in these tables counts as deleted are not shown.',
  ])
    t.true(draft.output.includes(point), `${point} in ${draft.output}`);
  const placesIn = (text: string) => /count as deleted and are not shown\. In (.*)/.exec(text)?.[1];
  t.regex(placesIn(draft.output) ?? '', /^marks \(.*, and \d+ others, which the file lists\./);
  t.regex(placesIn(readFileSync(join(draft.folder, 'sql/views/tokens.sql'), 'utf8')) ?? '', / tasks \(status\)/);
});

const barred = shopOf(`
  alter table companies add deleted_at timestamptz; alter table staff add removed_at timestamptz, add is_active boolean not null default true;
  insert into companies values (3, 'Gone', now());
  insert into staff values (3, 3, 'gone@shop.example', true, null), (4, 1, 'left@shop.example', true, now()), (5, 1, 'idle@shop.example', true, null);
  update staff set is_active = false where id = 5;
  create table jobs ($own, title text); insert into jobs (company_id, title) values (1, 'a'), (2, 'b')`);

test('rows are counted for views whose workspace nothing but the views tells, by a name of several words', async (t) => {
  const settings = await newDatabase(t, 'orgs', (client) =>
    client.query(`create schema shop; create table shop.notes (c_refid bigint primary key, "org (select id" text, deleted_at timestamptz);
      create table shop.replies (id bigint primary key, note_id bigint not null references shop.notes, created_at timestamptz not null default now());
      insert into shop.notes values (1, 'a', null), (2, 'b', now()), (3, null, null);
      insert into shop.replies values (1, 1), (2, 2), (3, 3)`),
  );
  const { run, query } = await adopted(t, settings, '--schema', 'shop', '--tenant', 'org (select id');
  const counted = async (): Promise<unknown> => JSON.parse((await run('check', '--rows', '--json')).stdout).rows;
  const hiddenBy = (...causes: string[]) =>
    causes.map((by, i) => ({ by, rows: 1, ids: [String(causes.length + 1 - i)] }));
  const ofReplies = ['no org (select id in shop.notes', 'the record in shop.notes'];
  const ofNotes = { resource: 'notes', rows: 3, shown: 1, shownAlthough: [] };
  t.like(await counted(), [
    { ...ofNotes, hidden: hiddenBy('no org (select id', 'deleted_at') },
    { ...ofNotes, resource: 'replies', hidden: hiddenBy(...ofReplies) },
  ]);
  await query(
    `create or replace view records.notes as select 'main' as workspace_id, c_refid as id, xmin as row_xid from shop.notes`,
  );
  t.deepEqual(await counted(), []); // nothing can draft it, and the other items of check go on
});

test('a workspace or a user that the app has deleted gets no token, and a token that it had is refused', async (t) => {
  const draft = await adoptedShop(t, barred);
  for (const [workspace, owner] of Object.entries({ Gone: 'gone', 3: 'gone', North: 'left', 1: 'idle' })) {
    const who = ['--workspace', workspace, '--owner', `${owner}@shop.example`];
    t.is((await draft.run('tokens', 'create', ...who, '--name', 'a', '--scopes', 'read:jobs')).code, 1, owner);
  }
  const api = await apiOf(t, { ...draft, settings: { ...draft.settings, tokenCacheMs: 1 } });
  const [north, south] = [await api('read:jobs'), await api('read:jobs', 'South')];
  const status = async () => [(await north('/jobs')).status, (await south('/jobs')).status];
  t.deepEqual(await status(), [200, 200]);
  const change = async (sql: string) => {
    await draft.query(sql);
    await t.context.database.caughtUp();
  };
  await change(`update shop.companies set deleted_at = now() where id = 2`);
  t.deepEqual(await status(), [200, 401]);
  t.regex((await draft.run('tokens', 'list')).stdout, / without owner .* 2 +test /);
  await change(`update shop.companies set deleted_at = null; update shop.staff set removed_at = now() where id = 1`);
  t.deepEqual(await status(), [401, 200]);
  await change(
    `update shop.staff set removed_at = null, is_active = false where id = 1; revoke select (id) on gateway.workspaces from gateway_owner`,
  );
  t.deepEqual((await north('/jobs')).status, 503);
  const { stdout } = await draft.run('check');
  t.regex(stdout, /REFUSED {2}token look up: gateway_owner cannot read gateway\.workspaces\.id: grant select \(id\)/);
});
