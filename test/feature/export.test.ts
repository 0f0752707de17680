import { execFile } from 'node:child_process';
import { createHash } from 'node:crypto';
import {
  existsSync,
  mkdirSync,
  mkdtempSync,
  readdirSync,
  readFileSync,
  rmSync,
  statSync,
  writeFileSync,
} from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { promisify } from 'node:util';
import { gunzipSync } from 'node:zlib';
import pg from 'pg';
import { projectRoot } from '../../src/base/paths.js';
import type { Manifest } from '../../src/operate/export/export.js';
import { commandLine, connections } from '../support/command-line.js';
import { environmentOf } from '../support/environment.js';
import { listNames } from '../support/lists.js';
import { until } from '../support/patience.js';
import { gatewayTest, type TestContext } from '../support/workspace.js';

const test = gatewayTest();
const folder = mkdtempSync(join(tmpdir(), 'export-'));
test.after.always(() => rmSync(folder, { recursive: true }));

const workspaceOf = ({ database }: TestContext): string => database.workspaces[0]?.id as string;
const exported = (context: TestContext, out: string, ...more: string[]) =>
  commandLine(
    ['export', '--workspace', workspaceOf(context), '--out', join(folder, out), ...more],
    connections(context.database),
  );
const manifestOf = (out: string) => JSON.parse(readFileSync(join(folder, out, 'manifest.json'), 'utf8')) as Manifest;

/** Whether the lines are the records of the list, each the bytes that the API sends but for line breaks between values. */
async function areListed({ client }: TestContext, list: string, lines: readonly string[]): Promise<boolean> {
  let at = 0;
  for (let path: string | null = `/${list}?perPage=700`; path !== null; ) {
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
      const lines = content.toString().split('\n').slice(0, -1);
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
  const { code, stderr } = await exported(t.context, 'one', '--resources', 'klanten', '--from', 'primary', '--gzip');
  t.is(code, 0, stderr);
  const { files, snapshot } = manifestOf('one');
  t.false(snapshot.isReplica);
  t.deepEqual(readdirSync(join(folder, 'one')).sort(), ['klanten.ndjson.gz', 'manifest.json']);
  const lines = gunzipSync(readFileSync(join(folder, 'one/klanten.ndjson.gz')))
    .toString()
    .trimEnd()
    .split('\n');
  t.is(lines.length, files[0]?.records as number);
});

test.serial(
  'an export that cannot be made says why in a sentence, exits with 1 and leaves nothing behind',
  async (t) => {
    const settings = connections(t.context.database);
    const run = (workspace: string, ...more: string[]) =>
      commandLine(['export', '--workspace', workspace, '--out', join(folder, 'none'), ...more], settings);
    const own = workspaceOf(t.context);
    mkdirSync(join(folder, 'full'));
    writeFileSync(join(folder, 'full/note.txt'), 'keep me');
    const cases: readonly (readonly [ReturnType<typeof run>, RegExp])[] = [
      [run('00000000-0000-4000-8000-000000000000'), /^Workspace 0{8}\S+ has no record of installaties, klanten/],
      [run('De Vries'), /not an id of the form that the app uses/],
      [run(own, '--resources', 'klant'), /There is no resource "klant": did you mean klanten\?/],
      [run(own, '--out', join(folder, 'full')), /full is not empty/],
      [
        commandLine(['export', '--workspace', own, '--out', join(folder, 'none')], {
          ...settings,
          replicaUrls: 'postgres://gateway_reader@127.0.0.1:1/none',
        }),
        /No server of REPLICA_URLS can be reached/,
      ],
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
  const running = exported(t.context, 'lost', '--from', 'primary');
  const waiting = `select pid from pg_stat_activity
    where datname = current_database() and wait_event_type = 'Lock' and pid <> pg_backend_pid() and query like '%werkbonnen%'`;
  await until(async () => (await database.primary.query(waiting)).rows.length === 1, 10_000);
  await database.primary.query(`select pg_terminate_backend(pid) from (${waiting}) as waiting`);
  const { code, stderr } = await running;
  t.is(code, 1, stderr);
  t.regex(stderr, /The server ended the connection during the export/);
  t.false(existsSync(join(folder, 'lost')));
});
