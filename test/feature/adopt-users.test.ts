import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { adopted, newDatabase, wrong } from '../support/adopted.js';
import { gatewayTest } from '../support/workspace.js';

// Apps whose users belong to several workspaces: another table tells which.

const test = gatewayTest();

/** Tables of workspaces, users and jobs; `more` says how users belong to workspaces. */
const app = (more: string): string => `
  create schema shop; set search_path = shop;
  create table "User" (id text primary key, email text not null);
  create table organizations (id text primary key, name text not null, "ownerId" text references "User");
  create table jobs (id text primary key, organization_id text not null references organizations, author_id text references "User",
    title text not null, created_at timestamptz not null default now());
  create table user_settings (organization_id text not null references organizations, user_id text not null references "User", role text,
    primary key (organization_id, user_id));
  insert into "User" values ('anna', 'anna@x.example'), ('bram', 'bram@x.example');
  insert into organizations values ('north', 'North', 'anna'), ('south', 'South', 'bram');
  insert into jobs select id || '-1', id, "ownerId", name from organizations;
  ${more}`;
const memberships = `create type "Role" as enum ('MEMBER', 'OWNER');
  create table "OrganizationMembership" (id text primary key, "organizationId" text not null references organizations, "invitedById" text references "User",
    "userId" text not null references "User", role "Role" not null, unique ("organizationId", "userId"));
  insert into "OrganizationMembership" values ('1', 'north', 'bram', 'anna', 'OWNER'), ('2', 'south', null, 'anna', 'MEMBER'), ('3', 'south', null, 'bram', 'OWNER');`;
const members = `create table users_organizations (organization_id text references organizations, user_id text references "User", primary key (organization_id, user_id));
  insert into users_organizations values ('north', 'anna'), ('north', 'bram');`;
const plain = `alter table organizations drop column "ownerId"; ${members}`;

const ways: readonly [way: string, more: string, owners: string[], others: string[]][] = [
  ['a table of memberships with a role', memberships, ['north anna', 'south bram'], ['south anna', 'north bram']],
  ['a table of memberships without a role', plain, ['north anna', 'north bram'], ['south bram']],
  ['the owner in the list of workspaces', members, ['north anna', 'south bram'], ['north bram']],
];

for (const [way, more, owners, others] of ways) {
  test.serial(`users of several workspaces: ${way} tells the users who may have tokens made`, async (t) => {
    const settings = await newDatabase(t, 'users', (client) => client.query(app(more)));
    const draft = await adopted(t, settings, '--schema', 'shop', '--tables', 'jobs');
    t.deepEqual(await wrong(t, draft), []);
    const create = (pair: string) => {
      const [workspace = '', owner = ''] = pair.split(' ');
      return draft.run(
        'tokens',
        'create',
        '--workspace',
        workspace,
        '--owner',
        owner,
        '--name',
        'x',
        '--scopes',
        'read:jobs',
      );
    };
    for (const pair of owners) {
      const { code, stderr } = await create(pair);
      t.is(code, 0, `${pair}: ${stderr}`);
    }
    for (const pair of others) t.not((await create(pair)).code, 0, pair);
    const isOpen = readFileSync(join(draft.folder, 'sql/views/tokens.sql'), 'utf8').includes(
      'add a condition for the owners',
    );
    t.is(isOpen, more === plain);
  });
}
