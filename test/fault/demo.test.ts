import { spawn } from 'node:child_process';
import { existsSync, readdirSync, readFileSync, statSync } from 'node:fs';
import { mkdtemp, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import test from 'ava';
import pg from 'pg';
import { projectRoot } from '../../src/paths.js';
import { until } from '../support/patience.js';

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
    for (const user of ['postgres', 'gateway_reader', 'gateway_writer']) {
      const client = new pg.Client({ ...connection(url), user, password: 'wrong' });
      await t.throwsAsync(client.connect(), { message: /password authentication failed/ }, user);
    }
  }

  demo.kill();
  t.is(await exited, 0);
  t.false(existsSync(readyFile));
});

const connection = ({ hostname, port, pathname }: URL) => ({
  host: hostname,
  port: Number(port),
  database: pathname.slice(1),
});

/** The command lines on this machine that contain the text. */
function argumentsWith(text: string): string[] {
  return readdirSync('/proc')
    .filter((name) => /^\d+$/.test(name))
    .map((pid) => commandLineOf(pid))
    .filter((line) => line.includes(text));
}

/** Empty for a process that ended meanwhile. */
function commandLineOf(pid: string): string {
  try {
    return readFileSync(join('/proc', pid, 'cmdline'), 'utf8');
  } catch (error) {
    if (['ENOENT', 'ESRCH'].includes((error as NodeJS.ErrnoException).code ?? '')) return '';
    throw error;
  }
}
