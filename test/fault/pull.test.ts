import { type ChildProcess, spawn, spawnSync } from 'node:child_process';
import { mkdtemp, rm, writeFile } from 'node:fs/promises';
import { createServer, type ServerResponse } from 'node:http';
import type { AddressInfo } from 'node:net';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import test, { type ExecutionContext } from 'ava';
import { asAdmin } from '../../src/db/admin.js';
import { projectRoot } from '../../src/paths.js';
import { recordsIn } from '../support/directory-copy.js';
import { type FaultCluster, type FaultGateway, faultCluster } from '../support/fault-cluster.js';
import { syncWriters } from '../support/sync-writers.js';
import { templateName } from '../support/template.js';

let setUp: FaultCluster;
let gateway: FaultGateway;
let folder: string;
let token: string;
let copyUrl: string;
let copyFolder: string;

test.before(async () => {
  setUp = await faultCluster({ replicas: 1, settings: { max_prepared_transactions: '20' } });
  gateway = await setUp.gateway({ largePagesPerToken: 50, largePagesPerWorkspace: 50 });
  folder = await mkdtemp(join(tmpdir(), 'pull-'));
  token = await setUp.token({ workspace: 1 });
  await writeFile(join(folder, 'token'), `${token}\n`);
  await writeFile(join(folder, 'token-of-large'), await setUp.token({ workspace: 0 }));
  await setUp.cluster.primary.query('create database copy');
  copyUrl = setUp.cluster.primary.url('copy');
  copyFolder = join(folder, 'copy');
});
test.after.always(async () => {
  await setUp?.stop();
  await rm(folder, { recursive: true, force: true });
});

interface Run {
  readonly code: number | null;
  readonly stdout: string;
  readonly stderr: string;
}

interface Running {
  readonly child: ChildProcess;
  readonly ended: Promise<Run>;
}

/** The command line of `pull` from the gateway into the database, except for options that `more` has. */
function commandOf(more: readonly string[]): string[] {
  const usual = { '--base': gateway.gateway.url, '--token-file': join(folder, 'token'), '--to': copyUrl };
  const others = Object.entries(usual).filter(([option]) => !more.includes(option));
  return [process.execPath, join(projectRoot, 'dist/pull/main.js'), ...others.flat(), ...more];
}

function start(more: readonly string[]): Running {
  const [program, ...args] = commandOf(more) as [string, ...string[]];
  return running(program, args);
}

function running(program: string, args: readonly string[]): Running {
  const child = spawn(program, args, { env: { PATH: process.env.PATH }, stdio: ['ignore', 'pipe', 'pipe'] });
  let [stdout, stderr] = ['', ''];
  child.stdout.on('data', (bytes: Buffer) => (stdout += bytes.toString()));
  child.stderr.on('data', (bytes: Buffer) => (stderr += bytes.toString()));
  const ended = new Promise<Run>((resolve) => child.on('close', (code) => resolve({ code, stdout, stderr })));
  return { child, ended };
}

/** Runs `pull`; it is killed with -9 after `killMs`, if given. */
async function pull(more: readonly string[] = [], killMs?: number): Promise<Run> {
  const { child, ended } = start(more);
  const timer = killMs === undefined ? undefined : setTimeout(() => child.kill('SIGKILL'), killMs);
  const run = await ended;
  clearTimeout(timer);
  return run;
}

/** A list of the API, whose numbers JavaScript would round. */
async function listText(resource: string): Promise<string> {
  const headers = { authorization: `Bearer ${token}` };
  return (await fetch(gateway.url(`/${resource}?perPage=100000`), { headers })).text();
}

/** The records of the database and of the API that differ. */
async function differences(resource: string): Promise<string[]> {
  const body = await listText(resource);
  return asAdmin(copyUrl, async (client) => {
    const { rows } = await client.query<{ id: string }>(
      `with api as (select r.* from jsonb_populate_recordset(null::workspace_data.${resource}, $1::jsonb -> 'data') r)
       select id from ((table api except table workspace_data.${resource}) union all (table workspace_data.${resource} except table api)) d`,
      [body],
    );
    return rows.map(({ id }) => `${resource} ${id}`);
  });
}

/** The records of the folder and of the API that differ. */
async function folderDifferences(resource: string): Promise<string[]> {
  const body = await listText(resource);
  const copied = [...recordsIn(join(copyFolder, resource)).values()];
  const [result] = await setUp.sql<{ ids: string[]; count: number }>(
    `with api as (select value from jsonb_array_elements($1::jsonb -> 'data')), copy as (select value from jsonb_array_elements($2::jsonb))
     select array(select value ->> 'id' from ((table api except table copy) union all (table copy except table api)) d) as ids,
       (select count(*)::int from api) as count`,
    [body, `[${copied.join(',')}]`],
  );
  return result?.count === copied.length ? result.ids : [`${copied.length} of ${result?.count} records`];
}

const resources = ['klanten', 'installaties', 'werkbonnen', 'logboeken'];

async function assertEqual(t: ExecutionContext): Promise<void> {
  for (const resource of resources) t.deepEqual(await differences(resource), [], resource);
}

