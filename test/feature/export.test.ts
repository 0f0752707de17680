import { execFile } from 'node:child_process';
import { createHash, generateKeyPairSync } from 'node:crypto';
import {
  cpSync,
  existsSync,
  mkdirSync,
  mkdtempSync,
  readdirSync,
  readFileSync,
  readlinkSync,
  rmSync,
  statSync,
  symlinkSync,
  truncateSync,
  writeFileSync,
} from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { promisify } from 'node:util';
import { gunzipSync } from 'node:zlib';
import pg from 'pg';
import { projectRoot } from '../../src/base/paths.js';
import { readBatches } from '../../src/operate/export/records.js';
import { chooseResources, type Manifest, runInSnapshot } from '../../src/operate/export/workspace-export.js';
import { commandLine, connections } from '../support/command-line.js';
import { environmentOf } from '../support/environment.js';
import { listNames } from '../support/lists.js';
import { until } from '../support/patience.js';
import { gatewayTest, type TestContext } from '../support/workspace.js';

const test = gatewayTest();
const folder = mkdtempSync(join(tmpdir(), 'export-'));
test.after.always(() => rmSync(folder, { recursive: true }));
for (const name of ['right', 'wrong']) {
  const { privateKey, publicKey } = generateKeyPairSync('ed25519');
  writeFileSync(join(folder, `${name}.pem`), privateKey.export({ type: 'pkcs8', format: 'pem' }));
  writeFileSync(join(folder, `${name}.pub`), publicKey.export({ type: 'spki', format: 'pem' }));
}
const signed = ['--sign', join(folder, 'right.pem')];
const verified = (dir: string, key = 'right', settings = {}) =>
  commandLine(['export', '--verify', dir, '--key', join(folder, `${key}.pub`)], settings);

const workspaceOf = ({ database }: TestContext): string => database.workspaces[0]?.id as string;
const exported = (context: TestContext, out: string, ...more: string[]) =>
  commandLine(
    ['export', '--workspace', workspaceOf(context), '--out', join(folder, out), ...more],
    connections(context.database),
  );
const manifestOf = (out: string) => JSON.parse(readFileSync(join(folder, out, 'manifest.json'), 'utf8')) as Manifest;

const linesIn = (content: Buffer) => content.toString().trimEnd().split('\n');

/** The lines are the records of the list, each the bytes that the API sends except for line breaks between values. */
async function areListed({ client }: TestContext, list: string, lines: readonly string[], days = ''): Promise<boolean> {
  let at = 0;
  for (let path: string | null = `/${list}?perPage=700${days}`; path !== null; ) {
    const { text, json } = await client.get(path);
    const { pagination } = json<{ pagination: { count: number; next: string | null } }>();
    const data = `{"data":[${lines.slice(at, at + pagination.count).join(',')}],"pagination":`;
    if (!text.replaceAll('\n', ' ').startsWith(data)) return false;
    at += pagination.count;
    path = pagination.next === null ? null : pagination.next.slice(pagination.next.indexOf(`/${list}?`));
  }
  return at === lines.length;
}

test.serial(
  'an export has the records of every list byte for byte, with counts and hashes, for its owner alone',
  async (t) => {
    await t.context.database.caughtUp();
    const { code, stdout, stderr } = await exported(t.context, 'whole');
    t.is(code, 0, stderr);
    t.regex(stdout, /werkbonnen\.ndjson: \d+ records/);
    const { files, snapshot } = manifestOf('whole');
    t.true(snapshot.isReplica);
    t.deepEqual(files.map(({ resource }) => resource).sort(), [...listNames].sort());
    for (const { resource, file, records, bytes, sha256 } of files) {
      const path = join(folder, 'whole', file);
      const content = readFileSync(path);
      const lines = linesIn(content);
      t.is(lines.length, records, resource);
      t.is(content.length, bytes);
      t.is(createHash('sha256').update(content).digest('hex'), sha256);
      t.is(statSync(path).mode & 0o777, 0o600);
      t.true(await areListed(t.context, resource, lines), resource);
    }
    t.is(statSync(join(folder, 'whole')).mode & 0o777, 0o700);
  },
);

