import { linkSync, readdirSync, readFileSync, writeFileSync } from 'node:fs';
import { createServer } from 'node:http';
import type { AddressInfo } from 'node:net';
import { join } from 'node:path';
import test from 'ava';
import pg from 'pg';
import { parse } from 'yaml';
import { until } from '../support/patience.js';
import {
  countIn,
  destinations,
  folder,
  newDatabase,
  numbered,
  pull,
  schemaOf,
  serve,
  text,
  usual,
} from '../support/pull/cases.js';
import {
  duckdbCopy,
  type PulledCopy,
  type PullRun,
  postgresCopy,
  pullInProcess,
  startPull,
} from '../support/pull/copy.js';
import { largeRecords, measuredPull, wideRecords } from '../support/pull/large-records.js';
import { operationOf, record } from '../support/pull/sync-server.js';

// Ordinary things in which a copy once lied or died, on both destinations, before a server with any document and records.

/** Runs a script of sh, in which "$0" "$@" is `pull` with its arguments. */
const inShell = (script: string, args: readonly string[]): Promise<PullRun> =>
  startPull(args, ['/bin/sh', '-c', script, process.execPath, join(process.cwd(), 'dist/pull/src/main.js')]).ended;

test.serial(
  'a copy takes no token of another workspace and no other gateway, until --replace starts over',
  async (t) => {
    const schema = schemaOf({ naam: text });
    const server = await serve(t, { klanten: { schema, records: numbered(30) } });
    const other = await serve(t, { klanten: { schema, records: numbered(5, '"naam":"y"', 's') } });
    for (const copy of await destinations(t)) {
      server.workspaceId = 'north';
      t.is((await pull(server, copy)).code, 0);
      server.workspaceId = 'south';
      const refused = await pull(server, copy);
      t.is(refused.code, 1);
      t.regex(
        refused.stderr,
        /^This copy is of workspace north of http.*, and the token is of workspace south .*--replace/,
      );
      const elsewhere = await pull(other, copy);
      t.is(elsewhere.code, 1);
      t.true(elsewhere.stderr.includes(server.base) && elsewhere.stderr.includes(other.base));
      t.is(await countIn(copy, 'klanten'), 30);
      const replaced = await pull(other, copy, '--replace');
      t.is(replaced.code, 0, replaced.stderr);
      t.is(await countIn(copy, 'klanten'), 5);
      t.is((await pull(other, copy)).code, 0, 'from then on it is of the other');
    }
  },
);

test.serial(
  'a resource keeps its name of the API, and two that would be one table are refused by both names',
  async (t) => {
    const schema = schemaOf({ naam: text });
    const server = await serve(t, {
      'work-orders': { schema, records: numbered(3) },
      page: { schema, records: numbered(2) },
    });
    for (const copy of await destinations(t)) {
      const run = await pull(server, copy);
      t.is(run.code, 0, run.stderr);
      t.deepEqual(
        run.stdout
          .trim()
          .split('\n')
          .map((line) => (JSON.parse(line) as { resource: string }).resource),
        ['work-orders', 'page'],
      );
      t.is(await countIn(copy, 'work_orders'), 3);
      t.is((await pull(server, copy, '--resources', 'work-orders')).code, 0);
      server.resources.set('work_orders', { schema, records: numbered(1) });
      const refused = await pull(server, copy);
      t.is(refused.code, 1);
      t.regex(refused.stderr, /work-orders and work_orders would both be the table work_orders/);
      server.resources.delete('work_orders');
    }
  },
);

