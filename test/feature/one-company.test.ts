import { mkdirSync, writeFileSync } from 'node:fs';
import { dirname, join } from 'node:path';
import { projectText } from '../../src/paths.js';
import { adopted, authorizationOf, commandsIn, emptyFolder, newDatabase, served, wrong } from '../support/adopted.js';
import { gatewayTest } from '../support/workspace.js';

// The files of docs/adapting.md for an app without workspaces, as an operator copies them, and the app of docs/tutorial.md.

const test = gatewayTest();

const [, section = ''] = projectText('docs/adapting.md').split(/^## An app of one company$/m);
const [recipe = ''] = section.split(/^## /m);
const [, definition = ''] = /```json\n([^`]+)```/.exec(recipe) ?? [];
const views = recipe.matchAll(/```sql\n-- (\S+): ([^`]+)```/g);
const files = new Map([...views].map(([, name, sql]) => [name as string, `-- ${sql}`]));
files.set('config/resources/jobs.json', definition);

const shop = `
  create schema shop;
  create table shop.jobs (id bigint generated always as identity primary key, title text not null, state text not null,
    created_at timestamptz not null default now());
  create index on shop.jobs (created_at, id);
  create index on shop.jobs (state, created_at, id);
  create table shop.staff (id text primary key, email text not null, is_admin boolean not null);
  insert into shop.staff values ('1', 'boss@shop.example', true);
  insert into shop.jobs (title, state) select 'job ' || i, case i % 3 when 0 then 'done' else 'open' end from generate_series(1, 3000) i;
  analyze shop.jobs`;

test.serial('an app without workspaces gets one by its views, as docs/adapting.md says', async (t) => {
  const settings = await newDatabase(t, 'company', (client) => client.query(shop));
  const folder = emptyFolder(t);
  const { run, resourcesDir } = commandsIn(folder, settings);
  const names = ['jobs', 'key_ids', 'tokens'].map((name) => `sql/views/${name}.sql`);
  t.deepEqual([...files.keys()].sort(), ['config/resources/jobs.json', ...names]);
  for (const [name, text] of files) {
    mkdirSync(dirname(join(folder, name)), { recursive: true });
    writeFileSync(join(folder, name), text);
  }
  const { code, stderr } = await run('migrate', '--views', join(folder, 'sql/views'));
  t.is(code, 0, stderr);
  t.deepEqual(await wrong(t, { run }), []);

  const url = await served(t, settings, resourcesDir);
  const token = { workspace: 'Our company', owner: 'boss@shop.example', scopes: 'read:jobs' };
  const headers = { authorization: await authorizationOf(t, { run }, token) };
  const answer = await fetch(`${url}/api/v1/jobs?state=done&perPage=2`, { headers });
  const { data } = (await answer.json()) as { data: { title: string }[] };
  t.deepEqual(
    data.map(({ title }) => title),
    ['job 3', 'job 6'],
  );
});

test.serial(
  'the table of docs/tutorial.md becomes an API without a decision, and its tenants see their own orders',
  async (t) => {
    const [, sql = ''] = /```sql\n(create schema shop;[^`]+)```/.exec(projectText('docs/tutorial.md')) ?? [];
    const settings = await newDatabase(t, 'tutorial', (client) => client.query(sql));
    const app = await adopted(t, settings, '--schema', 'shop');
    t.deepEqual(await wrong(t, app), []);

    const url = await served(t, settings, app.resourcesDir);
    const token = { workspace: 'Bakery', owner: 'ann@bakery.example', scopes: 'read:orders' };
    const headers = { authorization: await authorizationOf(t, app, token) };
    const answer = await fetch(`${url}/api/v1/orders?state=paid&perPage=1&total=true`, { headers });
    const { data, pagination } = (await answer.json()) as { data: unknown; pagination: { total: number } };
    t.deepEqual(
      [data, pagination.total],
      [[{ id: '6', number: 'A6', state: 'paid', total: 1.5, createdAt: '2026-01-01T06:00:00.000Z' }], 833],
    );
  },
);