async function assertFolderEqual(t: ExecutionContext): Promise<void> {
  for (const resource of resources) t.deepEqual(await folderDifferences(resource), [], resource);
}

test.serial('pull makes a copy that equals the API, keeps it so, and repairs one that was tampered with', async (t) => {
  const first = await pull();
  t.is(first.code, 0, first.stderr);
  t.is(first.stdout.trim().split('\n').length, 4);
  await assertEqual(t);
  await asAdmin(copyUrl, async (client) => {
    await client.query(
      `delete from workspace_data.werkbonnen where id in (select id from workspace_data.werkbonnen limit 3)`,
    );
    await client.query(`insert into workspace_data.klanten (id) values ('extra')`);
  });
  const verified = await pull(['--verify']);
  t.is(verified.code, 0, verified.stderr);
  t.true(verified.stdout.includes('{"resource":"werkbonnen","deleted":0,"added":3}'), verified.stdout);
  t.true(verified.stdout.includes('{"resource":"klanten","deleted":1,"added":0}'), verified.stdout);
  await assertEqual(t);
});

test.serial('pull that is killed with -9 again and again while the app writes ends with an equal copy', async (t) => {
  const workspace = setUp.workspaces[1]?.id as string;
  const writers = await syncWriters(setUp.cluster.primary.url(templateName), workspace, 500);
  writers.resume();
  const toFolder = ['--to', copyFolder];
  const killMs = (): number => 150 + Math.random() * 700;
  for (let i = 0; i < 8; i++) await Promise.all([pull([], killMs()), pull(toFolder, killMs())]);
  await writers.pause();
  await setUp.caughtUp();
  for (const last of await Promise.all([pull(), pull(toFolder)])) t.is(last.code, 0, last.stderr);
  t.true(writers.changes() > 50);
  await assertEqual(t);
  await assertFolderEqual(t);
});

/** Deletes a work order with its parts. */
const deleteWorkOrder = `with gone as (select id from app.werkbonnen where workspace_id = $1 limit 1),
    actions as (delete from app.werkbon_handelingen where werkbon_id in (select id from gone)),
    hours as (delete from app.werkbon_uren where werkbon_id in (select id from gone))
  delete from app.werkbonnen where id in (select id from gone) returning id::text`;

test.serial('a folder that lacks records and has others is put right', async (t) => {
  const [gone] = await setUp.sql<{ id: string }>(deleteWorkOrder, [setUp.workspaces[1]?.id]);
  t.truthy(gone);
  await setUp.caughtUp();
  const toFolder = ['--to', copyFolder, '--resources', 'werkbonnen'];
  const verified = await pull([...toFolder, '--verify']);
  t.is(verified.stdout, '{"resource":"werkbonnen","deleted":1,"added":0}\n', verified.stderr);
  await assertFolderEqual(t);
});

for (const place of ['database', 'folder']) {
  test.serial(`a second process refuses the ${place} of a first, which SIGTERM ends with 0`, async (t) => {
    const to = ['--to', place === 'folder' ? copyFolder : copyUrl];
    const { child, ended } = start([...to, '--every', '1h']);
    await Promise.race([ended, new Promise((resolve) => child.stdout?.once('data', resolve))]); // its first pass has ended
    const second = await pull([...to, '--verify', '--resources', 'klanten']);
    child.kill('SIGTERM');
    t.is(second.code, 1);
    t.regex(second.stderr, /Another process.* pulls into this destination/);
    const first = await ended;
    t.is(first.code, 0, first.stderr);
  });
}

test.serial('wrong usage has code 2, and a fault of the operator has code 1', async (t) => {
  for (const [code, message, ...more] of [
    ...['15', '600h'].map((every) => [2, /--every .* at most 596h/, '--every', every] as const),
    [2, /There is no sync of nothing/, '--resources', 'klanten, nothing'],
    [2, /Give --resources the names/, '--resources', ' , '],
    [2, /--format is for a folder/, '--format', 'csv'],
    [2, /--format is ndjson or csv, not "xml"/, '--to', copyFolder, '--format', 'xml'],
    [2, /--to is a connection URL, postgres:.*, or a folder/, '--to', 'mysql://db/copy'],
    [1, /file already exists/, '--to', join(folder, 'token')],
    [1, /give --format ndjson/, '--to', copyFolder, '--format', 'csv'],
  ] as const) {
    const { code: ended, stderr } = await pull(more);
    t.is(ended, code, stderr);
    t.regex(stderr, message);
  }
});

/** Options of a copy of a list with several pages. */
const largeTo = (name: string): string[] => [
  ...['--token-file', join(folder, 'token-of-large')],
  ...['--to', join(folder, name), '--resources', 'werkbonnen'],
];

/** A proxy in front of the gateway; the first requests of a path that begins so get these answers instead of their own. */
async function troubledGateway(path: string, troubles: readonly ((reply: ServerResponse, body: string) => void)[]) {
  const atMs: number[] = [];
  const server = createServer((request, reply) => {
    const headers = { authorization: request.headers.authorization ?? '' };
    void fetch(gateway.gateway.url + request.url, { headers }).then(async (real) => {
      const body = await real.text();
      const trouble = request.url?.startsWith(path) ? troubles[atMs.push(performance.now()) - 1] : undefined;
      if (trouble === undefined) reply.writeHead(real.status).end(body);
      else trouble(reply, body);
    });
  });
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve));
  const base = `http://127.0.0.1:${(server.address() as AddressInfo).port}`;
  return { base, atMs, close: () => server.close() };
}