test.serial('numbers are exact in types that hold them, wider only where values need it', async (t) => {
  const priced = { type: 'number', multipleOf: 0.01, minimum: 0, maximum: 99_999.99 };
  const members = {
    prijs: priced,
    a: { type: 'number' },
    b: { type: 'number' },
    c: { type: 'number' },
    d: { type: 'number' },
    n: { type: 'integer' },
  };
  const values = {
    prijs: '12.50',
    a: '52.370216123456789',
    b: '1e30',
    c: '123456789012345678901234567890123.5',
    d: '0.0000000001234',
    n: '12345678901234567890123',
  };
  const row = Object.entries(values)
    .map(([name, value]) => `"${name}":${value}`)
    .join(',');
  const server = await serve(t, { maten: { schema: schemaOf(members), records: new Map([['1', record('1', row)]]) } });
  const [duckdb, postgres] = (await destinations(t)) as [PulledCopy, PulledCopy];
  for (const copy of [duckdb, postgres]) {
    t.is((await pull(server, copy)).code, 0);
    const [found] = await copy.sql(
      'select cast(prijs as varchar) as prijs, cast(a as varchar) as a, cast(b as varchar) as b, cast(c as varchar) as c, cast(d as varchar) as d, cast(n as varchar) as n from maten',
    );
    const trimmed = Object.fromEntries(
      Object.entries(found ?? {}).map(([name, value]) => [
        name,
        String(value)
          .replace(/(\.\d*?)0+$/, '$1')
          .replace(/\.$/, ''),
      ]),
    );
    t.deepEqual(trimmed, { ...values, prijs: '12.5', b: `1${'0'.repeat(30)}` });
  }
  const [types] = await duckdb.sql('select typeof(prijs) as prijs, typeof(a) as a, typeof(n) as n from maten');
  t.deepEqual(types, { prijs: 'DECIMAL(7,2)', a: 'DECIMAL(38,15)', n: 'DECIMAL(38,0)' });
  // Later a value comes that no DECIMAL holds together with the others.
  server.resources.get('maten')?.records.set('2', record('2', '"a":1e35'));
  for (const copy of [duckdb, postgres]) {
    t.is((await pull(server, copy, '--verify')).code, 0);
    const found = await copy.sql('select cast(a as varchar) as a from maten order by id');
    t.deepEqual(
      found.map(({ a }) => a),
      ['52.370216123456789', `1${'0'.repeat(35)}`],
    );
  }
});

test.serial('a run that would delete more than half of a table stops before it does', async (t) => {
  const schema = schemaOf({ naam: text });
  for (const copy of await destinations(t)) {
    const server = await serve(t, {
      klanten: { schema, records: numbered(300) },
      few: { schema, records: numbered(90) },
    });
    t.is((await pull(server, copy)).code, 0);
    const { records } = server.resources.get('klanten') as { records: Map<string, string> };
    for (const left of [120, 0]) {
      for (const id of [...records.keys()].slice(left)) records.delete(id);
      const stopped = await pull(server, copy, '--resources', 'klanten');
      t.is(stopped.code, 1);
      t.regex(
        stopped.stderr,
        new RegExp(`no longer has ${300 - left} of the 300 records of klanten. None was deleted`),
      );
      t.is(await countIn(copy, 'klanten'), 300);
    }
    const allowed = await pull(server, copy, '--allow-deletions', '--resources', 'klanten');
    t.is(allowed.code, 0, allowed.stderr);
    t.is(await countIn(copy, 'klanten'), 0);
    server.resources.get('few')?.records.clear();
    t.is((await pull(server, copy, '--resources', 'few')).code, 0, 'a small table may become empty');
  }
});

test.serial('a large part of a large table can go: the run ends, and the next is quiet', async (t) => {
  const server = await serve(t, { klanten: { schema: schemaOf({ naam: text }), records: numbered(45_000) } });
  const copy = duckdbCopy(join(folder, 'large.duckdb'));
  t.is((await pull(server, copy)).code, 0);
  const { records } = server.resources.get('klanten') as { records: Map<string, string> };
  for (const id of [...records.keys()].slice(0, 20_000)) records.delete(id);
  const run = await pull(server, copy);
  t.is(run.code, 0, run.stderr);
  t.is((JSON.parse(run.stdout) as { deleted: number }).deleted, 20_000);
  t.is(await countIn(copy, 'klanten'), 25_000);
});

