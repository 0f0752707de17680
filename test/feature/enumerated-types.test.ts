import { randomUUID } from 'node:crypto';
import { adopted, authorizationOf, newDatabase, served, wrong } from '../support/adopted.js';
import { eventually, gatewayTest } from '../support/workspace.js';

// An app whose states are labels of an enumerated type, as ORMs make them.

const test = gatewayTest();

const app = `
  create schema shop; set search_path = shop;
  create type "JobStatus" as enum ('OPEN', 'IN_PROGRESS', 'it''s "done"');
  create table companies (id bigint generated always as identity primary key, name text not null);
  create table staff (id bigint generated always as identity primary key, company_id bigint not null references companies, email text not null, is_owner boolean not null);
  create table jobs (id bigint generated always as identity primary key, company_id bigint not null references companies, title text not null,
    status "JobStatus" not null, before "JobStatus", version integer not null default 1, created_at timestamptz not null default now());
  create index on jobs (company_id, created_at, id);
  create index on jobs (company_id, status, created_at, id);
  insert into companies (name) values ('North'), ('South');
  insert into staff (company_id, email, is_owner) select id, name || '@shop.example', true from companies;
  insert into jobs (company_id, title, status)
    select 1 + i % 2, 'job ' || i, case when i % 1000 < 2 then 'it''s "done"' else 'OPEN' end::"JobStatus" from generate_series(1, 20000) i;
  analyze jobs`;

interface Answer {
  readonly status: number;
  readonly etag: string;
  readonly body: { readonly data: readonly Job[]; readonly errors?: readonly object[] } & Job;
}
interface Job {
  readonly id: string;
  readonly title: string;
  readonly status: string;
  readonly before: string | null;
}

test.serial('labels of an enumerated type are shown, filtered by their index and written', async (t) => {
  const settings = await newDatabase(t, 'labels', (client) => client.query(app));
  const draft = await adopted(t, settings, '--schema', 'shop', '--write', 'jobs');
  t.deepEqual(await wrong(t, draft), []);
  const resource = draft.resources.get('jobs');
  t.deepEqual([resource?.filters.status?.kind, resource?.filters.status?.type], ['equals', 'enum']);

  const url = await served(t, settings, draft.resourcesDir);
  const token = { workspace: 'North', owner: 'North@shop.example', scopes: 'read:jobs,write:jobs' };
  const authorization = await authorizationOf(t, draft, token);
  const ask = async (path: string, method = 'GET', body?: object, more = {}): Promise<Answer> => {
    const headers = {
      authorization,
      'content-type': 'application/json',
      'idempotency-key': randomUUID(),
      ...more,
    };
    const answer = await fetch(`${url}/api/v1/jobs${path}`, { method, headers, body: JSON.stringify(body) });
    return {
      status: answer.status,
      etag: String(answer.headers.get('etag')),
      body: (await answer.json()) as Answer['body'],
    };
  };
  const done = await ask(`?status=${encodeURIComponent(`it's "done"`)}&perPage=100`);
  t.deepEqual(
    done.body.data.map(({ status }) => status),
    Array(20).fill(`it's "done"`),
  );
  for (const unknown of ['done', 'open', 'OPEN ', 'NULL'])
    t.deepEqual((await ask(`?status=${encodeURIComponent(unknown)}`)).body.data, [], unknown);

  const made = await ask('', 'POST', { title: 'new', status: 'IN_PROGRESS' });
  t.deepEqual([made.status, made.body.status, made.body.before], [201, 'IN_PROGRESS', null]);
  await eventually(t, 'the new record is found', async () => {
    const { data } = (await ask('?status=IN_PROGRESS')).body;
    return data.length === 1 && data[0]?.title === 'new';
  });
  const path = `/${made.body.id}`;
  const changed = await ask(path, 'PATCH', { before: 'IN_PROGRESS', status: 'OPEN' }, { 'if-match': made.etag });
  t.deepEqual([changed.status, changed.body.status, changed.body.before], [200, 'OPEN', 'IN_PROGRESS']);
  const refused = [{ pointer: '/status', code: 'invalid', detail: 'This is refused: its column has no such value.' }];
  const unknown = { title: 'x', status: 'Open' };
  const answers = [await ask('', 'POST', unknown), await ask(path, 'PATCH', unknown, { 'if-match': changed.etag })];
  for (const { status, body } of answers) t.deepEqual([status, body.errors], [400, refused]);
});
