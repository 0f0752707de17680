import { spawn } from 'node:child_process';
import { randomBytes } from 'node:crypto';
import { join } from 'node:path';
import { startCluster } from '../../src/demo/cluster/cluster.js';
import { apps } from '../../src/demo/seed/apps.js';
import { projectRoot } from '../../src/paths.js';
import { keepSeeded } from './seeded-cluster.js';
import { makeTemplate, secondTemplateName } from './template.js';

// `npm test [-- ava's arguments]`: a real primary and a real streaming replica with a seeded template database per reference app,
// for all test files of the run. Each file clones a template (test/support/workspace.ts), or, to harm the servers,
// begins with a copy of the primary (test/support/seeded-cluster.ts). All files run on the first app, and then
// those of `everyApp` on the second; with arguments those files run on the app of TEST_APP.

/** Test files that run on each reference app: they know neither its tables nor its words (test/support/app.ts has both). */
const everyApp = [
  'cursors',
  'etag',
  'filters',
  'filters-days',
  'filters-ids',
  'filters-values',
  'klanten',
  'order',
  'pagination',
  'privacy',
  'records',
  'tenant-wall-http',
  'walking',
  'writes-audit',
  'writes-create',
  'writes-order',
  'writes-replay',
  'writes-update',
  'writes-wall',
].map((name) => `dist/test/feature/${name}.test.js`);

const cluster = await startCluster({
  replicas: 0,
  settings: { log_line_prefix: '%m [%p] %d|%a|', max_connections: '300', fsync: 'off', full_page_writes: 'off' },
});
let code = 1;
try {
  const keys = Object.fromEntries(['k1', 'k2', 'k3'].map((id) => [id, randomBytes(32).toString('base64')]));
  const first = await makeTemplate(cluster, keys);
  const seeded = await keepSeeded(cluster);
  const second = await makeTemplate(cluster, keys, apps.second, secondTemplateName);
  await cluster.addReplica();
  const shared = {
    apps: { first, second },
    keys,
    seeded,
    primary: cluster.primary.url(),
    replicas: cluster.replicas.map((node) => node.url()),
    logs: logFiles(),
  };
  const named = process.argv.slice(2);
  const runs = [await runAva(shared, named)];
  if (named.length === 0) runs.push(await runAva(shared, everyApp, 'second'));
  code = Math.max(...runs.map((run) => run.code));
  const sum = (count: 'passed' | 'failed' | 'skipped') => runs.reduce((all, run) => all + run[count], 0);
  console.log(`${sum('passed')} passed, ${sum('failed')} failed, ${sum('skipped')} skipped`);
} finally {
  await cluster.stop();
}
process.exitCode = code;

function logFiles(): { primary: string; replica: string } {
  return { primary: cluster.primary.log, replica: (cluster.replicas[0] as { log: string }).log };
}

interface Run {
  readonly code: number;
  readonly passed: number;
  readonly failed: number;
  readonly skipped: number;
}

/** Runs AVA on one app, shows its output, and counts. */
async function runAva(shared: object, args: readonly string[], app = process.env.TEST_APP ?? 'first'): Promise<Run> {
  const ava = join(projectRoot, 'node_modules/ava/entrypoints/cli.mjs');
  const child = spawn(process.execPath, [ava, ...args], {
    cwd: projectRoot,
    stdio: ['inherit', 'pipe', 'inherit'],
    env: { ...process.env, TEST_SHARED: JSON.stringify(shared), TEST_APP: app },
  });
  for (const signal of ['SIGINT', 'SIGTERM'] as const) process.once(signal, () => child.kill(signal));
  const counts = { '✔': 0, '✘': 0, '-': 0 };
  let rest = '';
  child.stdout.on('data', (chunk: Buffer) => {
    process.stdout.write(chunk);
    const lines = (rest + chunk.toString()).split('\n');
    rest = lines.pop() as string;
    for (const line of lines) {
      const mark = /^\s+([✔✘-]) /.exec(line)?.[1] as keyof typeof counts | undefined;
      if (mark !== undefined) counts[mark]++;
    }
  });
  const code = await new Promise<number>((resolve) => child.on('close', (status) => resolve(status ?? 1)));
  return { code, passed: counts['✔'], failed: code === 0 ? 0 : Math.max(counts['✘'], 1), skipped: counts['-'] };
}