test.serial('references to hidden records are counted, and cost one more pass in all', async (t) => {
  const schema = schemaOf({ klantId: { type: 'string', 'x-references': 'klanten' } });
  const orders = new Map(Array.from({ length: 20 }, (_, i) => [`o${i}`, record(`o${i}`, `"klantId":"r${i}"`)]));
  for (const copy of await destinations(t)) {
    const server = await serve(t, {
      klanten: { schema: schemaOf({ naam: text }), records: numbered(15) },
      orders: { schema, records: orders },
    });
    const passes: number[] = [];
    for (let i = 0; i < 3; i++) {
      const { code, stdout, stderr } = await pull(server, copy);
      t.is(code, 0, stderr);
      t.regex(stderr, /^orders: 5 references lead to records that the gateway does not show.$/m);
      passes.push(stdout.trim().split('\n').length);
    }
    t.deepEqual(passes, [3, 2, 2]);
    const [row] = await copy.sql(
      `select cast(hidden_references as integer) as hidden from pull_status where resource = 'orders'`,
    );
    t.is(row?.hidden, 5);
  }
});

test.serial('line ends inside of JSON do not break the lines of --changes', async (t) => {
  const server = await serve(t, {
    notes: {
      schema: schemaOf({ vrij: {} }),
      records: new Map([['1', record('1', '"vrij":{\r\n"a":\r1,\n"b":"x\\r\\ny"}')]]),
    },
  });
  for (const [i, copy] of (await destinations(t)).entries()) {
    const changes = join(folder, `changes${i}`);
    t.is((await pull(server, copy, '--changes', changes)).code, 0);
    const [file] = readdirSync(changes) as [string];
    const lines = readFileSync(join(changes, file), 'utf8')
      .split(/[\r\n]+/)
      .slice(0, -1);
    t.deepEqual(
      lines.map((line) => (JSON.parse(line) as { record: { vrij: object } }).record.vrij),
      [{ a: 1, b: 'x\r\ny' }],
    );
  }
});

test.serial('a change file that the disk takes only in part is not committed', async (t) => {
  const server = await serve(t, { klanten: { schema: schemaOf({ naam: text }), records: numbered(2_000) } });
  const [, copy] = (await destinations(t)) as [PulledCopy, PulledCopy];
  const changes = join(folder, 'full-disk');
  const args = [...usual(server, copy.to), '--changes', changes];
  // No file can be larger than 20 blocks of 512 bytes.
  const limited = await inShell('ulimit -f 20; exec "$0" "$@"', args);
  t.is(limited.code, 1);
  t.regex(limited.stderr, /EFBIG|ENOSPC|full/);
  t.is(await countIn(copy, 'klanten'), 0);
  t.is((await pullInProcess(args)).code, 0);
  const files = readdirSync(changes);
  t.is(files.length, 1);
  t.is(
    readFileSync(join(changes, files[0] as string), 'utf8')
      .trim()
      .split('\n')
      .map((line) => JSON.parse(line)).length,
    2_000,
  );
});

test.serial('a role that owns the schema needs no right on the database, and one without is told which', async (t) => {
  const server = await serve(t, { klanten: { schema: schemaOf({ naam: text }), records: numbered(3) } });
  const url = await newDatabase(t);
  const role = `etl_${process.pid}`;
  const admin = new pg.Client(url);
  await admin.connect();
  await admin.query(`create role ${role} login password 'geheim'`);
  t.teardown(async () => {
    await admin.query(`drop owned by ${role}; drop role ${role}`).catch(() => undefined); // databases of other tests may name it
    await admin.end();
  });
  const copy = postgresCopy(Object.assign(new URL(url), { username: role, password: 'geheim' }).href);
  const refused = await pull(server, copy);
  t.is(refused.code, 1);
  t.regex(
    refused.stderr,
    new RegExp(`create schema "workspace_data" authorization ${role}, or grant create on database`),
  );
  await admin.query('create schema workspace_data');
  t.regex((await pull(server, copy)).stderr, new RegExp(`grant usage, create on schema "workspace_data" to ${role}`));
  await admin.query(`alter schema workspace_data owner to ${role}`);
  const run = await pull(server, copy);
  t.is(run.code, 0, run.stderr);
});

