import { randomBytes } from 'node:crypto';
import { startCluster } from '../../demo/cluster/cluster.js';
import { type AppName, apps } from '../../demo/seed/apps.js';
import { memoryFolder } from './memory-folder.js';
import { runAva } from './run-ava.js';
import { keepSeeded } from './seeded-cluster.js';
import { cloned, clonedRows, makeTemplate } from './template.js';
import { words } from './words.js';

// `npm test [-- ava's arguments]`: a primary and a replica with a seeded template per app. Each file clones a template, or harms a copy of
// the servers. Files of `everyApp` run on the second app beside. A failed file is not run again: no verdict may depend on the machine.

/** These test files run on each reference app: they know neither its tables nor its words (test/support/app.ts has both). */
const everyApp = words(`
  fields filters pagination records sync tenant-wall-http writes writes-replay`).map(
  (name) => `dist/test/feature/${name}.test.js`,
);

/** The servers that all files share have connections for all of them. */
const shareable = { max_connections: '300' };
const temporaryIn = memoryFolder();
const cluster = await startCluster({
  ...(temporaryIn !== undefined && { temporaryIn }),
  replicas: 0,
  settings: {
    log_line_prefix: '%m [%p] %d|%a|',
    fsync: 'off',
    full_page_writes: 'off',
    shared_preload_libraries: 'pg_stat_statements',
  },
  replicaSettings: shareable,
});
let code = 1;
try {
  const keys = Object.fromEntries(['k1', 'k2', 'k3'].map((id) => [id, randomBytes(32).toString('base64')]));
  await makeTemplate(cluster, keys);
  const seeded = await keepSeeded(cluster, shareable);
  const template = (name: AppName) =>
    makeTemplate(cluster, keys, { app: apps[name], name: cloned[name], rows: clonedRows[name] });
  const [first, second] = [await template('first'), await template('second')];
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
  const run = (args: readonly string[], app: string, isShownAtOnce = true) =>
    runAva(args, { TEST_SHARED: JSON.stringify(shared), TEST_APP: app }, isShownAtOnce);
  const all =
    named.length > 0
      ? [await run(named, process.env.TEST_APP ?? 'first')]
      : await Promise.all([run([], 'first'), run(['--concurrency=1', ...everyApp], 'second', false)]);
  const sum = (count: 'passed' | 'failed' | 'skipped') => all.reduce((total, one) => total + one[count], 0);
  code = Math.min(sum('failed'), 1);
  const slow = all.flatMap((one) => one.slow);
  if (slow.length > 0) console.log(`Tests of a minute or more:\n  ${slow.join('\n  ')}`);
  console.log(`${sum('passed')} passed, ${sum('failed')} failed, ${sum('skipped')} skipped`);
} finally {
  await cluster.stop();
}
process.exit(code); // also when something is left open

function logFiles(): { primary: string; replica: string } {
  return { primary: cluster.primary.log, replica: (cluster.replicas[0] as { log: string }).log };
}
