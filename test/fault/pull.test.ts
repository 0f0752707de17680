import { spawn } from 'node:child_process';
import { mkdtemp, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { setTimeout as sleep } from 'node:timers/promises';
import test, { type ExecutionContext } from 'ava';
import { withClient } from '../../src/demo/cluster/node.js';
import { projectRoot } from '../../src/paths.js';
import { type FaultCluster, type FaultGateway, faultCluster } from '../support/fault-cluster.js';
import { syncWriters } from '../support/sync-writers.js';
import { templateName } from '../support/template.js';

let setUp: FaultCluster;
let gateway: FaultGateway;
let folder: string;
let token: string;
let copyUrl: string;

test.before(async () => {
  setUp = await faultCluster({ replicas: 1, settings: { max_prepared_transactions: '20' } });
  gateway = await setUp.gateway({ largePagesPerToken: 50, largePagesPerWorkspace: 50 });
  folder = await mkdtemp(join(tmpdir(), 'pull-'));
  token = await setUp.token({ workspace: 1 });
  await writeFile(join(folder, 'token'), `${token}\n`);
  await setUp.cluster.primary.query('create database copy');
  copyUrl = setUp.cluster.primary.url('copy');
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

/** Runs `pull`; it is killed with -9 after `killMs`, if given. */
async function pull(more: readonly string[] = [], killMs?: number, signal: NodeJS.Signals = 'SIGKILL'): Promise<Run> {
  const main = join(projectRoot, 'dist/src/main.js');
  const args = ['pull', '--base', gateway.gateway.url, '--token-file', join(folder, 'token'), '--to', copyUrl, ...more];
  const child = spawn(process.execPath, [main, ...args], { env: { PATH: process.env.PATH } });
  let [stdout, stderr] = ['', ''];
  child.stdout.on('data', (bytes: Buffer) => (stdout += bytes.toString()));
  child.stderr.on('data', (bytes: Buffer) => (stderr += bytes.toString()));
  const timer = killMs === undefined ? undefined : setTimeout(() => child.kill(signal), killMs);
  const code = await new Promise<number | null>((resolve) => child.on('close', resolve));
  clearTimeout(timer);
  return { code, stdout, stderr };
}

/** The records of the copy and of the API that differ. */
async function differences(resource: string): Promise<string[]> {
  const headers = { authorization: `Bearer ${token}` };
  const reply = await fetch(gateway.url(`/${resource}?perPage=100000`), { headers });
  const body = await reply.text(); // not parsed here: JavaScript would round numbers
  return withClient(copyUrl, async (client) => {
    const { rows } = await client.query<{ id: string }>(
      `with api as (select r.* from jsonb_populate_recordset(null::workspace_data.${resource}, $1::jsonb -> 'data') r)
       select id from ((table api except table workspace_data.${resource}) union all (table workspace_data.${resource} except table api)) d`,
      [body],
    );
    return rows.map(({ id }) => `${resource} ${id}`);
  });
}

async function assertEqual(t: ExecutionContext): Promise<void> {
  for (const resource of ['klanten', 'installaties', 'werkbonnen', 'logboeken'])
    t.deepEqual(await differences(resource), [], resource);
}

test.serial('pull makes a copy that equals the API, keeps it so, and repairs one that was tampered with', async (t) => {
  const first = await pull();
  t.is(first.code, 0, first.stderr);
  t.is(first.stdout.trim().split('\n').length, 4);
  await assertEqual(t);
  await withClient(copyUrl, async (client) => {
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
  for (let i = 0; i < 8; i++) await pull([], 150 + Math.random() * 500);
  await writers.pause();
  await setUp.caughtUp();
  const last = await pull();
  t.is(last.code, 0, last.stderr);
  t.true(writers.changes() > 50);
  await assertEqual(t);
});

test.serial('a second process refuses, SIGTERM ends the first with 0, and wrong usage has code 2', async (t) => {
  const running = pull(['--every', '1h'], 4000, 'SIGTERM');
  let second: Run = { code: 0, stdout: '', stderr: '' };
  for (let i = 0; i < 100 && second.code === 0; i++) {
    await sleep(50);
    second = await pull(['--verify', '--resources', 'klanten']);
  }
  t.is(second.code, 1);
  t.regex(second.stderr, /Another process pulls into this destination/);
  t.is((await running).code, 0);
  t.is((await pull(['--every', '15'])).code, 2);
  t.is((await pull(['--resources', 'nothing'])).code, 2);
});
