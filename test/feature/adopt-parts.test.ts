import { adopted, authorizationOf, newDatabase, served, wrong } from '../support/adopted.js';
import { gatewayTest } from '../support/workspace.js';

// Parts of a record whose key is the reference alone, and tables with the names of files that adopt writes.

const test = gatewayTest();

const app = `
  create schema shop; set search_path = shop;
  create table companies (id bigint primary key, name text not null);
  create table staff (id bigint primary key, company_id bigint not null references companies, email text not null, is_owner boolean not null);
  create table jobs (id bigint primary key, company_id bigint not null references companies, created_at timestamptz not null default now());
  create table job_contacts (job_id bigint primary key references jobs, email text, phone text);
  create table job_settings (job_id bigint primary key references jobs, settings json, label text);
  create table job_places (job_id bigint not null references jobs, place point, label text);
  create table access (id bigint primary key, company_id bigint not null references companies, label text, created_at timestamptz not null default now());
  create table key_ids (id bigint primary key, company_id bigint not null references companies, label text, created_at timestamptz not null default now());
  insert into companies values (1, 'North');
  insert into staff values (1, 1, 'north@shop.example', true);
  insert into jobs values (7, 1, '2026-01-01');
  insert into job_contacts values (7, 'hidden@x.example', '06-1');
  insert into job_settings values (7, '{"size": 2}', 'a');
  insert into job_places values (7, '(1,2)', 'b'), (7, '(1,2)', 'a');
  insert into access values (8, 1, 'gate', '2026-01-01');`;

test.serial('parts whose key is the reference alone are drafted, and no table takes the file of another', async (t) => {
  const settings = await newDatabase(t, 'parts', (client) => client.query(app));
  const draft = await adopted(t, settings, '--schema', 'shop');
  t.deepEqual(
    [...draft.resources.values()].map(({ name, view }) => [name, view]),
    [
      ['access', 'gateway.access'],
      ['jobs', 'gateway.jobs'],
      ['key-ids', 'gateway.app_key_ids'],
    ],
  );
  t.deepEqual(await wrong(t, draft), []);
  const api = await served(t, settings, draft.resourcesDir);
  const token = { workspace: 'North', owner: 'north@shop.example', scopes: 'read:jobs,read:access' };
  const authorization = await authorizationOf(t, draft, token);
  const read = async (path: string): Promise<unknown> =>
    (await fetch(`${api}/api/v1/${path}`, { headers: { authorization } })).json();
  t.like(await read('jobs/7'), {
    contacts: [{}],
    settings: [{ settings: { size: 2 }, label: 'a' }],
    places: [
      { place: '(1,2)', label: 'a' },
      { place: '(1,2)', label: 'b' },
    ],
  });
  t.like(await read('access/8'), { label: 'gate' });
});
