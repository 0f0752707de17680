import { execFile } from 'node:child_process';
import { randomBytes } from 'node:crypto';
import { chownSync, mkdirSync, rmSync, statSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { promisify } from 'node:util';
import { type Cluster, type ClusterOptions, startCluster } from '../../demo/cluster/cluster.js';
import type { ServerSettings } from '../../demo/cluster/node.js';

const run = promisify(execFile);

/** Copies the stopped primary: initdb and seeding take five times as long. `settings` have those that a standby must not have lower. */
export async function keepSeeded({ dir, primary }: Cluster, settings: ServerSettings): Promise<string> {
  const seeded = join(dir, 'seeded');
  mkdirSync(seeded, { mode: 0o700 });
  const { uid, gid } = statSync(primary.dir);
  chownSync(seeded, uid, gid);
  await primary.stop();
  await run('cp', ['-a', primary.dir, join(dir, 'password'), seeded]);
  await primary.configure(settings);
  await primary.start();
  return seeded;
}

/** The folder goes with the cluster. Replicas begin with copies too: that saves 1.3 s of processor time. */
export async function startSeeded(seeded: string, options: ClusterOptions): Promise<Cluster> {
  const dir = join(seeded, '..', `seeded-${randomBytes(6).toString('hex')}`);
  await run('cp', ['-a', seeded, dir]);
  for (let number = 1; number <= options.replicas; number++) await copyAsReplica(dir, `replica${number}`);
  const cluster = await startCluster({ ...options, dir });
  const stop = cluster.stop.bind(cluster);
  cluster.stop = async () => {
    await stop('immediate');
    rmSync(dir, { recursive: true, force: true, maxRetries: 5 });
  };
  return cluster;
}

async function copyAsReplica(dir: string, name: string): Promise<void> {
  const [primary, replica] = [join(dir, 'primary'), join(dir, name)];
  await run('cp', ['-a', primary, replica]);
  const { uid, gid } = statSync(primary);
  const standbySignal = join(replica, 'standby.signal');
  writeFileSync(standbySignal, '', { mode: 0o600 });
  chownSync(standbySignal, uid, gid);
}
