import { readFile, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import type { ExecutionContext } from 'ava';
import pg from 'pg';
import { runAsAdmin } from '../../src/postgres/admin.js';
import {
  type Adopted,
  type Ask,
  adopted,
  adoptedShop,
  apiOf,
  newDatabase,
  shopOf,
  titleOf,
  wrong,
} from '../support/adopt/adopted.js';
import { limitMs } from '../support/patience.js';
import { gatewayTest, type TestContext } from '../support/workspace.js';

// Rules that the app's database has and the definition does not: triggers, look-up tables, constraints of other tables.

const test = gatewayTest();

/** A job whose title names an SQLSTATE is refused with it: raised, or by PostgreSQL itself within the trigger. */
const ruled = shopOf(`
  create table priorities (priority text primary key);
  create table stages (stage text primary key);
  insert into priorities values ('low'), ('high');
  insert into stages values ('open');
  create table labels (label text primary key);
  create table jobs ($own, title text, priority text references priorities, stage text, serial text, opens integer, closes integer,
    created_at timestamptz not null default now(),
    constraint known_stage foreign key (stage) references stages deferrable initially deferred,
    constraint in_turn check (opens < closes), unique (company_id, serial));
  insert into jobs (company_id, title) values (1, 'first');
  create function obey() returns trigger language plpgsql as $$
    begin
      if new.title ~ '^[0-9A-Z]{5}$' then raise exception 'no %', new.title using errcode = new.title; end if;
      case new.title
        when 'assert' then assert false;
        when 'strict' then select 'x' into strict new.title where false;
        when 'divide' then new.title := 1 / (new.id - new.id);
        when 'nothing' then return null;
        when 'denied' then insert into shop.labels values ('x');
        when 'lost' then insert into labels values ('x');
        when 'parameter' then new.title := current_setting('shop.user');
        else null;
      end case;
      return new;
    end $$;
  create trigger obey before insert or update on jobs for each row execute function obey();
  create function late() returns trigger language plpgsql as $$
    begin
      if new.title = 'late' then raise exception 'no' using errcode = '40001'; end if;
      return null;
    end $$;
  create constraint trigger late after insert or update on jobs deferrable initially deferred for each row execute function late()`);

/** SQLSTATEs of which PostgreSQL's own mean a fault that passes, a fault of the database, a bug, or nothing at all. */
const raised =
  '45000 PT422 22023 22000 22012 U0001 P0001 P0002 P0004 23000 23502 23503 40001 40P01 42501 53100 55P03 57014 XX000 0A000';

async function ruledShop(t: ExecutionContext<TestContext>): Promise<Adopted> {
  const draft = await adoptedShop(t, ruled, { args: ['--write', 'jobs'] });
  const file = join(draft.folder, 'config/resources/jobs.json');
  const definition = JSON.parse(await readFile(file, 'utf8'));
  for (const name of ['priority', 'stage']) definition.fields[name].write = {};
  await writeFile(file, JSON.stringify(definition));
  const { code, stderr } = await draft.run('migrate', '--views', join(draft.folder, 'sql/views'));
  t.is(code, 0, stderr);
  await t.context.database.caughtUp();
  return draft;
}

async function rulesApi(
  t: ExecutionContext<TestContext>,
  draft: Adopted,
  lines: string[],
  scopes = 'read:jobs,write:jobs',
): Promise<Ask> {
  const settings = { ...draft.settings, rateLimitPerMinute: 10_000 };
  return (await apiOf(t, { ...draft, settings }, lines))(scopes);
}

type Body = { errors?: { pointer: string; code: string }[] };
const faultsIn = (body: Body) => (body.errors ?? []).map(({ pointer, code }) => `${pointer} ${code}`).join();

test.serial('what the rules of the app refuse is a 400 at once, with the member where it is known', async (t) => {
  const draft = await ruledShop(t);
  const lines: string[] = [];
  const ask = await rulesApi(t, draft, lines);
  const beganMs = performance.now();
  const { etag } = await ask<Body>('/jobs/1');
  for (const title of [...raised.split(' '), 'assert', 'strict', 'divide', 'late']) {
    lines.length = 0;
    const replies = [
      await ask<Body>('/jobs', { body: { title, stage: 'open' } }),
      await ask<Body>('/jobs/1', { body: { title }, etag }),
    ];
    const seen = replies.map(({ status, body }) => `${status} ${faultsIn(body)}`);
    t.deepEqual(seen, ['400  invalid', '400 /title invalid'], title);
    const refused = lines.filter((line) => line.includes('"value_refused"'));
    t.is(refused.length, 2, title);
    if (/^[0-9A-Z]{5}$/.test(title))
      t.is(JSON.parse(refused[0] as string).causes?.[0]?.code ?? JSON.parse(refused[0] as string).code, title);
  }
  t.true(performance.now() - beganMs < limitMs(20_000), 'nothing is repeated');

  const values: [object, string][] = [
    [{ title: 'x', priority: 'none' }, '/priority unknown_reference'],
    [{ title: 'x', stage: 'none' }, '/stage unknown_reference'], // at COMMIT
    [{ title: 'x', priority: 'none', stage: 'none' }, '/priority unknown_reference'],
    [{ title: 'x', opens: 3, closes: 2 }, ' invalid'],
    [{ title: 'x'.repeat(9), serial: 'one' }, ''],
    [{ title: 'x', priority: 'low', serial: 'one' }, '/serial taken'],
  ];
  for (const [body, faults] of values) {
    const reply = await ask<Body>('/jobs', { body });
    t.deepEqual([reply.status, faultsIn(reply.body)], [faults === '' ? 201 : 400, faults], JSON.stringify(body));
    if (faults === '') continue;
    const { title, ...change } = body as { title: string };
    const changed = await ask<Body>('/jobs/1', { body: change, etag });
    t.deepEqual([changed.status, faultsIn(changed.body)], [400, faults], JSON.stringify(change));
    const tried = await ask<Body>('/jobs?dryRun=true', { body });
    t.deepEqual(tried.body.errors, reply.body.errors, JSON.stringify(body));
  }
  t.is(
    (await ask<Body>('/jobs/1', { body: { priority: 'high', stage: 'open', opens: 1, closes: 2 }, etag })).status,
    200,
  );
});

test.serial('a record that a policy of the app refuses is a 400 at once', async (t) => {
  const draft = await ruledShop(t);
  const ask = await rulesApi(t, draft, []);
  const { etag } = await ask<Body>('/jobs/1');
  // A superuser is above row-level security: another role owns the view, as where such a role runs `migrate`.
  await runAsAdmin(draft.settings.adminUrl as string, (admin) =>
    admin.query(`grant usage on schema shop to gateway_owner; grant select, insert, update on all tables in schema shop to gateway_owner;
      alter view records.jobs owner to gateway_owner; alter table shop.jobs enable row level security;
      create policy titled on shop.jobs using (true) with check (title <> 'frozen')`),
  );
  const replies = [
    await ask<Body>('/jobs', { body: { title: 'frozen', stage: 'open' } }),
    await ask<Body>('/jobs/1', { body: { title: 'frozen' }, etag }),
    await ask<Body>('/jobs/1', { body: { title: 'other' }, etag }),
  ];
  const outcomes = replies.map(({ status, body }) => `${status} ${faultsIn(body)}`);
  t.deepEqual(outcomes, ['400  invalid', '400 /title invalid', '200 ']);
});

test.serial('a trigger that fails as the gateway runs it is a 500 whose correction is of the trigger', async (t) => {
  const draft = await ruledShop(t);
  const lines: string[] = [];
  const ask = await rulesApi(t, draft, lines);
  const faults: [title: string, correction: RegExp][] = [
    ['nothing', /BEFORE trigger of the app returns NULL/],
    ['denied', /SECURITY DEFINER/],
    ['lost', /set search_path/],
    ['parameter', /current_setting\(name, true\)/],
  ];
  for (const [title, correction] of faults) {
    lines.length = 0;
    const { etag } = await ask<Body>('/jobs/1');
    for (const reply of [
      await ask<Body>('/jobs', { body: { title } }),
      await ask<Body>('/jobs/1', { body: { title }, etag }),
    ]) {
      t.is(reply.status, 500, title);
      t.is(JSON.stringify(reply.body).includes('is misconfigured'), true, title);
    }
    const events = lines.filter((line) => line.includes('"database_unfit"')).map((line) => JSON.parse(line));
    t.is(events.length, 2, title);
    for (const event of events) t.regex(event.correction, correction);
    for (const event of events) t.notRegex(event.correction, /`migrate`/);
  }
});

test.serial('check says of a trigger what mends it, and never to run migrate', async (t) => {
  const draft = await ruledShop(t);
  const faults: [body: string, advice: RegExp][] = [
    [`insert into shop.labels values ('x')`, /SECURITY DEFINER/],
    [`insert into labels values ('x')`, /set search_path/],
    [`perform current_setting('shop.user')`, /current_setting\(name, true\)/],
    [`raise exception 'no user'`, /current_setting\(name, true\)/],
    ['return null', /BEFORE trigger/],
    ['return new', /rules of the app/], // a deferred rule then refuses at COMMIT
  ];
  for (const [body, advice] of faults) {
    const last = body === 'return new' ? `raise exception 'never'` : 'return null';
    for (const [name, text] of Object.entries({ obey: body, late: last }))
      await draft.query(
        `create or replace function shop.${name}() returns trigger language plpgsql as $$ begin ${text}; return new; end $$`,
      );
    const { stdout } = await draft.run('check', '--json');
    const findings = (
      JSON.parse(stdout) as { findings: { code: string; level: string; advice: string; detail: string }[] }
    ).findings;
    const writes = findings.find(({ code }) => code === 'writes');
    t.not(writes?.level, 'ok', body);
    t.regex(writes?.advice ?? '', advice, body);
    t.notRegex(writes?.advice ?? '', /migrate/, body);
  }
});

/** Names that every object of JavaScript inherits, and that of a codec that is one of them. */
const inherited = shopOf(`
  create table jobs ($own, to_string text, constructor text, value_of text not null, has_own_property integer, created_at timestamptz not null default now());
  insert into jobs (company_id, to_string, value_of) values (1, 'first', 'v')`);

test.serial('members can have the names that every object inherits, in check, in reads and in writes', async (t) => {
  const draft = await adoptedShop(t, inherited, { args: ['--write', 'jobs'] });
  const ask = await rulesApi(t, draft, []);
  const [{ etag }, list] = [await ask('/jobs/1'), await ask('/jobs?fields=toString,constructor')];
  t.like(list.body, { data: [{ id: '1', toString: 'first', constructor: null }] });
  const missing = await ask<Body>('/jobs', { body: { toString: 'x' } });
  t.deepEqual([missing.status, faultsIn(missing.body)], [400, '/valueOf required']);
  const created = await ask('/jobs', { body: { valueOf: 'second' } });
  t.is(created.status, 201);
  t.like(created.body, { valueOf: 'second', toString: null, constructor: null, hasOwnProperty: null });
  const changed = await ask('/jobs/1', { body: { constructor: 'c', hasOwnProperty: 5 }, etag });
  t.like(changed.body, { valueOf: 'v', toString: 'first', constructor: 'c', hasOwnProperty: 5 });
});

test.serial('a table that replicas do not have is a 500 with its correction, and check names it', async (t) => {
  const draft = await adoptedShop(t, inherited, { args: ['--write', 'jobs'] });
  const lines: string[] = [];
  const ask = await rulesApi(t, draft, lines);
  t.is((await ask('/jobs')).status, 200);
  await draft.query('alter table shop.jobs set unlogged');
  await t.context.database.caughtUp();
  for (const path of ['/jobs', '/jobs/1']) t.is((await ask(path)).status, 500);
  const events = lines.filter((line) => line.includes('"database_unfit"')).map((line) => JSON.parse(line));
  t.is(events.length, 2);
  for (const event of events) t.regex(event.correction, /UNLOGGED.*SET LOGGED/);
  const wrongs = (await wrong(t, draft)).filter(({ where }) => where.startsWith('replica'));
  t.deepEqual(wrongs.map(titleOf), ['failed view gateway.jobs']);
  t.regex(wrongs[0]?.detail ?? '', /^shop\.jobs is UNLOGGED/);
  for (const { advice } of wrongs) t.regex(advice, /SET LOGGED/);
});

const shared = shopOf(`
  create table customers ($own, name text, created_at timestamptz not null default now(), unique (company_id, id));
  create table jobs ($own, customer_id bigint not null references customers, title text, serial text, code text, created_at timestamptz not null default now(),
    unique (company_id, serial), unique (customer_id, code));
  create unique index jobs_title on jobs (lower(title));
  create unique index jobs_code on jobs (code) where code like 'x%';
  insert into customers (company_id, name) values (1, 'c');
  insert into jobs (company_id, customer_id, title) values (1, 1, 'first')`);

test.serial('check warns of a unique index that tells a workspace of the values of others', async (t) => {
  const draft = await adoptedShop(t, shared, { args: ['--write', 'jobs'], findings: ['warning unique jobs'] });
  const [found] = await wrong(t, draft);
  t.regex(
    found?.detail ?? '',
    /^Without the workspace: shop\.jobs_code on shop\.jobs, shop\.jobs_title on shop\.jobs\. /,
  );
  const ask = await apiOf(t, draft);
  const [north, south] = [await ask('read:jobs,write:jobs'), await ask('read:jobs,write:jobs', 'South')];
  t.is((await north('/jobs', { body: { title: 'secret', customerId: '1' } })).status, 201);
  await draft.query(`insert into shop.customers (company_id, name) values (2, 's')`);
  const taken = await south<Body>('/jobs', { body: { title: 'Secret', customerId: '2' } });
  t.deepEqual([taken.status, faultsIn(taken.body)], [400, '/title taken'], 'as the warning says');
});

test.serial('check warns where a server orders texts by another version than the indexes', async (t) => {
  const settings = await newDatabase(t, 'sorted', async (client) => {
    await client.query(shared);
    await client.query(`create collation shop.dutch (provider = icu, locale = 'nl');
      create collation shop.plain (provider = libc, locale = 'C');
      create index on shop.jobs (title collate shop.dutch, lower(title) collate shop.plain)`);
  });
  const draft = await adopted(t, settings, '--schema', 'shop');
  t.deepEqual(await wrong(t, draft), []);
  const older = `update pg_collation set collversion = '1.2' where collname in ('dutch', 'plain')`; // libc tells no version of C
  await draft.query(older);
  const found = await wrong(t, draft);
  t.deepEqual(found.map(titleOf), ['warning collations ', 'warning collations ']);
  for (const { detail } of found)
    t.regex(detail, /^shop\.dutch .* 1\.2 and is [\d.]+ here; shop\.plain .* 1\.2 and is unknown here: /);
});

const four = ['doors', 'jobs', 'keys', 'lists'];
const busy = shopOf(
  four
    .map((name) => `create table ${name} ($own, title text, created_at timestamptz not null default now());`)
    .join(''),
);

test.serial('writes that wait for locks of three tables take no connection from writes of a fourth', async (t) => {
  const draft = await adoptedShop(t, busy, { args: ['--write', four.join()] });
  const ask = await rulesApi(t, draft, [], four.map((name) => `write:${name}`).join());
  const add = (name: string) => ask(`/${name}`, { body: { title: 'x' } });
  const admin = new pg.Client(draft.settings.adminUrl as string);
  await admin.connect();
  t.teardown(() => admin.end());
  let [refused, isOver] = [0, false];
  /** Locks the table, and has twelve clients write to it. */
  const occupy = async (name: string): Promise<unknown> => {
    await admin.query(`lock table shop.${name} in access exclusive mode`);
    const client = async (): Promise<void> => {
      while (!isOver) if ((await add(name)).status === 503) refused++;
    };
    return Array.from({ length: 12 }, client);
  };
  /** Writes to the fourth until so many writes of the others are refused. */
  const beside = async (refusals: number): Promise<number> => {
    let count = 0;
    for (; refused < refusals; count++) t.is((await add('lists')).status, 201);
    return count;
  };
  await admin.query('begin');
  await Promise.all(four.map(add));
  const waiting = [await occupy('doors'), await occupy('jobs')];
  const counts = [await beside(30)];
  waiting.push(await occupy('keys'));
  counts.push(await beside(60));
  isOver = true;
  await admin.query('rollback');
  await Promise.all(waiting.flat());
  for (const count of counts) t.true(count > 5, `${counts} writes were answered`); // 3 and 2 where the locks hold connections
  for (const name of four) t.is((await add(name)).status, 201);
});