test.serial('a column that changes its type keeps the views on it, or the run says in which order to go', async (t) => {
  const [duckdb, postgres] = (await destinations(t)) as [PulledCopy, PulledCopy];
  for (const copy of [duckdb, postgres]) {
    const server = await serve(t, {
      klanten: { schema: schemaOf({ nummer: text }), records: numbered(3, '"nummer":"7"') },
    });
    t.is((await pull(server, copy)).code, 0);
    await copy.sql('create view numbers as select nummer from klanten');
    server.resources.set('klanten', {
      schema: schemaOf({ nummer: { type: 'integer' } }),
      records: numbered(3, '"nummer":8'),
    });
    const run = await pull(server, copy);
    if (copy === postgres) {
      t.is(run.code, 1);
      t.regex(
        run.stderr,
        /klanten.nummer is text, and the API now has bigint. Views show it: workspace_data.numbers. Keep/,
      );
      t.deepEqual(await copy.sql('select distinct nummer from numbers'), [{ nummer: '7' }]);
      await copy.sql('drop view numbers');
      const again = await pull(server, copy);
      t.is(again.code, 0, again.stderr);
      await copy.sql('create view numbers as select nummer from klanten');
    } else t.is(run.code, 0, run.stderr);
    t.deepEqual(await copy.sql('select distinct cast(nummer as integer) as nummer from numbers'), [{ nummer: 8 }]);
  }
});

test.serial(
  'required fields are not null, also after a column came later, and the id is the key of PostgreSQL',
  async (t) => {
    for (const copy of await destinations(t)) {
      const server = await serve(t, {
        klanten: { schema: { ...schemaOf({ naam: text }), required: ['id', 'naam'] }, records: numbered(3) },
      });
      t.is((await pull(server, copy)).code, 0);
      await t.throwsAsync(() => copy.sql('update klanten set naam = null'));
      const properties = { id: { ...text, description: "de sleutel, van 'klant'" }, naam: text, plaats: text };
      server.resources.set('klanten', {
        schema: { type: 'object', required: ['id', 'plaats'], properties },
        records: numbered(3, '"naam":null,"plaats":"Ede"'),
      });
      const run = await pull(server, copy);
      t.is(run.code, 0, run.stderr);
      await t.throwsAsync(() => copy.sql('update klanten set plaats = null'));
      await copy.sql('update klanten set naam = null');
      if (copy.to.startsWith('postgres'))
        await t.throwsAsync(() => copy.sql('insert into klanten select * from klanten'));
    }
  },
);

test.serial('workspaces share a database by --schema, and tell their rows by --workspace-column', async (t) => {
  const server = await serve(t, {
    klanten: {
      schema: schemaOf({ uren: { type: 'array', items: schemaOf({ n: { type: 'integer' } }) } }),
      records: numbered(3, '"uren":[{"id":"1","n":1}]'),
    },
  });
  const url = await newDatabase(t);
  const client = new pg.Client(url);
  await client.connect();
  t.teardown(() => client.end());
  for (const workspace of ['north', 'south']) {
    server.workspaceId = workspace;
    const run = await pull(server, postgresCopy(url), '--schema', workspace, '--workspace-column');
    t.is(run.code, 0, run.stderr);
    const { rows } = await client.query(
      `select distinct workspace_id from ${workspace}.klanten union all select distinct workspace_id from ${workspace}.klanten_uren`,
    );
    t.deepEqual(rows, [{ workspace_id: workspace }, { workspace_id: workspace }]);
  }
  t.is((await pull(server, duckdbCopy(join(folder, 'x.duckdb')), '--schema', 'north')).code, 2);
});