const half = (body: string): string => body.slice(0, body.length / 2);

test.serial('pull repeats a page that is refused, broken or not whole, and waits for Retry-After', async (t) => {
  const { base, atMs, close } = await troubledGateway('/api/v1/sync/klanten?', [
    (reply) => void reply.writeHead(503, { 'retry-after': '2' }).end('{}'),
    (reply, body) => void reply.writeHead(200).write(half(body), () => reply.destroy()),
    (reply, body) => void reply.writeHead(200).end(half(body)),
  ]);
  t.teardown(close);
  const to = join(folder, 'troubled');
  const { code, stdout, stderr } = await pull(['--base', base, '--to', to, '--resources', 'klanten']);
  t.is(code, 0, stderr);
  const { pages, records } = JSON.parse(stdout) as { pages: number; records: number };
  t.is(records, recordsIn(join(to, 'klanten')).size);
  t.is(atMs.length, pages + 3);
  t.true((atMs[1] as number) - (atMs[0] as number) >= 1990);
});

test.serial('changes, deletions and the token of a pass are in the database together or not at all', async (t) => {
  const workspace = setUp.workspaces[1]?.id as string;
  const state = `select (select since from workspace_data.pull_state where resource = 'werkbonnen') as since,
    (select md5(string_agg(w::text, '' order by id)) from workspace_data.werkbonnen w) as records`;
  const copied = () => asAdmin(copyUrl, async (client) => (await client.query(state)).rows[0]);
  const before = await copied();
  await setUp.sql('update app.werkbonnen set omschrijving = $2 where workspace_id = $1', [workspace, 'Nieuw']);
  t.is((await setUp.sql(deleteWorkOrder, [workspace])).length, 1);
  await setUp.caughtUp();
  const { base, close } = await troubledGateway('/api/v1/sync/werkbonnen/ids', [
    (reply) => void reply.writeHead(403).end('{}'),
  ]);
  t.teardown(close);
  const failed = await pull(['--base', base, '--resources', 'werkbonnen']);
  t.is(failed.code, 1, failed.stdout);
  t.deepEqual(await copied(), before);
  const { stdout } = await pull(['--resources', 'werkbonnen']);
  t.true((JSON.parse(stdout) as { deleted: number }).deleted > 0);
  t.deepEqual(await differences('werkbonnen'), []);
});

test.serial('SIGTERM while the gateway is away ends pull at once, with the pages so far committed', async (t) => {
  const { base, close } = await troubledGateway('/api/v1/sync/werkbonnen?perPage=1000&cursor', [
    (reply) => void reply.writeHead(503, { 'retry-after': '3000' }).end('{}'),
  ]);
  t.teardown(close);
  const to = largeTo('stopped');
  const { child, ended } = start(['--base', base, ...to]);
  await Promise.race([ended, new Promise((resolve) => child.stderr?.once('data', resolve))]);
  child.kill('SIGTERM');
  const { code, stderr } = await ended;
  t.is(code, 0, stderr);
  t.is(stderr, 'Waiting 3000 s for the gateway: it answers 503.\n');
  t.is(recordsIn(join(folder, 'stopped/werkbonnen')).size, 1000);
  const second = await pull(to);
  const { records, added } = JSON.parse(second.stdout) as { records: number; added: number };
  t.is(recordsIn(join(folder, 'stopped/werkbonnen')).size, 1000 + records);
  t.is(added, 0);
});

/** Of util-linux: runs a command on a terminal. */
const scriptProgram = 'script';
const noScript =
  spawnSync(scriptProgram, ['-qec', 'true', '/dev/null']).status === 0
    ? ''
    : ' (skipped: script -qec fails on this machine)';
(noScript ? test.serial.skip : test.serial)(`pull draws a progress bar on a terminal${noScript}`, async (t) => {
  const words = commandOf(largeTo('terminal')).map((word) => `'${word}'`);
  const shown = await running(scriptProgram, ['-qec', `stty cols 90; ${words.join(' ')}`, '/dev/null']).ended;
  t.is(shown.code, 0, shown.stderr);
  const count = recordsIn(join(folder, 'terminal/werkbonnen')).size.toLocaleString('en');
  const [first = '', ...rest] = shown.stdout.split('\u001b[K');
  t.regex(first, /^\rwerkbonnen \[#+-*\] \d+% {2}1,000 rows( {2}[\d,]+ rows\/s)? {2}\d+ pages left$/);
  t.true([first, ...rest.slice(0, -1)].every((line) => line.length <= 90));
  t.regex(
    rest.at(-1) as string,
    new RegExp(`^werkbonnen: ${count} rows in \\d+ pages, 0 deleted, 0 added, [\\d.]+ s\r\n$`),
  );
});
