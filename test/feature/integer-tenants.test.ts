import { mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { PassThrough } from 'node:stream';
import pg from 'pg';
import { urlAs } from '../../src/demo/cluster/passwords.js';
import { startGateway } from '../../src/gateway.js';
import { type CommandResult, commandLine } from '../support/command-line.js';
import { eventually, gatewayTest, shared } from '../support/workspace.js';

// An app with integer tenants and without a table of tokens: its views, its definition, and no line of TypeScript.

const test = gatewayTest();

const schema = `
  create schema shop;
  create table shop.tenants (id integer primary key, title text not null);
  create table shop.staff (id integer primary key, tenant integer not null, mail text not null, boss boolean not null);
  create table shop.jobs (id bigint generated always as identity primary key, tenant integer not null, title text not null,
    made timestamptz not null default now());
  create index on shop.jobs (tenant, made, id);
  insert into shop.tenants values (1, 'North'), (2, 'South');
  insert into shop.staff values (7, 1, 'ann@north.example', true), (8, 1, 'bob@north.example', false), (9, 2, 'cas@south.example', true);
  insert into shop.jobs (tenant, title, made)
    select 1 + n % 2, 'job ' || n, '2026-01-01'::timestamptz + n * interval '1 minute' from generate_series(1, 5000) n;
  analyze shop.jobs;`;

const views = {
  'jobs.sql': `
    grant usage on schema shop to gateway_owner;
    grant select on shop.jobs to gateway_owner;
    create view gateway.jobs as select tenant as workspace_id, id, title, made from shop.jobs
      where tenant = gateway.workspace()::integer
        and coalesce(tenant = any (array[(select gateway.workspace()::integer)]), false);
    alter view gateway.jobs owner to gateway_owner;
    grant select on gateway.jobs to gateway_reader;`,
  'key_ids.sql': `
    create function gateway.key_ids() returns table (key_id text, seen bigint) language sql as 'select null, 0 where false';
    revoke all on function gateway.key_ids() from public;
    grant execute on function gateway.key_ids() to gateway_reader;`,
  'tokens.sql': `
    create view gateway.api_tokens as select * from gateway.tokens;
    grant select on gateway.api_tokens to gateway_owner;
    create view gateway.workspaces as select id, title as name from shop.tenants;
    grant select (id) on gateway.workspaces to gateway_owner;
    create view gateway.token_owners as select tenant as workspace_id, id, mail as email from shop.staff where boss;`,
};

const jobs = {
  name: 'jobs',
  record: 'job',
  description: 'Jobs.',
  view: 'gateway.jobs',
  order: ['made', 'id'],
  fields: {
    id: { column: 'id', type: 'bigint', description: 'Number.' },
    title: { column: 'title', type: 'text', description: 'Title.' },
    made: { column: 'made', type: 'timestamp', description: 'Moment.' },
  },
};

test('tokens, the tenant wall, check and plans work with integer tenants and the table of tokens of the gateway', async (t) => {
  const { primary, name: ours, settings: base } = t.context.database;
  const name = `${ours}_shop`;
  const folders = {
    views: mkdtempSync(join(tmpdir(), 'views-')),
    definitions: mkdtempSync(join(tmpdir(), 'definitions-')),
  };
  for (const [file, sql] of Object.entries(views)) writeFileSync(join(folders.views, file), sql);
  writeFileSync(join(folders.definitions, 'jobs.json'), JSON.stringify(jobs));
  await primary.query(`create database ${name}`);
  const adminUrl = urlAs(shared.primary, 'postgres', name);
  const admin = new pg.Client(adminUrl);
  await admin.connect();
  const replicaUrls = urlAs(shared.replicas[0] as string, 'gateway_reader', name);
  const reader = new pg.Client(replicaUrls);
  const settings = { adminUrl, replicaUrls, dataKeys: base.dataKeys, resourcesDir: folders.definitions };
  const run = (...args: string[]): Promise<CommandResult> => commandLine(args, settings);
  const tokens = (...args: string[]): Promise<CommandResult> => run('tokens', ...args);
  const create = (workspace: string, owner: string): Promise<CommandResult> =>
    tokens('create', '--workspace', workspace, '--owner', owner, '--name', 'n', '--scopes', 'read:jobs');
  let gateway: Awaited<ReturnType<typeof startGateway>> | undefined;
  try {
    await admin.query(schema);
    const migrated = await run('migrate', '--views', folders.views);
    t.is(migrated.code, 0, migrated.stderr);
    const north = await create('North', 'ann@north.example');
    t.is(north.code, 0, north.stderr);
    const south = await create('2', '9');
    t.is(south.code, 0, south.stderr);
    for (const [workspace, owner] of [
      ['North', 'bob@north.example'],
      ['1', '9'],
      ['3', '7'],
    ] as const)
      t.is((await create(workspace, owner)).code, 1, `${workspace} ${owner}`);
    await eventually(t, 'check', async () => (await run('check')).code === 0, 30_000);
    t.is((await run('check')).stdout.includes('All is well.'), true);

    gateway = await startGateway({ ...base, ...settings, primaryUrls: '' }, new PassThrough().resume());
    const { url } = gateway;
    const get = (token: string, path: string): Promise<Response> =>
      fetch(`${url}/api/v1${path}`, { headers: { authorization: `Bearer ${token.trim()}` } });
    const titles = async (token: string): Promise<string[]> => {
      const page = (await (await get(token, '/jobs?perPage=10000')).json()) as { data: { title: string }[] };
      return page.data.map(({ title }) => title);
    };
    const numbered = (first: number): string[] => Array.from({ length: 2500 }, (_, n) => `job ${first + 2 * n}`);
    t.deepEqual(await titles(north.stdout), numbered(2));
    t.deepEqual(await titles(south.stdout), numbered(1));
    t.is((await get(north.stdout, '/jobs/2')).status, 200);
    t.is((await get(south.stdout, '/jobs/2')).status, 404);

    const listed = JSON.parse((await tokens('list', '--workspace', '2', '--json')).stdout) as {
      id: string;
      workspaceName: string;
    }[];
    t.deepEqual(
      listed.map(({ workspaceName }) => workspaceName),
      ['South'],
    );
    const rotated = await tokens('rotate', listed[0]?.id as string);
    t.is(rotated.code, 0, rotated.stderr);
    await eventually(t, 'the rotation', async () => (await get(rotated.stdout, '/jobs/1')).status === 200);
    await eventually(t, 'the revocation', async () => (await get(south.stdout, '/jobs/1')).status === 401);

    await reader.connect();
    await reader.query(`set gateway.workspace_id = '1'`);
    const { rows } = await reader.query<Record<string, string>>(
      `explain select id from gateway.jobs where made > '2026-01-02' order by made, id limit 10`,
    );
    t.regex(rows.map((row) => Object.values(row)[0]).join('\n'), /Index Cond: \(.*tenant = .*gateway\.workspace_id/);
  } finally {
    await gateway?.stop();
    await reader.end();
    await admin.end();
    await primary.query(`drop database ${name} with (force)`);
    for (const folder of Object.values(folders)) rmSync(folder, { recursive: true });
  }
});
