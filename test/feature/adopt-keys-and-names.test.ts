import { createCipheriv, randomBytes } from 'node:crypto';
import { readdirSync } from 'node:fs';
import { asAdmin } from '../../src/postgres/admin.js';
import { adopted, authorizationOf, emptyFolder, newDatabase, served, wrong } from '../support/adopted.js';
import { commandLine } from '../support/command-line.js';
import { gatewayTest } from '../support/workspace.js';

// Keys and names that adopt must not take for others: ids that count from one in each workspace, workspaces that others refer to by
// another column than the primary key, columns that have the same name in small letters, and names that SQL could take for its own.

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

test.serial('ids may be the same in two workspaces, and the workspace is what others refer to', async (t) => {
  const settings = await newDatabase(t, 'keys', (client) => client.query(app));
  const draft = await adopted(t, settings, '--schema', 'shop');
  t.deepEqual(
    Object.values(draft.resources.get('invoices')?.fields ?? {}).map((field) => 'column' in field && field.column),
    ['id', 'title', 'x_', 'x__2', 'created_at_2', 'lines', 'created_at', 'lines_2'],
  );
  t.deepEqual(Object.keys(draft.resources.get('jobs')?.sync?.parts ?? {}).length, 8);
  t.true(draft.resources.has('jobs-part-9'));
  t.deepEqual(await wrong(t, draft), []);

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
});

/** Ends a comment, a quoted name, a text or the body of a function, where such a name is not written as one. */
const end = `"" -- */ /* $$ ' % ; create role hostile;`;
const key = randomBytes(32);

function sealed(text: string): string {
  const nonce = randomBytes(12);
  const cipher = createCipheriv('aes-256-gcm', key, nonce);
  return Buffer.concat([nonce, cipher.update(text), cipher.final(), cipher.getAuthTag()]).toString('base64');
}

const hostile = `
  create schema "s${end}"; set search_path = "s${end}";
  create type "kind${end}" as enum ('a\n; create role hostile; --', 'b''"$$');
  create table companies (id bigint primary key, name text not null);
  create table users (id bigint primary key, company_id bigint not null references companies, email text not null);
  create table "jobs${end}" (id bigint generated always as identity primary key, company_id bigint not null references companies,
    "title${end}" text, "t.created  at" timestamp not null default now(), "kind" "kind${end}", "a(b" integer not null default 0,
    "cell $$" text, "dek_$$_version" integer, "n\u00efet ${'x'.repeat(57)}" text, "deleted at" timestamp,
    constraint "c\n${end}" check (id > 0));
  create index "i\n${end}" on "jobs${end}" ("title${end}");
  create function touch() returns trigger language plpgsql as 'begin new."a(b" := 1; return new; end';
  create trigger touch before update on "jobs${end}" for each row execute function touch();
  alter table "jobs${end}" enable row level security;
  create policy "p${end}" on "jobs${end}" as restrictive to public using (true);
  create table "lines${end}" (id bigint primary key, company_id bigint not null references companies,
    "job${end}" bigint not null references "jobs${end}", "label${end}" text);
  insert into companies values (1, 'North'), (2, 'South');
  insert into users select id, id, name || '@shop.example' from companies;
  insert into "jobs${end}" (company_id, "title${end}", kind, "cell $$", "dek_$$_version") values
    ${Array.from({ length: 20 }, (_, i) => `(1, 'first', 'b''"$$', '${sealed(`text ${i}`)}', 7)`).join(', ')};
  insert into "lines${end}" select id, company_id, id, 'line' from "jobs${end}";`;

test.serial('names that hold the ends of comments, names, texts and functions are drafted as names', async (t) => {
  const made = await newDatabase(t, 'hostile', (client) => client.query(hostile));
  const settings = { ...made, dataKeys: JSON.stringify({ 7: key.toString('base64') }) };
  const schema = `s${end}`.replaceAll('""', '"');
  const draft = await adopted(t, settings, '--schema', schema, '--write', `jobs${end}`.replaceAll('""', '"'));
  const [jobs] = [...draft.resources.values()];
  t.is(draft.resources.size, 1);
  t.like(jobs?.codecs, { cell: { keyId: { column: 'dek_version' }, layout: ['nonce12', 'data', 'tag16'] } });
  t.deepEqual(await wrong(t, draft), []);
  const url = await served(t, settings, draft.resourcesDir);
  const scopes = `read:${jobs?.name}`;
  const authorization = await authorizationOf(t, draft, { workspace: 'North', owner: 'North@shop.example', scopes });
  const answer = await fetch(`${url}/api/v1/${jobs?.name}?perPage=1`, { headers: { authorization } });
  const { data } = (await answer.json()) as { data: [Record<string, unknown>] };
  t.is(data[0].cell, 'text 0');
  t.like(Object.values(data[0]).find(Array.isArray), [{ id: 1 }]);
  await asAdmin(settings.adminUrl as string, async (client) => {
    const { rows } = await client.query(`select from pg_roles where rolname = 'hostile'`);
    t.deepEqual(rows, []);
  });
});

test.serial('a name with a control character, a line end or a mark of direction is refused by name', async (t) => {
  const name = 'klant\ncreate role hostile;\n--';
  const changes: readonly (readonly [string, string])[] = [
    [`alter table jobs rename to "${name}"`, `table ${JSON.stringify(name)}`],
    [`alter table jobs rename title to "a\rb"`, String.raw`column "a\rb"`],
    [`alter table jobs rename title to "a\u2028b"`, String.raw`column "a\u2028b"`],
    [`alter table jobs rename title to "a\u202eb"`, String.raw`column "a\u202eb"`],
    [`create policy "p\nq" on jobs as restrictive using (true)`, 'policy '],
    [`create type "t\nx" as (x int); alter table jobs add c "t\nx"`, 'type '],
  ];
  for (const [i, [change, named]] of changes.entries()) {
    const settings = await newDatabase(t, `refused_${i}`, (client) => client.query(`${app}; ${change}`));
    const folder = emptyFolder(t);
    const { code, stderr } = await commandLine(['adopt', '--schema', 'shop', '--out', folder], settings);
    t.is(code, 1);
    t.true(stderr.startsWith('Nothing is drafted from names with control characters, '), stderr);
    t.true(stderr.includes(named), stderr);
    t.is(stderr.split('\n').length, 2);
    t.deepEqual(readdirSync(folder), []);
  }
});