test.serial('an export of one resource from the primary can be compressed', async (t) => {
  symlinkSync('nowhere', join(folder, 'dangling'));
  const args = ['--resources', 'klanten', '--server', 'primary', '--gzip', ...signed];
  const { code, stderr } = await exported(t.context, 'one', ...args);
  t.is(code, 0, stderr);
  const { files, snapshot } = manifestOf('one');
  t.false(snapshot.isReplica);
  t.deepEqual(readdirSync(join(folder, 'one')).sort(), ['klanten.ndjson.gz', 'manifest.json', 'manifest.json.sig']);
  const file = join(folder, 'one/klanten.ndjson.gz');
  t.is(linesIn(gunzipSync(readFileSync(file))).length, files[0]?.records as number);
  const database = connections(t.context.database);
  t.is((await verified(join(folder, 'one'), 'right', database)).code, 0);
  truncateSync(file, statSync(file).size - 20);
  t.regex((await verified(join(folder, 'one'), 'right', database)).stderr, /klanten\.ndjson\.gz was changed/);
});

test.serial(
  'an export that cannot be made says why in a sentence, exits with 1 and leaves nothing behind',
  async (t) => {
    const settings = connections(t.context.database);
    const args = (workspace: string) => ['export', '--workspace', workspace, '--out', join(folder, 'none')];
    const run = (workspace: string, ...more: string[]) => commandLine([...args(workspace), ...more], settings);
    const absent = 'postgres://gateway_reader@127.0.0.1:1/none';
    const own = workspaceOf(t.context);
    mkdirSync(join(folder, 'full'));
    writeFileSync(join(folder, 'full/note.txt'), 'keep me');
    const cases: readonly (readonly [ReturnType<typeof run>, RegExp])[] = [
      [run('00000000-0000-4000-8000-000000000000'), /^Workspace 0{8}\S+ has no record of installaties, klanten/],
      [run('De Vries'), /not an id of the form that the app uses/],
      [run(own, '--resources', 'klant'), /There is no resource "klant": did you mean klanten\?/],
      [run(own, '--out', join(folder, 'full')), /full is not empty/],
      [
        run(own, '--out', join(folder, 'gone/new'), ...signed),
        /^There is no folder \S+\/gone for the.* Make it first\.$/m,
      ],
      [commandLine(args(own), { ...settings, replicaUrls: absent }), /No server of REPLICA_URLS can be reached/],
    ];
    for (const [running, message] of cases) {
      const { code, stderr } = await running;
      t.is(code, 1, stderr);
      t.regex(stderr, message);
    }
    t.false(existsSync(join(folder, 'none')));
    t.deepEqual(readdirSync(join(folder, 'full')), ['note.txt']);
    const hidden = readdirSync(folder).filter((name) => name.startsWith('.'));
    t.deepEqual(hidden, []);
  },
);

test.serial('an export takes heavy rows after light ones in pieces of a few megabytes', async (t) => {
  const { database } = t.context;
  const workspace = workspaceOf(t.context);
  const heavy = `insert into app.installaties (id, workspace_id, klant_id, naam, omschrijving, created_at)
    select gen_random_uuid(), $1, klant_id, 'x', repeat('text ', 200000), '2100-01-01'
    from (select klant_id from app.installaties where workspace_id = $1 limit 1) k, generate_series(1, 24)`;
  const sending = `select from pg_stat_activity where query like '%installaties%' and pid <> pg_backend_pid()
    and state = 'active' and coalesce(wait_event, '') not in ('ClientWrite', 'ClientRead')`;
  const waits = async (): Promise<boolean> => (await database.primary.query(sending)).rowCount === 0;
  await database.primary.query(heavy, [workspace]);
  try {
    const sizes: number[] = [];
    for (const compiled of await chooseResources(database.settings, ['installaties']))
      await runInSnapshot(database.settings, { workspace, server: 'primary' }, async (snapshot) => {
        const batches = readBatches(snapshot, compiled, workspace, { filters: [], values: {} });
        for await (const { length } of batches) {
          sizes.push(length);
          t.true(await until(waits, 10_000), 'the server waits until the piece is taken');
        }
      });
    t.true(sizes.reduce((sum, size) => sum + size) > 24_000_000, sizes.join());
    t.true(Math.max(...sizes) < 4_000_000, sizes.join());
  } finally {
    await database.primary.query(`delete from app.installaties where created_at = '2100-01-01'`);
  }
});