test.serial('--status prints how fresh a copy is, and --max-age exits with 1 when it is older', async (t) => {
  const server = await serve(t, { klanten: { schema: schemaOf({ naam: text }), records: numbered(3) } });
  for (const copy of await destinations(t)) {
    const status = (...more: string[]): Promise<PullRun> => pullInProcess(['--status', '--to', copy.to, ...more]);
    t.is((await status()).code, 1, 'there is no copy yet');
    const before = Date.now();
    t.is((await pull(server, copy)).code, 0);
    const { code, stdout } = await status('--max-age', '1h');
    t.is(code, 0);
    const { dataAsOf, ageSeconds, resources } = JSON.parse(stdout);
    t.true(Date.parse(dataAsOf) >= before - 1000 && ageSeconds < 600);
    t.like(resources[0], { resource: 'klanten', table: 'klanten', workspaceId: 'north', hiddenReferences: null });
    t.true(
      Date.parse(resources[0].verifiedAt) >= before - 1000 && Date.parse(resources[0].comparedAt) >= before - 1000,
    );
    await copy.sql(`update pull_status set data_as_of = '2026-01-01 00:00:00+00'`);
    t.is((await status('--max-age', '1h')).code, 1);
    for (const age of ['9000d', '240000.5h']) t.is((await status('--max-age', age)).code, 0, age);
    t.is((await status()).code, 0);
  }
  for (const args of [
    ['--max-age', '1h'],
    ['--status', '--to', 'x.duckdb', '--verify'],
    ['--status', '--to', 'x.duckdb', '--max-age', 'soon'],
  ])
    t.is((await pullInProcess(args)).code, 2);
});

test.serial('excel-csv has a byte order mark, semicolons, decimal commas, and texts that stay texts', async (t) => {
  const members = { nummer: text, prijs: { type: 'number' }, tekst: text, op: { type: 'string', format: 'date-time' } };
  const records = new Map([
    ['7', record('7', '"nummer":"01234567","prijs":3.500,"tekst":"=1+1"')],
    ['8', record('8', '"nummer":"","prijs":null,"tekst":"a;b"')],
    ['a', record('a', '"nummer":"jan-5","tekst":"waar"')],
    ['b', record('b', '"nummer":"(5)","tekst":"#N/A"')],
    ['c', record('c', '"nummer":"€ 5","tekst":"Laan van Meerdervoort"')],
    ['d', record('d', '"prijs":0.30000000000000004,"op":"2026-11-28T11:25:17.123Z","tekst":"\ufeffx"')],
    ['e', record('e', '"prijs":1234567890123456,"op":null')],
    ['f', record('f', '"prijs":-2.0904775288923913e+265')],
  ]);
  const server = await serve(t, { maten: { schema: schemaOf(members), records } });
  for (const [i, copy] of (await destinations(t)).entries()) {
    const at = join(folder, `excel${i}`);
    t.is((await pull(server, copy, '--export', at, '--format', 'excel-csv')).code, 0);
    const [head, ...rows] = readFileSync(join(at, 'maten.csv'), 'utf8').split('\r\n');
    t.is(head, '\ufeffid;nummer;prijs;tekst;op');
    t.deepEqual(rows.sort(), [
      '',
      '"=""7""";"=""01234567""";3,5;"=""=1+1""";',
      '"=""8""";"";;"a;b";',
      'a;"=""jan-5""";;"=""waar""";',
      'b;"=""(5)""";;"=""#N/A""";',
      'c;"=""€ 5""";;Laan van Meerdervoort;',
      'd;;0,3;\ufeffx;2026-11-28 11:25:17',
      'e;;"=""1234567890123456""";;',
      `f;;-209047752889239${'0'.repeat(251)};;`,
    ]);
    t.is((await pull(server, copy, '--export', at, '--format', 'csv')).code, 0);
    t.true(readFileSync(join(at, 'maten.csv'), 'utf8').includes('7,01234567,3.5,=1+1,\n'));
  }
});

test.serial('wide and large records are copied and exported within 512 MB', async (t) => {
  const server = await serve(t, { breed: wideRecords(5_001, 60), groot: largeRecords(3, 4e6) });
  for (const copy of await destinations(t))
    for (const format of ['parquet', 'csv']) {
      const args = [...usual(server, copy.to), '--verify', '--export', join(folder, 'large'), '--format', format];
      const run = await measuredPull(args);
      t.is(run.code, 0, run.stderr);
      t.true(run.peakMb <= 512, `${run.peakMb} MB`);
    }
});

