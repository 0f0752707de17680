import { mkdtempSync, readdirSync, rmSync, statSync, writeFileSync } from 'node:fs';
import { createServer, type RequestListener } from 'node:http';
import type { AddressInfo } from 'node:net';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { Readable } from 'node:stream';
import { gzipSync } from 'node:zlib';
import type { ExecutionContext } from 'ava';
import { listResources } from '../../pull/src/document.js';
import { PageText } from '../../pull/src/json-text.js';
import { readProject } from '../../src/base/paths.js';
import { makeToken } from '../../src/serve/http/token-format.js';
import { output, programMissing } from '../support/client-tools.js';
import { duckdbCopy, exported, type PullRun, postgresCopy, runPull, startPull } from '../support/pull/copy.js';
import { gatewayTest, type TestContext } from '../support/workspace.js';

const test = gatewayTest();
const folder = mkdtempSync(join(tmpdir(), 'pull-'));
const tokenFile = join(folder, 'token');
test.before(() => writeFileSync(tokenFile, makeToken()));
test.after.always(() => rmSync(folder, { recursive: true }));

const address = 'http://127.0.0.1:9';

/** Runs `pull` against an address; it is ended with SIGTERM when it waits. */
async function against(base: string, more: readonly string[] = []): Promise<PullRun> {
  const to = ['--to', join(folder, 'mistakes.duckdb')].filter(() => !more.includes('--to'));
  const file = ['--token-file', tokenFile].filter(() => !more.includes('--token-file'));
  const { child, ended } = startPull(['--base', base, ...file, ...to, ...more]);
  child.stderr?.on('data', (bytes: Buffer) => void (String(bytes).startsWith('Waiting ') && child.kill()));
  return ended;
}

async function serverOf(t: ExecutionContext, listener: RequestListener): Promise<string> {
  const server = createServer(listener);
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve));
  t.teardown(() => server.close());
  return `http://127.0.0.1:${(server.address() as AddressInfo).port}`;
}

test.serial('a usage error has code 2 and shows no secret', async (t) => {
  for (const [message, base, ...more] of [
    [/--base takes no user and no password/, 'http://etl:geheim@127.0.0.1:9'],
    [/--base is the address of a gateway/, `${address}?key=geheim`],
    [/--to is no URL: percent-encode/, address, '--to', 'postgres://etl:2024#geheim@h:1/copy'],
    [/--to is postgres:.* or a DuckDB file/, address, '--to', 'mysql://geheim@db/copy'],
    [/--every is .* at most 24d/, address, '--every', '600h'],
    [/--every is .* such as 15m/, address, '--every', '15'],
    [/--resources the names/, address, '--resources', ' , '],
    [/--format is parquet, csv, excel-csv or ndjson, not "xml"/, address, '--export', folder, '--format', 'xml'],
    [/--format goes with --export/, address, '--format', 'csv'],
    [/Unknown option '--folder'/, address, '--folder', 'x'],
  ] as const) {
    const { code, stderr } = await against(base, more);
    t.is(code, 2, stderr);
    t.regex(stderr, message);
    t.notRegex(stderr, /geheim/);
  }
  const broken = join(folder, 'no-token');
  for (const text of [`${makeToken()}\n${makeToken()}`, `Bearer ${makeToken()}`, '']) {
    writeFileSync(broken, text);
    t.deepEqual(await against(address, ['--token-file', broken]), {
      code: 2,
      stdout: '',
      stderr: `The token file ${broken} must hold one token and nothing else.\n`,
    });
  }
});

