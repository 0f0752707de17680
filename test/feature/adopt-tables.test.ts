import { readdirSync, readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { loadResources } from '../../src/definition/load.js';
import type { Settings } from '../../src/settings.js';
import { adopted, commandsIn, emptyFolder, newDatabase, wrong } from '../support/adopted.js';
import { commandLine } from '../support/command-line.js';
import { gatewayTest } from '../support/workspace.js';

// An app with more tables than a gateway has resources.

const test = gatewayTest();

function draftIn(folder: string, settings: Partial<Settings>) {
  const commands = commandsIn(folder, settings);
  return { ...commands, resources: new Map(loadResources(commands.resourcesDir).map((each) => [each.name, each])) };
}

const app = `
  create schema shop; set search_path = shop;
  create table companies (id bigint generated always as identity primary key, name text not null);
  create table staff (id bigint generated always as identity primary key, company_id bigint not null references companies, email text not null, is_owner boolean not null);
  create table jobs (id bigint generated always as identity primary key, company_id bigint not null references companies, title text not null,
    created_at timestamptz not null default now());
  create table job_lines (id bigint generated always as identity primary key, company_id bigint not null references companies,
    job_id bigint not null references jobs, label text);
  create table api_keys (id bigint generated always as identity primary key, company_id bigint not null references companies, value text);
  do $$ begin for i in 1..100 loop
    execute format('create table things_%s (id bigint generated always as identity primary key, company_id bigint not null references companies, job_id bigint references jobs, created_at timestamptz not null default now())', i);
  end loop; end $$;
  insert into companies (name) values ('North'), ('South');
  insert into jobs (company_id, title) select id, name from companies;
  insert into job_lines (company_id, job_id, label) select company_id, id, 'part' from jobs;
  insert into things_7 (company_id, job_id) select company_id, id from jobs;`;

test.serial('an app with more than 100 tables is adopted by the tables that --tables names', async (t) => {
  const settings = await newDatabase(t, 'tables', (client) => client.query(app));
  const folder = emptyFolder(t);
  const refusals: [string[], number, RegExp][] = [
    [[], 1, /^The schema "shop" has 101 tables of workspaces; a gateway has at most 100 resources\. Name .*--tables /],
    [
      ['--tables', 'jobs,companies'],
      1,
      /^--tables names what cannot be a resource: companies \(.*list of workspaces\)\./,
    ],
    [['--tables', 'api_keys,job'], 1, /api_keys \(its name speaks of secrets\), job \("shop" has no such table\)\./],
    [['--tables', 'things_7', '--write', 'jobs'], 1, /^--write names no table that becomes a resource: jobs\./],
    [['--tables', ','], 2, /^Give --tables the names of tables/],
  ];
  for (const [args, code, message] of refusals) {
    const result = await commandLine(['adopt', '--schema', 'shop', ...args, '--out', folder], settings);
    t.is(result.code, code, args.join(' '));
    t.regex(result.stderr, message);
  }
  t.deepEqual(readdirSync(folder), []);

  const draft = await adopted(t, settings, '--schema', 'shop', '--tables', 'jobs,things_7', '--write', 'things_7');
  t.deepEqual([...draft.resources.keys()], ['jobs', 'things-7']);
  t.is(draft.resources.get('things-7')?.filters.jobId?.kind, 'equals');
  t.like(draft.resources.get('jobs')?.fields, { lines: { column: 'lines' } });
  t.deepEqual(await wrong(t, draft), []);
});

test.serial('--tables adds to the drafts in a folder, and leaves its files as they are', async (t) => {
  const settings = await newDatabase(t, 'adds', (client) => client.query(app));
  const folder = emptyFolder(t);
  const add = (tables: string) =>
    commandLine(['adopt', '--schema', 'shop', '--tables', tables, '--out', folder], settings);
  t.is((await add('jobs')).code, 0);
  const jobs = join(folder, 'config/resources/jobs.json');
  writeFileSync(jobs, readFileSync(jobs, 'utf8').replace('"The jobs of the workspace."', '"Mine."'));
  const added = await add('things_7');
  t.is(added.code, 0, added.stderr);
  t.regex(added.stdout, /wrote sql\/views\/things_7\.sql/);
  t.notRegex(added.stdout, /wrote sql\/views\/(jobs|tokens)\.sql/);
  const { resources, run } = draftIn(folder, settings);
  t.is(resources.get('jobs')?.description, 'Mine.');
  t.is(resources.get('things-7')?.filters.jobId?.kind, 'equals', 'it refers to a resource that was there');
  t.is((await run('migrate', '--views', join(folder, 'sql/views'))).code, 0);
  const again = await add('things_7');
  t.is(again.code, 1);
  t.regex(again.stderr, /^Nothing was written, because adopt overwrites no file\./);
});

test.serial('a part that --tables names is a resource of its own', async (t) => {
  const settings = await newDatabase(t, 'part', (client) => client.query(app));
  const { resources } = await adopted(t, settings, '--schema', 'shop', '--tables', 'jobs,job_lines');
  t.deepEqual([...resources.keys()], ['job-lines', 'jobs']);
  t.false('lines' in (resources.get('jobs')?.fields ?? {}));
  t.is(resources.get('job-lines')?.filters.jobId?.kind, 'equals');
});

test.serial('tables and indexes whose names are the same when cut are told apart', async (t) => {
  const long = 'subscription_fixed_charge_units_override';
  const settings = await newDatabase(t, 'names', (client) =>
    client.query(`create schema shop; set search_path = shop;
      create table companies (id bigint generated always as identity primary key, name text not null);
      create table staff (id bigint generated always as identity primary key, company_id bigint not null references companies, email text not null);
      ${[`${long}_plans`, `${long}_prices`, 'jobs', '"Jobs"', 'job', 'job_page']
        .map(
          (
            name,
          ) => `create table ${name} (id bigint generated always as identity primary key, company_id bigint not null references companies,
            replaced_by_id bigint references ${name}, replaced_by_other_id bigint references ${name}, created_at timestamptz not null default now());
            insert into ${name} (company_id) select 1 where false;`,
        )
        .join('\n')}
      insert into companies (name) values ('North'), ('South')`),
  );
  const draft = await adopted(t, settings, '--schema', 'shop', '--write', 'jobs,Jobs');
  const cut = 'subscription-fixed-charge-units-over';
  t.deepEqual([...draft.resources.keys()].sort(), ['job', 'job-page', 'jobs', 'jobs-2', cut, `${cut}-2`].sort());
  t.is(new Set([...draft.resources.values()].map(({ view }) => view)).size, 6);
  for (const name of ['jobs', 'jobs-2'])
    t.like(draft.resources.get(name)?.fields.replacedById, {
      write: { references: draft.resources.get(name)?.view.replace('gateway.', 'records.') },
    });
  t.deepEqual(await wrong(t, draft), []);
});