test.serial('a table that was dropped is filled again, and is not in the way of --replace', async (t) => {
  const schema = schemaOf({ datum: { type: 'string', format: 'date' }, uren: { type: 'array', items: schemaOf({}) } });
  const server = await serve(t, {
    klanten: { schema, records: numbered(3, '"datum":"2026-01-01","uren":[{"id":"1"}]') },
  });
  for (const copy of await destinations(t)) {
    t.is((await pull(server, copy)).code, 0);
    await copy.sql('drop table klanten_uren');
    t.is((await pull(server, copy)).code, 0);
    t.is(await countIn(copy, 'klanten_uren'), 3);
    await copy.sql('drop table klanten_uren');
    const replaced = await pull(server, copy, '--replace');
    t.is(replaced.code, 0, replaced.stderr);
    t.is(await countIn(copy, 'klanten_uren'), 3);
    // The name of the index on the date must be free for a table.
    server.resources.set('klanten-datum', { schema: schemaOf({}), records: numbered(2, '') });
    const run = await pull(server, copy);
    t.is(run.code, 0, run.stderr);
    t.is(await countIn(copy, 'klanten_datum'), 2);
    server.resources.delete('klanten-datum');
    t.regex((await pull(server, copy)).stderr, /^No longer brought up to date, .*: klanten-datum\.$/m);
  }
});

test.serial('a number or moment that no type holds is kept as it came', async (t) => {
  const schema = schemaOf({ a: { type: 'number' }, m: { type: 'string', format: 'date-time' } });
  const records = new Map([['1', record('1', '"a":1e-20000,"m":"2026-01-01T00:00:00+24:00"')]]);
  const server = await serve(t, { maten: { schema, records } });
  for (const copy of await destinations(t)) {
    const run = await pull(server, copy);
    t.is(run.code, 0, run.stderr);
    t.deepEqual(await copy.sql('select cast(a as varchar) as a, m from maten'), [
      { a: '1e-20000', m: '2026-01-01T00:00:00+24:00' },
    ]);
  }
});

test.serial('a DuckDB file is free while the gateway does not answer, and any file name is a file', async (t) => {
  const server = await serve(t, { klanten: { schema: schemaOf({ naam: text }), records: numbered(3) } });
  const args = usual(server, '').slice(0, -1);
  const run = await inShell(`cd '${folder}' && exec "$0" "$@"`, [...args, ':memory:']);
  t.is(run.code, 0, run.stderr);
  const copy = duckdbCopy(join(folder, ':memory:'));
  t.is(await countIn(copy, 'klanten'), 3);
  server.asked.length = 0;
  server.onRequest = () => new Promise(() => undefined);
  const { child, ended } = startPull([...args, copy.to]);
  t.true(await until(() => server.asked.length > 0, 30_000));
  t.is(await countIn(copy, 'klanten'), 3);
  child.kill('SIGTERM');
  t.is((await ended).code, 143);
});

test.serial('--changes tells what its files lack, and leaves the files of another copy alone', async (t) => {
  const server = await serve(t, { klanten: { schema: schemaOf({ naam: text }), records: numbered(3) } });
  const changes = join(folder, 'shared-changes');
  const [copy, other] = (await destinations(t)) as [PulledCopy, PulledCopy];
  t.is((await pull(server, copy, '--changes', changes)).code, 0);
  t.regex((await pull(server, copy)).stderr, /^The changes of this run are in no file/);
  writeFileSync(join(changes, '0000000007-a.b.ndjson'), '');
  const refused = await pull(server, other, '--changes', changes);
  t.is(refused.code, 1);
  t.regex(refused.stderr, /0000000007-a\.b\.ndjson is of another copy/);
  t.is(readdirSync(changes).length, 2);
});