test.serial('a server that is no gateway is named in one clear sentence', async (t) => {
  const json = { 'content-type': 'application/json' };
  const bomb = gzipSync(Buffer.alloc(80 * 1024 * 1024, ' '));
  const servers: [RegExp, RequestListener][] = [
    [
      /answers with text\/html, as a gateway does not/,
      (_, reply) => void reply.writeHead(200, { 'content-type': 'text/html' }).end('<html>'),
    ],
    [
      /redirects \/openapi.json to https:\/\/elsewhere.example\/ x: give that address/,
      (_, reply) => void reply.writeHead(302, { location: 'https://elsewhere.example/\u0085\u0085x' }).end(),
    ],
    [
      /describes no resource that can be copied/,
      (_, reply) => void reply.writeHead(200, json).end('{"paths":{"/klanten":{}}}'),
    ],
    [/does not describe paths as a gateway does/, (_, reply) => void reply.writeHead(200, json).end('{}')],
    [
      /a reference that leads to itself/,
      (_, reply) => void reply.writeHead(200, json).end('{"paths":{"/sync/x":{"$ref":"#/paths/~1sync~1x"}}}'),
    ],
    [
      /does not describe/,
      (_, reply) => void reply.writeHead(200, json).end('{"paths":{"/sync/constructor":{"get":{}}}}'),
    ],
    [/answers with broken JSON/, (_, reply) => void reply.writeHead(200, json).end('{"a":}')],
    [
      /larger than 67108864 bytes/,
      (_, reply) => void reply.writeHead(200, { ...json, 'content-encoding': 'gzip' }).end(bomb),
    ],
    [
      /openapi.json: 401 no\s+newline/,
      (_, reply) => void reply.writeHead(401, json).end('{"detail":"no\\n\\u2028newline"}'),
    ],
  ];
  const to = ['--to', (t.context as TestContext).database.settings.adminUrl]; // opens in a third of the time of DuckDB
  for (const [message, listener] of servers) {
    const { code, stderr } = await against(await serverOf(t, listener), to);
    t.is(code, 1, stderr);
    t.regex(stderr, message);
    t.is(stderr.split('\n').length, 2, stderr);
  }
});

test.serial('a gateway that does not answer is named while pull waits for it', async (t) => {
  const { stderr } = await against(await serverOf(t, () => undefined));
  t.is(stderr, 'Waiting for the gateway: it has not answered yet.\n');
});

test.serial('http to another host is named before the token is sent', async (t) => {
  const { child, ended } = startPull([
    '--base',
    'http://192.0.2.1',
    '--token-file',
    tokenFile,
    '--to',
    join(folder, 'clear.duckdb'),
  ]);
  child.stderr?.once('data', () => child.kill());
  t.regex((await ended).stderr, /^The token and the data travel in clear text: use https/);
});

test('tables and columns are named by one rule, and referring resources come first', async (t) => {
  const { client } = t.context as TestContext;
  const document = (await client.get('/openapi.json')).json<Record<string, unknown>>();
  const resources = listResources(document);
  const names = resources.map(({ name }) => name);
  t.true(
    names.indexOf('werkbonnen') < names.indexOf('installaties') &&
      names.indexOf('installaties') < names.indexOf('klanten'),
  );
  const klanten = resources.find(({ name }) => name === 'klanten');
  t.deepEqual(
    klanten?.table.columns.map(({ name, kind }) => `${name} ${kind}`),
    [
      ...[
        ...['id text', 'naam text', 'adres_straat text', 'adres_huisnummer text', 'adres_toevoeging text'],
        ...['adres_postcode text'],
      ],
      ...[
        ...['adres_plaats text', 'adres_land text', 'kvk_nummer text', 'created_at timestamp'],
        ...['updated_at timestamp', 'decode_errors json'],
      ],
    ],
  );
  const werkbonnen = resources.find(({ name }) => name === 'werkbonnen');
  t.deepEqual(werkbonnen?.references, [{ column: 'installation_id', resource: 'installaties' }]);
  t.deepEqual(
    werkbonnen?.parts.map(
      ({ name, owner, columns }) => `${name} (${[owner, ...columns.map((each) => each.name)].join(', ')})`,
    ),
    [
      'werkbonnen_handelingen (werkbon_id, id, code, omschrijving, resultaat, gegevens)',
      'werkbonnen_uren (werkbon_id, id, medewerker, datum, van, tot, uren)',
    ],
  );
});

