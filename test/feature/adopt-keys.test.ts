import { writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { adoptedShop, apiOf, emptyFolder, type Page, served, shopOf, tokenOf, walk } from '../support/adopt/adopted.js';
import { duckdbCopy, runPull } from '../support/pull/copy.js';
import { gatewayTest } from '../support/workspace.js';

// Keys of several columns, join tables, tables without a key, and one row for each workspace.

const test = gatewayTest().serial;

const app = shopOf(`
  create type kind as enum ('a', 'b');
  create table jobs ($own, title text not null, created_at timestamptz not null default now());
  create table tags ($own, label text not null);
  create table job_tags (job_id bigint not null references jobs, tag_id bigint not null references tags, primary key (job_id, tag_id));
  create table job_settings (job_id bigint primary key references jobs, label text);
  create table job_lines (job_id bigint not null references jobs, no integer not null, label text, primary key (job_id, no));
  create table job_places (job_id bigint not null references jobs, label text);
  create table scripts (company_id bigint not null references companies, path text not null, version bigint not null, title text, primary key (company_id, path, version));
  create table script_steps (company_id bigint not null references companies, path text not null, version bigint not null, no smallint not null, label text,
    primary key (company_id, path, version, no), foreign key (company_id, path, version) references scripts);
  create table words (company_id bigint not null references companies, first text not null, second varchar(9) not null, n integer not null, is_new boolean not null,
    unique (company_id, second, n, first, is_new));
  create table rates (id bigint not null, company_id bigint not null references companies, valid_from date not null, at timestamptz not null, primary key (id, valid_from, at));
  create table preferences (company_id bigint primary key references companies, color text);
  create table kinds (company_id bigint not null references companies, kind kind not null, label text, primary key (company_id, kind));
  create table gaps (company_id bigint not null references companies, a integer, b integer not null, unique (company_id, a, b));
  insert into jobs (company_id, title) select c.id, c.name || n from companies c, generate_series(1, 20) n;
  insert into tags (company_id, label) select c.id, c.name || n from companies c, generate_series(1, 3) n;
  insert into job_tags select j.id, t.id from jobs j join tags t using (company_id);
  insert into job_settings select id, 'set' from jobs;
  insert into job_lines select id, n, 'line ' || n from jobs, generate_series(1, 3) n;
  insert into job_places select id, 'place' from jobs;
  insert into scripts select c.id, p, v, p || v from companies c, unnest(array['f/a', 'f-b', 'é/ü', '-']) p, generate_series(1, 4) v;
  insert into script_steps select company_id, path, version, n, 'step ' || n from scripts, generate_series(1, 2) n;
  insert into words select c.id, a, b, n, n > 0 from companies c, unnest(array['a', 'a-', '-', '~', '~-', 'a-b']) a, unnest(array['-b', 'b', '', '~', '-']) b, generate_series(-1, 1) n;
  insert into rates select n, c.id, d, d from companies c, generate_series(1, 3) n, unnest(array['2026-01-31', 'infinity', '-infinity', '0044-03-15 BC']::date[]) d where n % 2 = c.id % 2;
  insert into preferences select id, 'red' from companies;
  insert into kinds select id, 'a' from companies`);

test('a key of several columns makes one id, by which records are listed, found and synced', async (t) => {
  const draft = await adoptedShop(t, app, { findings: ['warning sorted_lists job-tags', 'warning values rates'] });
  const names = ['job-tags', 'jobs', 'preferences', 'rates', 'scripts', 'tags', 'words'];
  t.deepEqual([...draft.resources.keys()], names);
  for (const table of ['gaps', 'job_places', 'kinds'])
    t.regex(draft.output, new RegExp(`shop\\.${table}: no unique index over columns .*: give it a primary key`));
  t.true(draft.resources.get('jobs')?.sync !== undefined);
  t.deepEqual(Object.keys(draft.resources.get('jobs')?.sync?.parts ?? {}), ['lines', 'settings']);
  t.deepEqual(Object.keys(draft.resources.get('scripts')?.sync?.parts ?? {}), ['steps']);
  const ask = await (await apiOf(t, draft))(names.map((name) => `read:${name}`).join());
  const sizes = { 'job-tags': 60, jobs: 20, preferences: 1, rates: 8, scripts: 16, tags: 3, words: 90 };
  for (const [name, size] of Object.entries(sizes)) {
    const ids = (await walk(ask, `/${name}?perPage=19`)).map(({ id }) => id);
    t.deepEqual([ids.length, new Set(ids).size], [size, size], name);
    for (const id of [ids[0], ids.at(-1)] as string[]) {
      const { status, body } = await ask(`/${name}/${encodeURIComponent(id)}`);
      t.deepEqual([status, body.id], [200, id], name);
      const { data } = (await ask<Page>(`/${name}?ids=${encodeURIComponent(id)}`)).body;
      const ids = data.map((each) => each.id);
      t.deepEqual(ids, [id]);
    }
  }
  t.is((await walk(ask, '/job-tags?jobId=7')).length, 3);
  const steps = [1, 2].map((no) => ({ no, label: `step ${no}` }));
  t.deepEqual((await ask('/scripts/1-f%2Fa')).body.steps, steps);
  t.is((await ask('/preferences/2')).status, 404);
});

test('a copy of records with composed ids and parts follows each change', async (t) => {
  const draft = await adoptedShop(t, app, { findings: ['warning sorted_lists job-tags', 'warning values rates'] });
  const folder = emptyFolder(t);
  const base = `${await served(t, draft)}/api/v1`;
  writeFileSync(join(folder, 'token'), await tokenOf(t, draft, 'read:jobs,read:scripts'));
  const copy = duckdbCopy(join(folder, 'copy.duckdb'));
  const pull = async (): Promise<void> => {
    const options = ['--resources', 'jobs,scripts', '--base', base, '--token-file', join(folder, 'token')];
    const { code, stderr } = await runPull([...options, '--to', copy.to]);
    t.deepEqual([code, stderr], [0, '']);
  };
  await pull();
  await draft.query(`set search_path = shop;
    update script_steps set label = 'new' where company_id = 1 and path = '-' and version = 2 and no = 1;
    update job_settings set label = 'new' where job_id = 3;
    delete from script_steps where company_id = 1 and path = 'f/a' and version = 3`);
  await t.context.database.caughtUp();
  await pull();
  const found = await copy.sql(
    `select (select string_agg(job_id, ' ') from jobs_settings where label = 'new') as jobs,
      (select string_agg(script_id || ' ' || "no", ' ') from scripts_steps where label = 'new') as scripts,
      (select count(*) from scripts_steps) as steps`,
  );
  t.deepEqual(found, [{ jobs: '3', scripts: '2-- 1', steps: '30' }]);
});
