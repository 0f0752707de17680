import type { Finding } from '../../src/check/finding.js';
import { asAdmin } from '../../src/db/admin.js';
import { adopted, authorizationOf, newDatabase, served, wrong } from '../support/adopted.js';
import { gatewayTest } from '../support/workspace.js';

// Keys and names that adopt must not take for others: ids that count from one in each workspace, workspaces that others refer to by
// another column than the primary key, and columns that have the same name in small letters.

const test = gatewayTest();

const app = `
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

/** The view of jobs, if it showed each workspace the rows of all as its own. */
const leak = `grant select (number) on shop.companies to gateway_owner; do $$ begin execute (
  select 'create or replace view gateway.jobs as select ' || string_agg(case attname
      when 'workspace_id' then 'gateway.workspace()::bigint as workspace_id' when 'id' then 'id' when 'title' then 'title'
      else 'null::' || format_type(atttypid, null) || ' as ' || attname end, ', ' order by attnum) || ' from shop.jobs where exists (select from shop.companies where number = (select gateway.workspace()::bigint))'
  from pg_attribute where attrelid = 'gateway.jobs'::regclass and attnum > 0);
end $$`;

test.serial('ids may be the same in two workspaces, and the workspace is what others refer to', async (t) => {
  const settings = await newDatabase(t, 'keys', (client) => client.query(app));
  const draft = await adopted(t, settings, '--schema', 'shop');
  t.deepEqual(
    Object.values(draft.resources.get('invoices')?.fields ?? {}).map((field) => 'column' in field && field.column),
    ['id', 'title', 'x_', 'x__2', 'created_at_2', 'lines', 'created_at', 'lines_2'],
  );
  t.deepEqual(Object.keys(draft.resources.get('jobs')?.sync?.parts ?? {}).length, 8);
  t.true(draft.resources.has('jobs-part-9'));
  const findings = await wrong(t, draft);
  t.deepEqual(
    findings.map(({ level, code, object }) => [level, code, object]),
    [['warning', 'tenant_wall', 'gateway.jobs']],
  );
  t.regex(findings[0]?.detail ?? '', /60 and 60 rows with the same ids; of 20 compared, \d are equal in all else/);

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

  await asAdmin(settings.adminUrl as string, (client) => client.query(leak));
  await t.context.database.caughtUp();
  const { stdout } = await draft.run('check', '--json');
  const refused = (JSON.parse(stdout) as { findings: Finding[] }).findings.filter(({ level }) => level === 'refused');
  t.true(refused.some(({ code, detail }) => code === 'tenant_wall' && detail === 'two workspaces see the same rows.'));
});