test('a page is taken apart into the texts of its records, wherever its chunks end', async (t) => {
  const records = ['{"id":"1","a":[{"b":"}]"},[]],"n":1.10}', '{"id":"\\\\","t":"\\"{"}', '{"id":"é😀"}'];
  const text = `{"data": [${records.join(' ,\n')}],"pagination":{"since":"[\\"x"}}`;
  for (let size = 1; size <= text.length; size++) {
    const page = new PageText(Readable.from(text.match(new RegExp(`.{1,${size}}`, 'gs')) ?? []));
    const found: string[] = [];
    for await (const slice of page.readSlices()) found.push(...slice);
    t.deepEqual(found, records);
    t.deepEqual(page.parseMembersAfterRecords(), { pagination: { since: '["x' } });
  }
  for (const part of ['', '{', '{"data":[', text.slice(0, 30), text.slice(0, -1)]) {
    const page = new PageText(Readable.from([part]));
    for await (const _ of page.readSlices());
    t.throws(() => page.parseMembersAfterRecords(), { message: 'its reply is not whole' });
  }
});

const usual = ({ gateway, token }: TestContext): string[] => {
  writeFileSync(tokenFile, token);
  return ['--base', `${gateway.url}/api/v1/`, '--token-file', tokenFile];
};

interface Order {
  readonly id: string;
  readonly omschrijving: string | null;
  readonly createdAt: string;
  readonly uren: readonly { readonly uren: number; readonly medewerker: string }[];
}

test.serial('both destinations and all exports have just what the API has, odd texts included', async (t) => {
  const context = t.context as TestContext;
  const { client, database } = context;
  const texts = ['say "hi", \u2028 then\r\ngo', '', null, 'null', 'C:\\u0000', '😀'];
  const changed = (
    await database.primary.query<{ id: string }>(
      'select id from app.werkbonnen where workspace_id = $1 order by id limit 6',
      [database.workspaces[0]?.id],
    )
  ).rows;
  for (const [i, text] of texts.entries())
    await database.primary.query('update app.werkbonnen set omschrijving = $2 where id = $1', [changed[i]?.id, text]);
  await database.caughtUp();
  const copy = `${database.name}_pulled`;
  await database.primary.query(`create database ${copy}`);
  t.teardown(() => database.primary.query(`drop database if exists ${copy} with (force)`));
  const url = Object.assign(new URL(database.settings.adminUrl), { pathname: `/${copy}` }).href;
  const { data } = (await client.get('/werkbonnen?perPage=10000')).json<{ data: Order[] }>();
  const expected = new Map(data.map((order) => [order.id, order]));
  t.true(texts.every((text, i) => expected.get(changed[i]?.id as string)?.omschrijving === text));
  for (const to of [duckdbCopy(join(folder, 'all.duckdb')), postgresCopy(url)]) {
    const files: Record<string, Record<string, string>> = {};
    for (const format of ['parquet', 'csv', 'ndjson']) {
      const at = join(folder, `${format}-${to.to === url ? 'postgres' : 'duckdb'}`);
      const run = await runPull([...usual(context), '--to', to.to, '--export', at, '--format', format]);
      t.is(run.code, 0, run.stderr);
      files[format] = format === 'parquet' ? {} : exported(at);
      t.is(readdirSync(at).filter((name) => name.endsWith(`.${format}`)).length, 7);
      t.is(statSync(join(at, `klanten.${format}`)).mode & 0o077, 0);
      if (format !== 'parquet') continue;
      const read = duckdbCopy(join(folder, 'reader.duckdb'));
      const [row] = await read.sql(
        `select count(*)::INTEGER as orders, (select sum(uren)::DOUBLE from '${at}/werkbonnen_uren.parquet') as hours from '${at}/werkbonnen.parquet'`,
      );
      const hours = data.flatMap(({ uren }) => uren).reduce((sum, { uren }) => sum + Math.round(uren * 100), 0) / 100;
      t.deepEqual(row, { orders: data.length, hours });
    }
    const rows = await to.sql('select id, omschrijving, created_at from werkbonnen');
    t.is(rows.length, expected.size);
    const [, query = ''] = /```sql\n(.*?)```/s.exec(readProject('docs/use/pull.md')) ?? [];
    t.true((await to.sql(query)).length > 0, 'the query of docs/use/pull.md');
    for (const { id, omschrijving, created_at } of rows) {
      const order = expected.get(id as string);
      t.is(omschrijving, order?.omschrijving);
      const createdAt = created_at instanceof Date ? created_at : new Date(String(created_at).replace(/\+00$/, 'Z'));
      t.is(createdAt.toISOString(), order?.createdAt as string);
    }
    const lines = String(files.ndjson?.['werkbonnen.ndjson'])
      .trim()
      .split('\n')
      .map((line) => JSON.parse(line) as Order & { created_at: string });
    t.deepEqual(
      new Map(lines.map(({ id, omschrijving, created_at }) => [id, [omschrijving, created_at]] as const).sort()),
      new Map(data.map(({ id, omschrijving, createdAt }) => [id, [omschrijving, createdAt]] as const).sort()),
    );
    t.true(String(files.csv?.['werkbonnen.csv']).includes(data[0]?.createdAt as string));
  }
});

