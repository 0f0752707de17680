import { spawn } from 'node:child_process';
import { existsSync } from 'node:fs';
import { chmod, mkdtemp, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import test from 'ava';
import { type Cluster, startCluster } from '../../demo/cluster/cluster.js';
import { processesOf } from '../../demo/cluster/processes.js';
import { asAdmin } from '../../src/postgres/admin.js';
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
    for (const { command } of processesOf(node.dir)) t.false(command.includes(url.password), command);
    url.password = 'postgres';
    await t.throwsAsync(
      asAdmin(url.href, async () => undefined),
      { message: /password authentication failed/ },
    );
  }
});

test.serial('primary and replica stop without a trace', async (t) => {
  await cluster.stop();
  t.false(existsSync(cluster.dir));
  for (const node of [cluster.primary, ...cluster.replicas]) t.deepEqual(processesOf(node.dir), []);
});

test.serial('killing the starter with -9 leaves no server behind', async (t) => {
  const module = new URL('../../demo/cluster/cluster.js', import.meta.url);
  const script = `const { startCluster } = await import('${module}');
    const { dir, primary, replicas } = await startCluster({ replicas: 1 });
    console.log(JSON.stringify({ dir, servers: [primary.dir, replicas[0].dir] }));
    setInterval(() => {}, 1000);`;
  const starter = spawn(process.execPath, ['--input-type=module', '-e', script], {
    stdio: ['ignore', 'pipe', 'inherit'],
  });
  t.teardown(() => starter.kill('SIGKILL'));
  let line = '';
  starter.stdout.on('data', (chunk: Buffer) => {
    line += chunk;
  });
  t.true(await until(() => line.endsWith('\n'), 60_000));
  const { dir, servers } = JSON.parse(line) as { dir: string; servers: string[] };
  for (const server of servers) t.true(processesOf(server).length > 1);

  starter.kill('SIGKILL');
  t.true(await until(() => !existsSync(dir), 6000));
  for (const server of servers) t.deepEqual(processesOf(server), []);
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