test.serial('an export reads the next server when the first refuses the login', async (t) => {
  const settings = connections(t.context.database);
  const replicaUrls = `${settings.replicaUrls?.replace(/\/[^/]*$/, '/nowhere')} ${settings.replicaUrls}`;
  const out = join(folder, 'second');
  const args = ['export', '--workspace', workspaceOf(t.context), '--out', out, '--resources', 'klanten'];
  const { code, stderr } = await commandLine(args, { ...settings, replicaUrls });
  t.is(code, 0, stderr);
});

test.serial('an export whose disk takes no more leaves nothing behind', async (t) => {
  const out = join(folder, 'limited');
  const main = join(projectRoot, 'dist/src/main.js');
  const line = `ulimit -f 64; exec "${process.execPath}" "${main}" export --workspace ${workspaceOf(t.context)} --out "${out}"`;
  const env = { PATH: process.env.PATH, ...environmentOf(connections(t.context.database)) };
  const error = await promisify(execFile)('sh', ['-c', line], { env }).then(
    () => null,
    (failed: { code: number; stderr: string }) => failed,
  );
  t.is(error?.code, 1, error?.stderr);
  t.regex(error?.stderr ?? '', /EFBIG|too large/);
  const left = readdirSync(folder).filter((name) => name.includes('limited'));
  t.deepEqual(left, []);
});

test.serial('an export whose server ends the connection says so and leaves nothing behind', async (t) => {
  const { database } = t.context;
  const blocker = new pg.Client(database.settings.adminUrl);
  await blocker.connect();
  t.teardown(() => blocker.end());
  await blocker.query('begin');
  await blocker.query('lock table app.werkbonnen in access exclusive mode');
  const running = exported(t.context, 'lost', '--server', 'primary');
  const waiting = `select pid from pg_stat_activity
    where datname = current_database() and wait_event_type = 'Lock' and pid <> pg_backend_pid() and query like '%werkbonnen%'`;
  await until(async () => (await database.primary.query(waiting)).rows.length === 1, 10_000);
  await database.primary.query(`select pg_terminate_backend(pid) from (${waiting}) as waiting`);
  const { code, stderr } = await running;
  t.is(code, 1, stderr);
  t.regex(stderr, /The server ended the connection during the export/);
  t.false(existsSync(join(folder, 'lost')));
});

/** Exports three days of the log, signed and chained. */
async function signedDays(context: TestContext) {
  const evidence = join(folder, 'evidence');
  mkdirSync(evidence);
  const stranger = join(evidence, 'manifest.json'); // an export passes it over, and a verification does not
  writeFileSync(stranger, '{"name": "A site"}');
  const sql = `select to_char(tijdstip at time zone 'Europe/Amsterdam', 'YYYY-MM-DD') as day
    from app.logboeken where workspace_id = $1 group by day having count(*) > 2 order by day limit 3`;
  const { rows } = await context.database.primary.query<{ day: string }>(sql, [workspaceOf(context)]);
  const days = rows.map(({ day }) => day);
  for (const day of days) {
    const period = ['--resources', 'logboeken', '--from', day, '--to', day];
    const { code, stderr } = await exported(context, `evidence/${day}`, ...period, ...signed);
    if (code !== 0) throw new Error(stderr);
  }
  rmSync(stranger);
  return { evidence, days, second: join(evidence, days[1] as string) };
}

type Damage = readonly [change: (day: string) => void, alone: RegExp, beside?: RegExp];

const inLines = (beside: RegExp, change: (first: string, second: string) => string[]): Damage => [
  (day) => {
    const file = join(day, 'logboeken.ndjson');
    const [first = '', second = '', ...others] = readFileSync(file, 'utf8').split('\n');
    writeFileSync(file, [...change(first, second), ...others].join('\n'));
  },
  /logboeken\.ndjson was changed/,
  beside,
];