const python = '/usr/bin/python3';
const noPandas = programMissing(python, '-c', 'import pandas');
const noPsql = programMissing('psql', '--version');
(noPandas || noPsql ? test.serial.skip : test.serial)(
  `pandas and psql read the CSV of an export${noPandas || noPsql}`,
  async (t) => {
    const context = t.context as TestContext;
    const [at, to] = [join(folder, 'csv-duckdb'), join(folder, 'all.duckdb')]; // of the test before
    const [row] = await duckdbCopy(to).sql('select count(*)::INTEGER as orders from werkbonnen');
    const program = `import pandas; print(len(pandas.read_csv('${at}/werkbonnen.csv', parse_dates=['datum', 'created_at'])))`;
    t.is((await output(python, ['-c', program])).trim(), String(row?.orders));
    const sql = `create temp table k (id text, naam text, a1 text, a2 text, a3 text, a4 text, a5 text, a6 text, kvk text, c timestamptz, u timestamptz, d text);
      \\copy k from '${at}/klanten.csv' with (format csv, header)\nselect count(*) from k`;
    const script = join(folder, 'copy.sql');
    writeFileSync(script, sql);
    const [customers] = await duckdbCopy(to).sql('select count(*)::INTEGER as count from klanten');
    const printed = await output('psql', ['-XAtq', '-d', context.database.settings.adminUrl, '-f', script]);
    t.is(printed.trim(), String(customers?.count));
  },
);

test.serial('what is in the way of a copy is named', async (t) => {
  const context = t.context as TestContext;
  const taken = duckdbCopy(join(folder, 'taken.duckdb'));
  await taken.sql('create table klanten (id integer)');
  const args = (to: string): string[] => [...usual(context), '--to', to, '--resources', 'klanten'];
  const refused = await runPull([...usual(context), '--to', taken.to]);
  t.regex(refused.stderr, /main\.klanten exists, and is no table of klanten: drop it/);
  t.is(refused.stdout, '', 'before anything is read');
  const typed = duckdbCopy(join(folder, 'typed.duckdb'));
  t.is((await runPull(args(typed.to))).code, 0);
  await typed.sql('alter table klanten alter created_at type varchar');
  const again = JSON.parse((await runPull(args(typed.to))).stdout) as { whole: boolean };
  t.true(again.whole, 'a column of another type gets its own again, and all is read');
  const [column] = await typed.sql(`select typeof(created_at) as type from klanten limit 1`);
  t.is(column?.type, 'TIMESTAMP WITH TIME ZONE');
  t.regex(
    (await runPull(args('postgres://etl@127.0.0.1:1/x'))).stderr,
    /^The destination cannot be reached: .*ECONNREFUSED/,
  );
  writeFileSync(join(folder, 'text.duckdb'), 'not a database, but a text that is long enough');
  t.regex((await runPull(args(join(folder, 'text.duckdb')))).stderr, /text\.duckdb cannot be opened: /);
});

test.serial('without --resources it takes what the token may read, and names the rest', async (t) => {
  const context = t.context as TestContext;
  const token = await context.database.token({ scopes: ['read:klanten'] });
  const run = await runPull([...usual({ ...context, token }), '--to', join(folder, 'new/scoped.duckdb')]);
  t.is(run.code, 0, run.stderr);
  t.is(statSync(join(folder, 'new')).mode & 0o077, 0);
  t.is(run.stderr, 'Not copied, as the token lacks the scope: werkbonnen, installaties, logboeken.\n');
  t.is(run.stdout.trim().split('\n').length, 1);
});
