import { join } from 'node:path';
import { commandsIn, emptyFolder, newDatabase } from '../support/adopt/adopted.js';
import { gatewayTest } from '../support/workspace.js';

// The ways in which apps say who belongs to which workspace.

const test = gatewayTest();
const companies = `create table companies (id bigint primary key, name text not null); insert into companies values (1, 'North'), (2, 'South');`;
const users = `create table users (id bigint primary key, email text not null unique); insert into users values (1, 'a@x.example'), (2, 'b@x.example'), (3, 'c@x.example');`;

/** User 1 is an owner of North, user 2 an employee of it, and user 3 of South; with `isAll` each may have tokens. */
interface Shape {
  readonly sql: string;
  readonly owner?: string;
  readonly employee?: string;
  readonly isAll?: true;
}

const shapes: Readonly<Record<string, Shape>> = {
  'a column and a flag': {
    sql: `${companies} create table staff (id bigint primary key, company_id bigint not null references companies, email text, is_owner boolean not null);
      insert into staff values (1, 1, 'a@x.example', true), (2, 1, 'b@x.example', false), (3, 2, 'c@x.example', true);`,
  },
  'memberships with a role': {
    sql: `${companies} ${users} create table memberships (id bigint primary key, company_id bigint not null references companies, user_id bigint not null references users, role text not null, revoked_at timestamptz);
      insert into memberships values (1, 1, 1, 'owner', null), (2, 1, 2, 'viewer', null), (3, 2, 3, 'owner', null), (4, 1, 1, 'admin', null), (5, 2, 1, 'owner', now());
      create table company_member_invites (company_id bigint not null references companies, created_by bigint references users, role text, primary key (company_id, created_by));
      create table visits (id bigint primary key, company_id bigint not null references companies, user_id bigint not null references users);`,
  },
  'a join table': {
    sql: `${companies} ${users} create table company_users (company_id bigint references companies, user_id bigint references users, primary key (company_id, user_id));
      insert into company_users values (1, 1), (1, 2), (2, 3);`,
    isAll: true,
  },
  'a table of roles': {
    sql: `${companies} create table roles (id integer primary key, name text not null); insert into roles values (1, 'Administrator'), (2, 'Reader');
      create table people (id bigint primary key, name text, email text); insert into people values (1, 'A', 'a@x.example'), (2, 'B', 'b@x.example'), (3, 'C', 'c@x.example');
      create table team_members (id bigint primary key, company_id bigint not null references companies, person_id bigint not null references people, role_id integer not null references roles);
      insert into team_members values (1, 1, 1, 1), (2, 1, 2, 2), (3, 2, 3, 1);`,
  },
  'an owner of the workspace': {
    sql: `${users} create table companies (id bigint primary key, name text not null, owner_id bigint not null references users, checked_by bigint references users);
      insert into companies values (1, 'North', 1, 3), (2, 'South', 3, 1);`,
  },
  'teams below the workspace': {
    sql: `${companies} ${users} create table teams (id bigint primary key, company_id bigint not null references companies);
      create table team_members (team_id bigint not null references teams, user_id bigint not null references users, role text not null, primary key (team_id, user_id));
      insert into teams values (7, 1), (8, 2); insert into team_members values (7, 1, 'ROLE_ADMIN'), (7, 2, 'ROLE_USER'), (8, 3, 'ROLE_ADMIN');`,
  },
  'memberships with a role beside the team that is open now, where workspaces have an address': {
    sql: `create type role as enum ('OWNER', 'ADMIN', 'MEMBER'); create table companies (id bigint primary key, name text not null, email text);
      insert into companies values (1, 'North', 'n@x.example'), (2, 'South', 's@x.example');
      create table users (id bigint primary key, company_id bigint not null references companies, email text not null);
      insert into users values (1, 2, 'a@x.example'), (2, 1, 'b@x.example'), (3, 2, 'c@x.example');
      create table users_on_company (company_id bigint not null references companies, user_id bigint not null references users, role role not null, primary key (company_id, user_id));
      insert into users_on_company values (1, 1, 'ADMIN'), (1, 2, 'MEMBER'), (2, 3, 'MEMBER');`,
  },
  'roles in a list': {
    sql: `create type role as enum ('owner', 'clerk'); ${companies} create table users (id bigint primary key, company_id bigint not null references companies, email text not null, roles role[] not null);
      insert into users values (1, 1, 'a@x.example', '{clerk,owner}'), (2, 1, 'b@x.example', '{clerk}'), (3, 2, 'c@x.example', '{owner}');`,
  },
  'a class of users for each role': {
    sql: `${companies} create table users (id bigint primary key, company_id bigint not null references companies, email text not null, type text not null);
      insert into users values (1, 1, 'a@x.example', 'AdminUser'), (2, 1, 'b@x.example', 'ClerkUser'), (3, 2, 'c@x.example', 'User::Admin');`,
  },
  'no foreign keys': {
    sql: `${companies} ${users} create table company_members (id bigint primary key, company_id bigint not null, user_id bigint not null, role text not null);
      insert into company_members values (1, 1, 1, 'admin'), (2, 1, 2, 'guest'), (3, 2, 3, 'admin');`,
  },
  'an address of the person': {
    sql: `${companies} create table persons (id bigint primary key, company_id bigint not null references companies, email text not null);
      create table users (id bigint primary key, person_id bigint not null references persons, password_hash text, is_admin boolean not null);
      insert into persons values (11, 1, 'a@x.example'), (12, 1, 'b@x.example'), (13, 2, 'c@x.example');
      insert into users values (1, 11, 'x', true), (2, 12, 'x', false), (3, 13, 'x', true);`,
  },
  'a name to log in with': {
    sql: `${companies} create table users (id bigint primary key, company_id bigint not null references companies, username text not null, role text);
      insert into users values (1, 1, 'anna', 'admin'), (2, 1, 'bert', 'clerk'), (3, 2, 'cora', 'admin');`,
    ...{ owner: 'anna', employee: 'bert' },
  },
  'a table of people with passwords': {
    sql: `${companies} create table operators (id bigint primary key, company_id bigint not null references companies, email text not null, password_hash text not null, owner boolean not null);
      insert into operators values (1, 1, 'a@x.example', 'x', true), (2, 1, 'b@x.example', 'x', false), (3, 2, 'c@x.example', 'x', true);`,
  },
  'names of Prisma': {
    sql: `create type "Role" as enum ('OWNER', 'MEMBER'); create table "Company" (id text primary key, name text not null); insert into "Company" values ('c1', 'North'), ('c2', 'South');
      create table "User" (id text primary key, email text not null); insert into "User" values ('1', 'a@x.example'), ('2', 'b@x.example'), ('3', 'c@x.example');
      create table "Membership" (id text primary key, "companyId" text not null references "Company", "userId" text not null references "User", role "Role" not null, "deletedAt" timestamp);
      insert into "Membership" values ('m1', 'c1', '1', 'OWNER', null), ('m2', 'c1', '2', 'MEMBER', null), ('m3', 'c2', '3', 'OWNER', null), ('m4', 'c2', '1', 'OWNER', now());
      create table "Job" (id text primary key, "companyId" text not null references "Company", title text);`,
  },
};

