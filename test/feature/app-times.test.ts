import { randomUUID } from 'node:crypto';
import { adopted, authorizationOf, newDatabase, served, wrong } from '../support/adopted.js';
import { gatewayTest } from '../support/workspace.js';

// Tables of which the app sets the times of creation and of change itself, as Rails, Django, Prisma and Laravel do, and Prisma the id.

const test = gatewayTest();

const tables = {
  rails: 'created_at timestamp(6) not null, updated_at timestamp(6) not null',
  django: 'created timestamptz not null, modified timestamptz not null',
  prisma: '"createdAt" timestamp(3) not null default current_timestamp, "updatedAt" timestamp(3) not null',
  cuid: '"createdAt" timestamp(3) not null default current_timestamp, "updatedAt" timestamp(3) not null',
  laravel: 'created_at timestamp(0), updated_at timestamp(0)',
  triggers: 'created_at timestamptz not null default now(), updated_at timestamptz not null default now()',
};
const app = `
  create table companies (id bigint generated always as identity primary key, name text not null);
  create table staff (id bigint generated always as identity primary key, company_id bigint not null references companies, email text not null, is_owner boolean not null);
  insert into companies (name) values ('North');
  insert into staff (company_id, email, is_owner) values (1, 'boss@shop.example', true);
  ${Object.entries(tables)
    .map(
      ([
        name,
        times,
      ]) => `create table ${name} (id ${name === 'cuid' ? 'text' : 'bigint generated always as identity'} primary key,
        company_id bigint not null references companies, title text, ${times});`,
    )
    .join('\n')}
  create function touch() returns trigger language plpgsql as $$ begin new.updated_at := now(); return new; end $$;
  create trigger touch before update on triggers for each row execute function touch()`;

test.serial('a write sets the times and the id of a record that the app sets itself', async (t) => {
  const names = Object.keys(tables);
  const settings = await newDatabase(t, 'times', (client) => client.query(app));
  const draft = await adopted(t, settings, '--schema', 'public', '--write', names.join(','));
  t.deepEqual(await wrong(t, draft), []);
  const scopes = names.flatMap((name) => [`read:${name}`, `write:${name}`]).join(',');
  const url = await served(t, settings, draft.resourcesDir);
  const authorization = await authorizationOf(t, draft, {
    workspace: 'North',
    owner: 'boss@shop.example',
    scopes,
  });
  const write = async (path: string, method: string, etag: string | null, title: string) => {
    const headers = {
      authorization,
      'content-type': 'application/json',
      'idempotency-key': randomUUID(),
      ...(etag !== null && { 'if-match': etag }),
    };
    const body = JSON.stringify({ title });
    const answer = await fetch(`${url}/api/v1/${path}`, { method, headers, body });
    const record = (await answer.json()) as Record<string, string>;
    const [created, changed] = Object.keys(record).filter((name) => /created|updated|modified/.test(name));
    const timeOf = (name = '') => Date.parse(record[name] as string);
    return {
      status: answer.status,
      etag: answer.headers.get('etag'),
      id: record.id,
      created: timeOf(created),
      changed: timeOf(changed),
    };
  };
  for (const name of names) {
    const startMs = Date.now();
    const made = await write(name, 'POST', null, 'first');
    t.is(made.status, 201, name);
    await new Promise((resolve) => setTimeout(resolve, 1100)); // Laravel's times have whole seconds
    const changed = await write(`${name}/${made.id}`, 'PATCH', made.etag, 'second');
    t.is(changed.status, 200, name);
    const isNear = (ms: number): boolean => ms > startMs - 1000 && ms < Date.now() + 1000;
    t.true([made.created, made.changed, changed.changed].every(isNear), `${name}: ${JSON.stringify([made, changed])}`);
    t.is(changed.created, made.created, name);
    t.true(changed.changed > made.changed, name);
  }
});
