import { mkdirSync, readdirSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import test from 'ava';
import {
  countIn,
  destinations,
  folder,
  isPostgres,
  numbered,
  pull,
  pullWell,
  schemaOf,
  serve,
  statusOf,
  text,
} from '../support/pull/cases.js';
import { duckdbCopy, type PulledCopy, pullInProcess, startPull } from '../support/pull/copy.js';
import { record } from '../support/pull/sync-server.js';

// A copy beside what its readers build on it, before a document, a token, a clock and a gateway that change.

const list = (properties: object): object => ({ type: 'array', items: schemaOf(properties) });
/** Tables, columns and views of readers; PostgreSQL has more of them. */
const ofReaders = [
  'alter table klanten add column cijfer integer default 5',
  "update klanten set cijfer = 7 where id = 'r1'",
  'create view namen as select naam from klanten',
  'create index mijn_index on klanten (naam)',
];
const ofReadersInPostgres = [
  "create table notes (n integer primary key, klant text references klanten on delete cascade); insert into notes values (1, 'r1'), (2, 'r2')",
  `create table urennotes (klant text, position bigint, foreign key (klant, position) references klanten_uren); insert into urennotes values ('r1', 1)`,
  "alter table klanten add column nr integer generated always as identity, add column soort text not null default 'x'",
  'grant select on klanten to public',
];

test.serial('what readers build on a copy stays: references, columns, views, indexes, grants', async (t) => {
  const members = (n: number): string => `"naam":"${n}","uren":[{"id":"a","n":${n}},{"id":"b"}]`;
  const schema = schemaOf({ naam: text, uren: list({ n: { type: 'integer' } }) }) as { properties: object };
  for (const copy of await destinations(t)) {
    const server = await serve(t, { klanten: { schema, records: numbered(5, members(0)) } });
    const { records } = server.resources.get('klanten') as { records: Map<string, string> };
    const change = (n: number): unknown => ['r0', 'r1'].map((id) => records.set(id, record(id, members(n))));
    await pullWell(t, server, copy);
    await copy.sql(...ofReaders, ...(isPostgres(copy) ? ofReadersInPostgres : []));
    const mine = (): Promise<object[]> => copy.sql("select id, cijfer from klanten where id <> 'r2' order by id");
    const before = await mine();
    if (isPostgres(copy))
      await copy.sql(
        'alter table klanten add column eigen text; update klanten set eigen = id; alter table klanten alter column eigen set not null',
      );
    change(1);
    await pullWell(t, server, copy);
    await copy.sql("update klanten set naam = 'x'", 'update klanten_uren set n = 9');
    t.regex((await pullWell(t, server, copy, '--verify')).stdout, /"repaired":5/);
    change(2);
    records.delete('r2');
    await pullWell(t, server, copy, '--replace');
    const later = { type: 'object', required: ['id', 'ids'], properties: { ...schema.properties, ids: text } };
    for (const [id, json] of records) records.set(id, json.replace('{', '{"ids":"x",'));
    server.resources.set('klanten', { schema: later, records });
    await pullWell(t, server, copy, '--verify');
    t.deepEqual(await mine(), before);
    const hours = "select cast(n as integer) as n from klanten_uren where klanten_id = 'r1' order by position";
    t.deepEqual(await copy.sql(hours), [{ n: 2 }, { n: null }]);
    t.deepEqual(await copy.sql("select naam from namen where naam = '2'"), [{ naam: '2' }, { naam: '2' }]);
    if (!isPostgres(copy)) continue;
    t.deepEqual(await copy.sql('select n from notes'), [{ n: 1 }], 'the note of the record that is gone went with it');
    t.is(await countIn(copy, 'urennotes'), 1);
    const ofReader = "select eigen, soort, nr is not null as numbered from klanten where id = 'r1'";
    t.deepEqual(await copy.sql(ofReader), [{ eigen: 'r1', soort: 'x', numbered: true }]);
    t.is(await countIn(copy, `pg_indexes where indexname = 'mijn_index'`), 1);
    const grants = `information_schema.role_table_grants where table_name = 'klanten' and grantee = 'PUBLIC'`;
    t.is(await countIn(copy, grants), 1);
    await copy.sql('alter table notes drop constraint notes_klant_fkey, add foreign key (klant) references klanten');
    records.delete('r1');
    server.resources.set('later', { schema: schemaOf({}), records: numbered(1, '') });
    const kept = await pull(server, copy);
    t.is(kept.code, 1);
    t.regex(kept.stderr, /^klanten: A table of yours refers to a record that is gone, .*ON DELETE CASCADE/m);
    t.is(await countIn(copy, 'later'), 1, 'the others go on');
  }
});

test.serial(
  'a column of a reader with the name of a new field is named, and a copy knows how it was made',
  async (t) => {
    const server = await serve(t, { klanten: { schema: schemaOf({ naam: text }), records: numbered(3) } });
    for (const copy of await destinations(t)) {
      server.resources.set('klanten', { schema: schemaOf({ naam: text }), records: numbered(3) });
      await pullWell(t, server, copy, '--workspace-column');
      t.regex((await pull(server, copy)).stderr, /^This copy was made with --workspace-column: run pull as before/);
      t.deepEqual(await copy.sql('select distinct workspace_id from klanten'), [{ workspace_id: 'north' }]);
      await pullWell(t, server, copy, '--workspace-column');
      await copy.sql('alter table klanten add column fax text');
      server.resources.set('klanten', { schema: schemaOf({ naam: text, fax: text }), records: numbered(3) });
      t.regex((await pull(server, copy, '--workspace-column')).stderr, /klanten.fax was not made by pull/);
      await copy.sql('alter table klanten rename column fax to my_fax');
      await pullWell(t, server, copy, '--workspace-column');
      await pullWell(t, server, copy, '--replace');
      t.deepEqual(
        await copy.sql('select distinct workspace_id from klanten'),
        [{ workspace_id: 'north' }],
        'no longer its own',
      );
      t.regex(
        (await pull(server, copy, '--workspace-column')).stderr,
        /^This copy was made without --workspace-column/,
      );
    }
  },
);

test.serial('deletions reach the tables of fields that the document no longer has, and these are named', async (t) => {
  const whole = schemaOf({ naam: text, uren: list({ n: text }) });
  for (const copy of await destinations(t)) {
    const server = await serve(t, {
      klanten: { schema: whole, records: numbered(5, '"naam":"x","uren":[{"id":"a"}]') },
    });
    const { records } = server.resources.get('klanten') as { records: Map<string, string> };
    const describe = (schema: object): unknown => server.resources.set('klanten', { schema, records });
    const owners = 'select klanten_id as id from klanten_uren order by 1';
    await pullWell(t, server, copy);
    describe(schemaOf({}));
    records.delete('r1');
    records.set('r2', record('r2', '"naam":"y"'));
    t.regex((await pullWell(t, server, copy)).stderr, /^The API no longer has klanten.naam, klanten_uren: /m);
    t.deepEqual((await statusOf(copy))[0]?.gone, ['klanten.naam', 'klanten_uren']);
    t.deepEqual(await copy.sql(owners), [{ id: 'r0' }, { id: 'r2' }, { id: 'r3' }, { id: 'r4' }]);
    records.delete('r3');
    records.set('r4', record('r4', '"naam":"z"', 'as before'));
    describe(whole);
    await pullWell(t, server, copy);
    t.deepEqual(await copy.sql(owners), [{ id: 'r0' }]);
    t.deepEqual(await copy.sql('select id, naam from klanten order by 1'), [
      ...[
        { id: 'r0', naam: 'x' },
        { id: 'r2', naam: 'y' },
        { id: 'r4', naam: 'z' },
      ],
    ]);
    server.resources.clear();
    server.resources.set('other', { schema: whole, records });
    const to = join(folder, `away${isPostgres(copy)}`);
    mkdirSync(to);
    writeFileSync(join(to, 'klanten.csv'), '');
    const { stderr } = await pullWell(t, server, copy, '--export', to, '--format', 'csv');
    t.regex(stderr, /^Of an earlier run, and not written by this one: .*\/klanten\.csv\.$/m);
    t.is((await statusOf(copy))[0]?.failure, 'The gateway does not give it to this token.');
  }
});

test.serial('a resource that fails is named with its reason, and the others are brought up to date', async (t) => {
  for (const copy of await destinations(t)) {
    const schema = schemaOf({ naam: text });
    const server = await serve(t, {
      broken: { schema, records: numbered(3) },
      klanten: { schema, records: numbered(3) },
    });
    server.refuse = (path) => (path === '/sync/broken' ? [500, { detail: 'a bug' }] : undefined);
    const to = join(folder, `apart${isPostgres(copy)}`);
    const run = await pull(server, copy, '--export', to, '--format', 'csv');
    t.is(run.code, 1);
    t.regex(
      run.stderr,
      /^broken: \/sync\/broken: it answers 500 \(a bug\), each time\.\nNot brought up to date: broken\.$/m,
    );
    t.is(await countIn(copy, 'klanten'), 3);
    t.deepEqual(readdirSync(to), ['klanten.csv']);
    const [broken, klanten] = await statusOf(copy);
    t.regex(String(broken?.failure), /500/);
    t.true(broken?.failedAt !== null && broken?.updatedAt === null);
    t.true(klanten?.updatedAt !== null && klanten?.failure === null);
    server.refuse = () => undefined;
    await pullWell(t, server, copy);
    t.is((await statusOf(copy))[0]?.failure, null);
  }
});

test.serial('the token is read again for each run, and once more after a 401', async (t) => {
  const server = await serve(t, { klanten: { schema: schemaOf({ naam: text }), records: numbered(3) } });
  const [copy] = (await destinations(t)) as [PulledCopy];
  const file = join(folder, 'rotated');
  const tokens = ['first-token-of-the-test', 'second-token-of-the-test', 'third-token-of-the-test'];
  let valid = 0;
  writeFileSync(file, tokens[0] as string);
  server.refuse = (path, authorization) => {
    if (path === '/sync/klanten' && valid === 0) writeFileSync(file, tokens[++valid] as string); // rotated in the run
    return authorization === `Bearer ${tokens[valid]}` ? undefined : [401, { detail: 'unknown token' }];
  };
  const args = ['--base', server.base, '--token-file', file, '--to', copy.to];
  const { child, ended } = startPull([...args, '--every', '1s']);
  const next = (stream: 'stdout' | 'stderr'): Promise<unknown> =>
    Promise.race([ended, new Promise((resolve) => child[stream]?.once('data', resolve))]);
  await next('stdout');
  writeFileSync(file, '');
  valid = 2;
  await next('stderr');
  writeFileSync(file, tokens[2] as string);
  await next('stdout');
  child.kill('SIGTERM');
  const { code, stderr } = await ended;
  t.is(code, 143, stderr);
  server.refuse = () => [401, { detail: 'unknown token' }];
  t.regex((await pullInProcess(args)).stderr, /401 unknown token/);
});

test.serial(
  'a page with too many records is refused, a clock ahead gives no age, and the end of a token is told',
  async (t) => {
    const server = await serve(t, { klanten: { schema: schemaOf({ naam: text }), records: numbered(10_001) } });
    const expiresAt = new Date(Date.now() + 2 * 86_400_000).toISOString();
    server.token = { expiresAt };
    server.clockAheadMs = 3 * 3_600_000;
    for (const copy of await destinations(t)) {
      server.ignoresPerPage = true;
      const refused = await pull(server, copy);
      t.regex(refused.stderr, /^klanten: .* sends more than the 10000 records that a page may have\.$/m);
      server.ignoresPerPage = false;
      t.regex((await pullWell(t, server, copy)).stderr, /^The access token ends at 20.*: ask for a new one\.$/m);
      const { code, stdout } = await pullInProcess(['--status', '--to', copy.to, '--max-age', '1h']);
      t.is(code, 1);
      t.like(JSON.parse(stdout), { dataAsOf: null, ageSeconds: null, tokenExpiresAt: expiresAt });
    }
    t.is((await pull(server, duckdbCopy(join(folder, 'a?b', 'x.duckdb')))).code, 2);
  },
);