test.serial(
  'sources of dbt name ids and schemas as they are, hold no Jinja, and are replaced in one step',
  async (t) => {
    const description = "de naam {{ env_var('HOME') }}\u007f";
    const named = { type: 'object', properties: { Id: text, id: text, naam: { ...text, description } } };
    const orders = schemaOf({ klantId: { ...text, 'x-references': 'klanten' } });
    const server = await serve(t, {
      klanten: { schema: named, records: numbered(3) },
      orders: { schema: orders, records: numbered(3, '"klantId":"r1"') },
    });
    const copy = postgresCopy(await newDatabase(t));
    const file = join(folder, 'models/staging/sources.yml');
    const args = ['--schema', 'order', '--dbt', file];
    const run = await pull(server, copy, ...args);
    t.is(run.code, 0, run.stderr);
    const { tables } = (parse(readFileSync(file, 'utf8')) as { sources: [{ tables: Record<string, unknown>[] }] })
      .sources[0];
    const shown = JSON.stringify(tables);
    t.true(shown.includes(`{"to":"source('order', 'klanten')","field":"\\"id_2\\""`), shown);
    t.true(shown.includes('from \\"order\\".pull_status'), shown);
    t.true(shown.includes("de naam { { env_var('HOME') }} "), shown);
    writeFileSync(file, 'before');
    linkSync(file, join(folder, 'sources-before'));
    t.is((await pull(server, copy, ...args)).code, 0);
    t.is(readFileSync(join(folder, 'sources-before'), 'utf8'), 'before');
    t.deepEqual(readdirSync(join(folder, 'models/staging')), ['sources.yml']);
    const refused = await pull(server, copy, '--dbt', join(folder, 'models'));
    t.is(refused.code, 1);
    t.notRegex(refused.stderr, /connection/);
  },
);

test.serial('a database without UTF8 is refused, and a reader of stdout that goes away ends no run', async (t) => {
  const server = await serve(t, { klanten: { schema: schemaOf({ naam: text }), records: numbered(3) } });
  const url = await newDatabase(t, `encoding 'LATIN1' lc_collate 'C' lc_ctype 'C' template template0`);
  const refused = await pull(server, postgresCopy(url));
  t.is(refused.code, 1);
  t.regex(refused.stderr, /^The database has the encoding LATIN1: give one that has UTF8\.$/m);
  const copy = duckdbCopy(join(folder, 'unread.duckdb'));
  const args = usual(server, copy.to);
  const run = await inShell('{ "$0" "$@"; echo "exit $?" >&2; } | true', args);
  t.is(run.stderr, 'exit 1\n');
  t.is(await countIn(copy, 'klanten'), 3);
});

test.serial('a gateway that always refuses a page or lacks a member of an answer is not asked for ever', async (t) => {
  const document = JSON.stringify({ paths: { '/sync/klanten': { get: operationOf(schemaOf({})) } } });
  const page = '{"data":[],"pagination":{"nextCursor":null,"since":"x"}}';
  for (const [message, answers] of [
    [/klanten: 410 gone/, { '/sync/klanten': [410, '{"detail":"gone"}'] }],
    [/klanten\/digest: 400 damaged/, { '/sync/klanten/digest': [400, '{"detail":"damaged"}'] }],
    [/answers without scopes/, { '/token': [200, '{}'] }],
    [/answers without pagination/, { '/sync/klanten': [200, '{"data":[]}'] }],
    [/answers without data/, { '/sync/klanten/digest': [200, '[]'] }],
  ] as [RegExp, Record<string, [number, string]>][]) {
    const all: Record<string, [number, string]> = {
      '/openapi.json': [200, document],
      '/token': [200, '{"workspaceId":"north","scopes":["read:klanten"]}'],
      '/sync/klanten': [200, page],
      '/sync/klanten/digest': [200, '{"data":[]}'],
      ...answers,
    };
    const server = createServer((request, reply) => {
      const path = new URL(request.url ?? '', 'http://x').pathname.replace('/api/v1', '');
      const [status, body] = all[path] ?? [404, '{}'];
      reply.writeHead(status, { 'content-type': 'application/json' }).end(body);
    });
    await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve));
    t.teardown(() => server.close());
    const base = `http://127.0.0.1:${(server.address() as AddressInfo).port}`;
    const to = join(folder, `refusing${[...JSON.stringify(answers)].length}.duckdb`);
    const run = await pullInProcess(usual({ base }, to));
    t.is(run.code, 1, run.stderr);
    t.regex(run.stderr, message);
  }
});