for (const [name, { sql, owner = 'a@x.example', employee = 'b@x.example', isAll = false }] of Object.entries(shapes))
  test.serial(`tokens of owners can be made without an edit of the draft: ${name}`, async (t) => {
    const jobs = sql.includes('"Job"')
      ? ''
      : 'create table jobs (id bigint primary key, company_id bigint not null references companies, title text);';
    const settings = await newDatabase(t, 'owners', (client) =>
      client.query(`create schema shop; set search_path = shop; ${sql} ${jobs} analyze`),
    );
    const folder = emptyFolder(t);
    const { run, query } = commandsIn(folder, settings);
    const drafted = await run('adopt', '--schema', 'shop', '--out', folder);
    t.is(drafted.code, 0, drafted.stderr);
    t.is(drafted.stdout.includes('may have tokens made: add a condition for the owners'), isAll);
    t.regex(drafted.stdout, /workspaces: 2, [01] without an owner/);
    const migrated = await run('migrate', '--views', join(folder, 'sql/views'));
    t.is(migrated.code, 0, migrated.stderr);
    // A view can list a workspace and a person twice, such as by a join.
    for (const view of ['workspaces', 'token_owners'])
      await query(
        `do $$ begin execute format('create or replace view gateway.${view} as %1$s union all %1$s', rtrim(pg_get_viewdef('gateway.${view}'), ';')); end $$`,
      );
    const scope = sql.includes('"Job"') ? 'read:job' : 'read:jobs';
    const codeOf = async (workspace: string, who: string): Promise<number | null> =>
      (await run('tokens', 'create', '--workspace', workspace, '--owner', who, '--name', 'test', '--scopes', scope))
        .code;
    t.is(await codeOf('North', owner), 0);
    t.is(await codeOf('North', '1'), 0, 'by the id');
    t.is(await codeOf('North', employee), isAll ? 0 : 1);
    for (const who of [owner, employee]) t.is(await codeOf('South', who), 1);
  });

test.serial('an app whose users are in another schema says so, and what to show', async (t) => {
  const settings = await newDatabase(t, 'owners', (client) =>
    client.query(`create schema auth; create table auth.users (id uuid primary key, email text);
      create schema shop; set search_path = shop; ${companies}
      create table jobs (id bigint primary key, company_id bigint not null references companies, title text);
      create table memberships (company_id bigint not null references companies, user_id uuid not null references auth.users, primary key (company_id, user_id));`),
  );
  const folder = emptyFolder(t);
  const { code, stdout } = await commandsIn(folder, settings).run('adopt', '--schema', 'shop', '--out', folder);
  t.is(code, 0);
  t.regex(stdout, /tokens\.sql: no table of users .*, so no token can be made: show workspace_id, id and email/);
});