/** Changes of the second of three days, with the fault that an auditor reads, and the one beside the database. */
const damages: readonly Damage[] = [
  inLines(/line 1: the export has record \S+ otherwise/, (a, b) => [a.replace(/"tijdstip": ?"2/, '$&2'), b]),
  inLines(/line 2: the export lacks record \S+ of the/, (a) => [a]),
  inLines(/line 1: the export has record \S+ where the database has/, (a, b) => [b, a]),
  inLines(/line 2: the export has record \S+, which the database lacks/, (a, b) => [
    a,
    a.replace(/"id": ?"/, '$&x'),
    b,
  ]),
  [(day) => rmSync(day, { recursive: true }), /The manifest before it is missing/],
  [(day) => cpSync(day, `${day}-twin`, { recursive: true }), /same place in the chain as .*-twin/],
  [(day) => rmSync(join(day, 'logboeken.ndjson')), /logboeken\.ndjson is missing/],
  [(day) => writeFileSync(join(day, 'manifest.json.old'), ''), /manifest\.json\.old is not in the manifest/],
  [(day) => rmSync(join(day, 'manifest.json.sig')), /manifest\.json\.sig is missing/],
  [
    (day) => writeFileSync(join(day, '../manifest.json'), '{"name": "A site"}'),
    /damaged-\d+: it has no manifest\.json of an/,
  ],
  [(day) => ['', '.sig'].map((end) => rmSync(join(day, `manifest.json${end}`))), /so nothing in it is proved/],
  [
    (day) => writeFileSync(join(day, 'manifest.json'), ' ', { flag: 'a' }),
    /manifest\.json was changed, or another key/,
  ],
];

/** Lists the files below the folder that this process has open. */
function listOpenFiles(folder: string): string[] {
  const ids = existsSync('/proc/self/fd') ? readdirSync('/proc/self/fd') : [];
  const paths = ids.map((id) => `/proc/self/fd/${id}`).filter((path) => existsSync(path));
  return paths.map((path) => readlinkSync(path)).filter((path) => path.startsWith(folder));
}

test.serial('signed days of the log are what the list shows, and each change is named', async (t) => {
  const { evidence, days, second } = await signedDays(t.context);
  const database = connections(t.context.database);
  for (const day of days) {
    const lines = linesIn(readFileSync(join(evidence, day, 'logboeken.ndjson')));
    t.true(await areListed(t.context, 'logboeken', lines, `&from=${day}&to=${day}`), day);
  }
  const compared = await verified(evidence, 'right', database);
  t.is(compared.code, 0, compared.stderr);
  t.regex(compared.stdout, /compared with a replica/);
  t.is((await verified(second)).code, 0);
  const key = ['pkeyutl', '-verify', '-pubin', '-inkey', join(folder, 'right.pub'), '-rawin'];
  const files = ['-in', join(second, 'manifest.json'), '-sigfile', join(second, 'manifest.json.sig')];
  t.regex((await promisify(execFile)('openssl', [...key, ...files])).stdout, /Verified Successfully/);
  t.regex((await verified(evidence, 'wrong')).stderr, /another key has signed it/);
  for (const [i, [change, alone, beside = alone]] of damages.entries()) {
    const copy = join(folder, `damaged-${i}`);
    cpSync(evidence, copy, { recursive: true });
    change(join(copy, days[1] as string));
    const [found, foundBeside] = [await verified(copy), await verified(copy, 'right', database)];
    t.deepEqual([found.code, foundBeside.code], [1, 1], String(alone));
    t.regex(found.stderr, alone);
    t.regex(foundBeside.stderr, beside);
  }
  t.deepEqual(listOpenFiles(folder), [], 'a difference ends the reading');
  const resourcesDir = join(folder, 'resources');
  cpSync(join(projectRoot, 'config/resources'), resourcesDir, { recursive: true });
  const definition = join(resourcesDir, 'logboeken.json');
  writeFileSync(definition, readFileSync(definition, 'utf8').replace('"rol": "text",', ''));
  const otherwise = await verified(second, 'right', { ...database, resourcesDir });
  t.regex(otherwise.stderr, /the definition of logboeken was another/);
});

test.serial(
  'days and keys that an export cannot take are named, and a month without entries is an export',
  async (t) => {
    const run = (...more: string[]) => exported(t.context, 'no-days', ...more);
    const march = ['--from', '2026-03-01', '--to', '2026-03-31'];
    const log = ['--resources', 'logboeken', '--from'];
    t.regex((await run(...march)).stderr, /(installaties|klanten) has no dates for --from and --to/);
    t.regex((await run(...log, '2026-02-30')).stderr, /--from must be a calendar date/);
    t.regex((await run(...log, '2026-03-02', '--to', '2026-03-01')).stderr, /--from is after/);
    t.regex((await run('--sign', join(projectRoot, 'package.json'))).stderr, /no key of Ed25519/);
    t.is((await run('--verify', folder)).code, 2);
    t.false(existsSync(join(folder, 'no-days')));
    const { code, stderr } = await run(...log, '1999-03-01', '--to', '1999-03-31');
    t.is(code, 0, stderr);
    t.is(manifestOf('no-days').files[0]?.records, 0);
  },
);
