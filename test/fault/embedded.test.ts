import { createHook } from 'node:async_hooks';
import { spawn } from 'node:child_process';
import { existsSync, readdirSync, readFileSync, statSync } from 'node:fs';
import { chmod, mkdtemp, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { PassThrough } from 'node:stream';
import { setImmediate as nextTurn } from 'node:timers/promises';
import test from 'ava';
import { type Cluster, startCluster } from '../../demo/cluster/cluster.js';
import { listProcesses } from '../../demo/cluster/processes.js';
import { projectRoot } from '../../src/base/paths.js';
import { runAsAdmin } from '../../src/postgres/admin.js';
import { startGateway } from '../../src/serve/gateway.js';
import { loadSettings } from '../../src/settings.js';
import { until } from '../support/patience.js';

let cluster: Cluster;

test.before(async () => {
  cluster = await startCluster({ replicas: 1 });
});
test.after.always(() => cluster?.stop());

test.serial('every connection needs a password, also to replicate, and no process shows it', async (t) => {
  for (const node of [cluster.primary, ...cluster.replicas]) {
    const rules = await node.query('select distinct auth_method from pg_hba_file_rules');
    t.deepEqual(rules, [{ auth_method: 'scram-sha-256' }]);
    const url = new URL(node.url());
    t.regex(url.password, /^[\w-]{32}$/);
    for (const { command } of listProcesses(node.dir)) t.false(command.includes(url.password), command);
    url.password = 'postgres';
    const refused = runAsAdmin(url.href, async () => undefined);
    await t.throwsAsync(refused, { message: /password authentication failed/ });
  }
});

test.serial('killing the starter with -9 leaves no server behind', async (t) => {
  const module = new URL('../../demo/cluster/cluster.js', import.meta.url);
  const script = `const { startCluster } = await import('${module}');
    const { dir, primary } = await startCluster({ replicas: 0 });
    console.log(JSON.stringify({ dir, server: primary.dir }));
    setInterval(() => {}, 1000);`;
  const stdio = ['ignore', 'pipe', 'inherit'] as const;
  const starter = spawn(process.execPath, ['--input-type=module', '-e', script], { stdio: [...stdio] });
  t.teardown(() => starter.kill('SIGKILL'));
  let line = '';
  starter.stdout.on('data', (chunk: Buffer) => {
    line += chunk;
  });
  t.true(await until(() => line.endsWith('\n'), 60_000));
  const { dir, server } = JSON.parse(line) as { dir: string; server: string };
  t.true(listProcesses(server).length > 1);

  starter.kill('SIGKILL');
  t.true(await until(() => !existsSync(dir), 6000));
  t.deepEqual(listProcesses(server), []);
});

test.serial('a kept folder is started again, and refused when it holds other files', async (t) => {
  const parent = await mkdtemp(join(tmpdir(), 'kept-'));
  t.teardown(() => rm(parent, { recursive: true, force: true }));
  await chmod(parent, 0o755); // root's servers run as another account
  const dir = join(parent, 'cluster');
  for (const run of [1, 2]) {
    const cluster = await startCluster({ dir, replicas: 1 });
    try {
      if (run === 1) await cluster.primary.query('create table t as select 7 as n');
      else t.deepEqual(await cluster.primary.query('select n from t'), [{ n: 7 }]);
    } finally {
      await cluster.stop();
    }
  }
  await t.throwsAsync(startCluster({ dir: parent, replicas: 0 }), { message: /holds something else/ });
});

test.serial('a gateway that a process embeds stops its timers if the connection to Redis cannot be made', async (t) => {
  const running = new Map<number, string>();
  const init = (id: number, type: string): void => {
    const { stack = '' } = new Error();
    if (type === 'Timeout' && stack.includes('/dist/src/')) running.set(id, stack);
  };
  const hook = createHook({ init, destroy: (id) => running.delete(id) });
  const unreachable = 'postgres://gateway_reader:none@127.0.0.1:1/app';
  const urls = { replicaUrls: unreachable, primaryUrls: unreachable, publicUrl: 'http://localhost:3000' };
  const settings = loadSettings({}, { ...urls, wallKey: Buffer.alloc(32).toString('base64') });
  const redis = { redisUrl: 'redis://127.0.0.1:1', redisSentinels: '127.0.0.1:1', redisSentinelName: '' };
  hook.enable();
  t.teardown(() => hook.disable());
  const starting = startGateway({ ...settings, ...redis }, new PassThrough().resume(), undefined, {
    isSuccessor: true,
  });
  await t.throwsAsync(starting, { message: /name of master/ });
  for (let turn = 0; turn < 3; turn++) await nextTurn(); // hooks hear of the end of a timer later
  t.deepEqual([...running.values()], []);
});

interface Ready {
  readonly baseUrl: string;
  readonly primaryUrl: string;
  readonly replicaUrls: readonly string[];
  readonly workspaces: readonly { readonly tokens: { readonly all: string } }[];
}

test('the demo answers reads and writes, and its passwords are in the ready file of its owner alone', async (t) => {
  const folder = await mkdtemp(join(tmpdir(), 'demo-'));
  const readyFile = join(folder, 'ready.json');
  const args = ['--rows', '1', '--port', '0', '--ops-port', '0', '--ready-file', readyFile];
  const demo = spawn(process.execPath, [join(projectRoot, 'dist/demo/main.js'), ...args]);
  const exited = new Promise((resolve) => demo.once('exit', (code) => resolve(code)));
  t.teardown(async () => {
    demo.kill();
    await exited;
    await rm(folder, { recursive: true });
  });
  let errors = '';
  demo.stderr.on('data', (chunk: Buffer) => {
    errors += chunk;
  });
  demo.stdout.resume();
  t.true(await until(() => existsSync(readyFile) || demo.exitCode !== null, 120_000, 50), errors);
  t.is(statSync(readyFile).mode & 0o777, 0o600);
  const { baseUrl, primaryUrl, replicaUrls, workspaces } = JSON.parse(readFileSync(readyFile, 'utf8')) as Ready;

  const headers = { authorization: `Bearer ${workspaces[0]?.tokens.all}` };
  t.is((await fetch(`${baseUrl}/api/v1/klanten`, { headers })).status, 200);
  const written = await fetch(`${baseUrl}/api/v1/installaties`, { method: 'POST', headers });
  t.like(await written.json(), { status: 415 }, 'a gateway without a primary has no such method: 405');
  for (const href of [primaryUrl, ...replicaUrls]) {
    const url = new URL(href);
    t.is(url.password.length, 32);
    t.false(errors.includes(url.password));
    if (process.platform === 'linux') t.deepEqual(argumentsWith(url.password), []);
  }

  demo.kill();
  t.is(await exited, 0);
  t.false(existsSync(readyFile));
});

function argumentsWith(text: string): string[] {
  return readdirSync('/proc')
    .filter((name) => /^\d+$/.test(name))
    .map((pid) => commandLineOf(pid))
    .filter((line) => line.includes(text));
}

function commandLineOf(pid: string): string {
  try {
    return readFileSync(join('/proc', pid, 'cmdline'), 'utf8');
  } catch (error) {
    if (['ENOENT', 'ESRCH'].includes((error as NodeJS.ErrnoException).code ?? '')) return '';
    throw error;
  }
}
