import { adoptedShop, apiOf, shopOf } from '../support/adopt/adopted.js';
import { gatewayTest } from '../support/workspace.js';

// Shapes of tables that other apps have: domains, columns with the names of aliases.

const test = gatewayTest();

test.serial('a domain is shown and written as the type below all domains, and keeps their NOT NULL', async (t) => {
  const app = shopOf(`
    create domain label as varchar(5); create domain required_label as label not null; create domain title as required_label;
    create domain moment as timestamptz; create domain app_moment as moment default now();
    create domain amount as integer; create domain places as amount;
    create type state as enum ('open', 'done'); create domain first_state as state; create domain job_state as first_state;
    create domain labels as text[]; create domain many_labels as labels;
    create table jobs ($own, title title, subtitle label, places places, state job_state, labels many_labels, created_at app_moment not null);
    insert into jobs (company_id, title, places, state, labels) values (1, 'first', 3, 'open', '{a,b}')`);
  const draft = await adoptedShop(t, app, { args: ['--write', 'jobs'] });
  const types = Object.entries(draft.resources.get('jobs')?.fields ?? {}).map(([name, field]) => [
    name,
    'type' in field ? field.type : 'group',
  ]);
  t.deepEqual(types, [
    ...[
      ['id', 'bigint'],
      ['title', 'text'],
      ['subtitle', 'text'],
      ['places', 'integer'],
      ['state', 'enum'],
    ],
    ...[
      ['labels', 'json'],
      ['createdAt', 'timestamp'],
      ['rowVersion', 'bigint'],
    ],
  ]);
  const ask = await (await apiOf(t, draft))('read:jobs,write:jobs');
  const { body } = await ask<{ data: object[] }>('/jobs');
  t.like(body.data[0], { title: 'first', places: 3, state: 'open', labels: ['a', 'b'] });
  for (const [title, status] of [
    [null, 400],
    ['longer', 400],
    ['short', 201],
  ] as const)
    t.is((await ask('/jobs', { body: { title } })).status, status, String(title));
  t.is((await ask('/jobs', { body: { subtitle: 'a' } })).status, 400);
});

test.serial('columns may have the names of the aliases that a draft uses', async (t) => {
  const app = shopOf(`
    create table jobs ($own, t text, p text, w1 text, s text, v text, created_at timestamptz not null default now());
    create table job_lines ($own, job_id bigint not null references jobs, p integer, t text, w1 text);
    create table job_times (id bigint primary key, job_id bigint not null references jobs, t text, p text, w1 text, created_at timestamptz not null default now());
    insert into jobs (company_id, t, p, w1, s, v) values (1, 'a', 'b', 'c', 'd', 'e');
    insert into job_lines (company_id, job_id, p, t, w1) values (1, 1, 7, 'f', 'g');
    insert into job_times values (1, 1, 'h', 'i', 'j')`);
  const draft = await adoptedShop(t, app, { findings: ['warning sorted_lists job-times'] });
  const ask = await (await apiOf(t, draft))('read:jobs,read:job-times');
  const { body } = await ask('/jobs/1');
  t.like(body, { t: 'a', p: 'b', w1: 'c', s: 'd', v: 'e' });
  t.like((body.lines as object[])[0], { p: 7, t: 'f', w1: 'g' });
  t.like((await ask('/job-times/1')).body, { t: 'h', p: 'i', w1: 'j' });
});
