import { existsSync, mkdirSync, mkdtempSync, readFileSync, symlinkSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { Validator } from '@seriousme/openapi-schema-validator';
import type { ExecutionContext } from 'ava';
import pg from 'pg';
import { ApiError, NoAnswer, type Request, workspaceClient } from '../../client/src/client.js';
import { projectRoot } from '../../src/base/paths.js';
import { output, programMissing, tool, toolsInstalled, toolsMissing, workFolder } from '../support/client-tools.js';
import { listNames, records } from '../support/lists.js';
import { silentChanges } from '../support/pull/copies.js';
import { duckdbCopy } from '../support/pull/copy.js';
import { wireProxy } from '../support/wire-proxy.js';
import { gatewayTest, type TestContext } from '../support/workspace.js';

const test = gatewayTest();
const withTools = toolsInstalled ? test.serial : test.serial.skip;

function programs(page: string, language: string): string[] {
  const text = readFileSync(join(projectRoot, 'docs/use', page), 'utf8').replaceAll('10000', '500');
  const blocks = [...text.matchAll(new RegExp(`^\`\`\`${language}\n(.*?)^\`\`\``, 'gms'))];
  return blocks.map(([, program]) => program as string);
}

async function run(
  { gateway, token }: TestContext,
  folder: string,
  breaks: readonly number[],
  command: readonly string[],
) {
  let [bytes, broken] = [0, 0];
  // Breaks the connection on which the given number of bytes comes through, counted over all responses so far.
  const proxy = await wireProxy(`${gateway.url}/api/v1`, (near, far) => {
    near.on('data', (sent) => far.write(sent));
    far.on('data', (received) => {
      bytes += received.length;
      if (bytes < (breaks[broken] ?? Number.POSITIVE_INFINITY)) return void near.write(received);
      broken++;
      near.resetAndDestroy();
    });
  });
  try {
    const [program, ...args] = command as [string, ...string[]];
    const env = { BASE: proxy.url, TOKEN: token };
    return { printed: await output(program, args, { cwd: folder, env }), broken };
  } finally {
    await proxy.close();
  }
}

const idsOf = (lines: string): string[] =>
  lines
    .trim()
    .split('\n')
    .map((line) => (JSON.parse(line) as { id: string }).id);
const idsIn = async ({ client }: TestContext, list: string): Promise<string[]> =>
  (await records(client, `/${list}?perPage=10000`)).map(({ id }) => id);

interface Installation {
  readonly locatie: string | null;
  readonly version: number;
}

/** Starts a proxy that breaks the connection at numbers of bytes, and instead of answers to writes. */
async function losingProxy(t: ExecutionContext<TestContext>, breaks: number[] = []) {
  const losses = { toWrites: 0, all: 0 };
  let bytes = 0;
  const proxy = await wireProxy(`${t.context.gateway.url}/api/v1`, (near, far) => {
    let isWrite = false;
    near.on('data', (sent) => {
      isWrite = /^(PATCH|POST) /.test(String(sent.subarray(0, 6)));
      far.write(sent);
    });
    far.on('data', (received) => {
      bytes += received.length;
      const isLost = isWrite ? losses.toWrites > 0 : bytes >= (breaks[0] ?? Number.POSITIVE_INFINITY);
      if (!isLost) return void near.write(received);
      if (isWrite) losses.toWrites--;
      else breaks.shift();
      losses.all++;
      near.resetAndDestroy();
    });
  });
  t.teardown(() => proxy.close());
  const options = { base: proxy.url, token: () => t.context.token, firstPauseMs: 1 };
  return {
    losses,
    client: workspaceClient(options),
    impatient: workspaceClient({ ...options, attemptsMax: 2 }),
    options,
  };
}

test.serial('the client reads a list whole over broken connections', async (t) => {
  const { client, losses } = await losingProxy(t, [20_000, 60_000]);
  const ids: string[] = [];
  for await (const { id } of client.listAll<{ id: string }>('werkbonnen', { perPage: 500 })) ids.push(id);
  t.deepEqual([ids, losses.all], [await idsIn(t.context, 'werkbonnen'), 2]);
});

test.serial('the client tries a change and a new record as dry runs, and keeps neither for a repetition', async (t) => {
  const { client, options } = await losingProxy(t);
  const dry = workspaceClient({ ...options, dryRun: true });
  type Known = { id: string; customerId: string };
  const [{ id, customerId }] = (await records<Known>(t.context.client, '/installaties?perPage=1')) as [Known];
  const before = await client.get<Installation>(`installaties/${id}`);
  const keep = () => t.fail('it is not to be repeated');
  const { record, etag } = await dry.change<Installation>(`installaties/${id}`, () => ({ locatie: 'Droog' }), keep);
  t.deepEqual([record.locatie, record.version, etag], ['Droog', before.record.version + 1, null]);
  const tried = await dry.create<{ id: string }>('installaties', { customerId, naam: 'droog' }, keep);
  await t.throwsAsync(client.get(`installaties/${tried.record.id}`), { message: /^404 / });
  await t.throwsAsync(dry.create('installaties', { customerId }), { message: /naam/ });
  t.deepEqual(await client.get<Installation>(`installaties/${id}`), before);
});

test.serial(
  'the client makes each change once, whatever answers are lost and also while another client changes the record',
  async (t) => {
    const { client, impatient, losses } = await losingProxy(t);
    const [{ id }] = (await records(t.context.client, '/installaties?perPage=1')) as [{ id: string }];
    const path = `installaties/${id}`;
    const { version } = (await client.get<Installation>(path)).record;
    losses.toWrites = 2;
    const { record: changed } = await client.change<Installation>(path, () => ({ locatie: 'Dak' }));
    t.like(changed, { locatie: 'Dak', version: version + 1 });
    t.is(losses.all, 2);
    // Another client changes the record between our read and our change.
    const rival = (request: Request) =>
      decided.length === 1
        ? client.change(path, () => ({ merk: request.key?.slice(0, 8) })).then(() => undefined)
        : undefined;
    const decided: (string | null)[] = [];
    const decide = ({ locatie }: Installation) => {
      decided.push(locatie);
      return { locatie: 'Kelder' };
    };
    t.is((await client.change<Installation>(path, decide, rival)).record.version, version + 3);
    t.is(decided.length, 2);
    // A change whose answers are all lost can be stored, and repeated later.
    losses.toWrites = 2;
    const change = impatient.change(path, () => ({ locatie: 'Hal' }));
    const failed = await t.throwsAsync(change, { instanceOf: NoAnswer });
    const repeated = await client.repeat<Installation>(JSON.parse(JSON.stringify(failed?.request)) as Request);
    t.like(repeated.record, { locatie: 'Hal', version: version + 4 });
    const missing = await t.throwsAsync(client.get('installaties/none'), { instanceOf: ApiError });
    t.is(missing?.code, 'not_found');
    const wrong = await t.throwsAsync(client.create('installaties', { naam: '', nummer: 1 }), { instanceOf: ApiError });
    t.true((wrong?.errors.length ?? 0) >= 2, 'all faults');
  },
);

/** Makes a folder in which the package of the client is installed. */
function withClient(): string {
  const folder = mkdtempSync(join(tmpdir(), 'with-client-'));
  mkdirSync(join(folder, 'node_modules'));
  symlinkSync(join(projectRoot, 'client'), join(folder, 'node_modules/workspace-data-client'));
  return folder;
}

const filePrograms: readonly (readonly [page: string, language: string, file: string, command: readonly string[]])[] = [
  ['curl.md', 'sh', 'list.sh', ['sh', 'list.sh', 'werkbonnen']],
  ['node.md', 'js', 'list.mjs', [process.execPath, 'list.mjs', 'werkbonnen']],
];

for (const [page, language, file, command] of filePrograms) {
  const lacks = language === 'sh' ? programMissing('jq', '--version') : '';
  (lacks ? test.serial.skip : test.serial)(
    `docs/use/${page} reads every work order once, over broken connections, and doubles nothing in a second run${lacks}`,
    async (t) => {
      const folder = workFolder({ [file]: programs(page, language)[0] as string }, withClient());
      const expected = await idsIn(t.context, 'werkbonnen');
      for (const breaks of [[20_000, 60_000], [], [100_000]]) {
        const { broken } = await run(t.context, folder, breaks, command);
        t.is(broken, breaks.length);
        t.deepEqual(idsOf(readFileSync(join(folder, 'werkbonnen.ndjson'), 'utf8')), expected);
      }
      const refused = { ...t.context, token: 'wdg_unknown' };
      await t.throwsAsync(
        run(refused, folder, [], command),
        { message: /token_invalid/ },
        'at once, and with the reason',
      );
      if (page === 'curl.md') {
        writeFileSync(join(folder, 'changes.sh'), programs(page, language)[1] as string);
        const before = idsOf(readFileSync(join(folder, 'werkbonnen.ndjson'), 'utf8'));
        await run(t.context, folder, [], ['sh', 'changes.sh']);
        t.deepEqual(idsOf(readFileSync(join(folder, 'werkbonnen.ndjson'), 'utf8')).sort(), before.sort());
        t.true(existsSync(join(folder, 'changes.ndjson')));
      }
    },
  );
}

const noJq = programMissing('jq', '--version');
(noJq ? test.serial.skip : test.serial)(
  `what the README shows in a shell works as it stands, and changes an installation once${noJq}`,
  async (t) => {
    const readme = readFileSync(join(projectRoot, 'README.md'), 'utf8');
    const blocks = [...readme.matchAll(/^```sh\n(.*?)^```/gms)].map(([, block]) => block as string);
    const script = `set -e\n${blocks.join('\n').replaceAll(/^(BASE|TOKEN)=.*$/gm, '')}\nprintf '\\n%s' "$ID"`;
    const folder = workFolder({ 'readme.sh': script });
    const { printed } = await run(t.context, folder, [], ['sh', 'readme.sh']);
    t.true(printed.includes('"pagination":{"page":1,"perPage":1,"count":1'));
    t.regex(printed, /HTTP\/1\.1 200 OK/);
    const id = printed.slice(printed.lastIndexOf('\n') + 1);
    t.is((await t.context.client.get(`/installaties/${id}`)).json<{ locatie: string }>().locatie, 'Kelder');
  },
);

const writers: readonly (readonly [language: string, file: string, command: readonly string[], lacks: string])[] = [
  ['js', 'write.mjs', [process.execPath, 'write.mjs'], ''],
  ['python', 'write.py', ['/usr/bin/python3', 'write.py'], programMissing('/usr/bin/python3', '-c', 'import requests')],
];
for (const [language, file, command, lacks] of writers)
  (lacks ? test.serial.skip : test.serial)(
    `the loop of docs/use/write-safely.md in ${language} changes and creates once, over broken connections${lacks}`,
    async (t) => {
      const folder = workFolder({ [file]: programs('write-safely.md', language)[0] as string });
      const total = async () =>
        (await t.context.client.get('/installaties?perPage=1&total=true')).json<{ pagination: { total: number } }>()
          .pagination.total;
      const before = await total();
      const { printed, broken } = await run(t.context, folder, [1, 2500, 4000], command);
      const [changed = '', created = ''] = printed.trim().split('\n');
      t.true(broken > 0 && changed.endsWith('(nieuw)') && created.startsWith('201 '), printed);
      t.is(await total(), before + 1);
    },
  );

(noJq ? test.serial.skip : withTools)(
  `docs/use/power-automate.md makes a valid OpenAPI 2.0 document of the description, below 1 MB${noJq || toolsMissing}`,
  async (t) => {
    const [convert = ''] = programs('power-automate.md', 'sh');
    const folder = workFolder({ 'convert.sh': `set -e\n${convert}` });
    await run(t.context, folder, [], ['sh', 'convert.sh']);
    const read = (file: string) => JSON.parse(readFileSync(join(folder, file), 'utf8'));
    for (const file of ['openapi-3.0.json', 'openapi-2.0.json'])
      t.deepEqual(await new Validator().validate(read(file)), { valid: true }, file);
    t.true(readFileSync(join(folder, 'openapi-2.0.json')).byteLength < 1_000_000);
    const operations = Object.values(
      read('openapi-2.0.json').paths as Record<string, Record<string, { operationId: string }>>,
    )
      .flatMap((item) => Object.values(item))
      .map(({ operationId }) => operationId);
    t.true(operations.includes('listWerkbonnen') && operations.includes('createInstallatie'));
  },
);

test.serial('the certificate that docs/operate/maintenance.md makes is of its authority, for its host', async (t) => {
  const cwd = workFolder({ 'make.sh': programs('../operate/maintenance.md', 'sh')[0] as string });
  await output('sh', ['-e', 'make.sh'], { cwd });
  const verify = ['verify', '-CAfile', 'ca.crt', '-verify_hostname', 'primary.internal', 'server.crt'];
  t.is(await output('openssl', verify, { cwd }), 'server.crt: OK\n');
});

const tsc = join(projectRoot, 'node_modules/.bin/tsc');
withTools(`docs/use/node.md compiles under tsc --strict and walks all four lists${toolsMissing}`, async (t) => {
  const document = (await t.context.client.get('/openapi.json')).text;
  const source = programs('node.md', 'ts')[0] as string;
  const folder = workFolder({ 'openapi.json': document, 'walk.ts': source, 'package.json': '{"type":"module"}' });
  await output(tool('openapi-typescript'), ['openapi.json', '-o', 'api.ts'], { cwd: folder });
  const flags = '--strict --target es2022 --module nodenext --skipLibCheck --types node --typeRoots';
  const options = [...flags.split(' '), join(projectRoot, 'node_modules/@types')];
  await output(tsc, [...options, 'walk.ts'], { cwd: folder });
  const { printed } = await run(t.context, folder, [], [process.execPath, 'walk.js']);
  const counts = await Promise.all(listNames.map(async (list) => `${list} ${(await idsIn(t.context, list)).length}`));
  t.deepEqual(printed.trim().split('\n').sort(), counts.sort());
  writeFileSync(
    join(folder, 'wrong.ts'),
    `${source}\nclient.GET('/klanten', { params: { query: { perPage: 'all' } } });`,
  );
  await t.throwsAsync(output(tsc, [...options, 'wrong.ts'], { cwd: folder }), { message: /TS2322/ });
});

test.serial('docs/use/duckdb.md makes a table of work orders with types, of an empty list as well', async (t) => {
  const folder = workFolder({});
  const [create = '', perMonth = '', change = ''] = programs('duckdb.md', 'sql').map((sql) =>
    sql.replaceAll("'werkbonnen.ndjson'", `'${folder}/werkbonnen.ndjson'`),
  );
  const { sql } = duckdbCopy(join(folder, 'copy.duckdb'));
  const rows = await records<{ id: string; uren: { uren: number }[] }>(t.context.client, '/werkbonnen?perPage=10000');
  writeFileSync(join(folder, 'werkbonnen.ndjson'), rows.map((row) => `${JSON.stringify(row)}\n`).join(''));
  const months = await sql(create, 'create table changes as from werkbonnen limit 100;', change, perMonth);
  const hours = rows.flatMap(({ uren }) => uren).reduce((sum, { uren }) => sum + uren * 100, 0);
  const orders = months.reduce((sum, row) => sum + Number(row.orders), 0);
  t.is(orders, rows.length);
  t.is(Math.round(months.reduce((sum, row) => sum + Number(row.hours) * 100, 0)), Math.round(hours));
  writeFileSync(join(folder, 'werkbonnen.ndjson'), '');
  const columns = await sql(create, 'describe werkbonnen');
  const names = columns.map(({ column_name }) => column_name);
  t.deepEqual(names, Object.keys(rows[0] as object));
  t.is(columns.find(({ column_name }) => column_name === 'datum')?.column_type, 'DATE');
});

const python = '/usr/bin/python3';
const noPandas = programMissing(python, '-c', 'import pandas, requests');
(noPandas ? test.serial.skip : test.serial)(
  `docs/use/python.md reads every work order once into a data frame, over broken connections${noPandas}`,
  async (t) => {
    const folder = workFolder({ 'orders.py': programs('python.md', 'python')[0] as string });
    const { broken } = await run(t.context, folder, [20_000, 60_000], [python, 'orders.py']);
    t.is(broken, 2);
    const rows = await records<{ id: string; uren: object[] }>(t.context.client, '/werkbonnen?perPage=10000');
    const csv = readFileSync(join(folder, 'werkbonnen.csv'), 'utf8');
    const ids = [...csv.matchAll(/^([0-9a-f-]{36}),/gm)].map(([, id]) => id);
    t.deepEqual(
      ids,
      rows.map(({ id }) => id),
    );
    const hours = readFileSync(join(folder, 'uren.csv'), 'utf8').trim().split('\n');
    t.is(hours.length - 1, rows.flatMap(({ uren }) => uren).length);
  },
);

const noRequests = programMissing(python, '-c', 'import requests');
const noDlt = programMissing(python, '-c', 'import dlt, duckdb');
const keepers: readonly (readonly [by: string, lacks: string, program: string])[] = [
  [
    'by itself',
    noRequests,
    `${programs('sync.md', 'python')[2]}
print(json.dumps([[id, [hour["id"] for hour in record["uren"]]] for id, record in copy.items()]))`,
  ],
  [
    'by dlt',
    noDlt,
    `import contextlib, json, sys
import duckdb
with contextlib.redirect_stdout(sys.stderr):
    import load
rows = duckdb.connect("installer.duckdb").sql("""select w.id, coalesce(list(u.id) filter (u.id is not null), [])
    from installer.werkbonnen w left join installer.werkbonnen__uren u on u._dlt_parent_id = w._dlt_id group by 1""").fetchall()
print(json.dumps(rows))`,
  ],
];

for (const [by, lacks, program] of keepers)
  (lacks ? test.serial.skip : test.serial)(
    `the client of docs/use/sync.md keeps an equal copy ${by}, whatever changes, late commits and deletions included${lacks}`,
    async (t) => {
      const [digest = '', sync = ''] = programs('sync.md', 'python');
      const load = programs('python.md', 'python').at(-1) as string;
      const folder = workFolder({ 'digest.py': digest, 'sync.py': sync, 'load.py': load, 'keep.py': program });
      const { client, database } = t.context;
      const workspace = database.workspaces[0]?.id;
      const assertEqual = async (): Promise<void> => {
        await database.caughtUp();
        const { printed } = await run(t.context, folder, [], [python, 'keep.py']);
        const found = new Map(JSON.parse(printed) as [string, string[]][]);
        const rows = await records<{ id: string; uren: { id: string }[] }>(client, '/werkbonnen?perPage=10000');
        t.deepEqual([...found.keys()].sort(), rows.map(({ id }) => id).sort());
        for (const { id, uren } of rows) t.deepEqual(found.get(id)?.sort(), uren.map((hour) => hour.id).sort());
      };
      await assertEqual();
      const late = new pg.Client(database.settings.adminUrl);
      await late.connect();
      await late.query('begin');
      await late.query(silentChanges['an hour is added'] as string, [workspace]);
      for (const change of Object.values(silentChanges)) await database.primary.query(change, [workspace]);
      await assertEqual();
      await late.query('commit');
      await late.end();
      await assertEqual();
    },
  );

const noR = programMissing('Rscript', '-e', 'library(httr2); library(jsonlite)');
(noR ? test.serial.skip : test.serial)(
  `docs/use/r.md reads every work order once into a data frame${noR}`,
  async (t) => {
    const folder = workFolder({ 'orders.R': programs('r.md', 'r')[0] as string });
    await run(t.context, folder, [], ['Rscript', 'orders.R']);
    const csv = readFileSync(join(folder, 'werkbonnen.csv'), 'utf8');
    const ids = [...csv.matchAll(/^"([0-9a-f-]{36})",/gm)].map(([, id]) => id);
    t.deepEqual(ids, await idsIn(t.context, 'werkbonnen'));
  },
);
