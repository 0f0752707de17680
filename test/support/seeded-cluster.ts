import { execFile } from 'node:child_process';
import { randomBytes } from 'node:crypto';
import { chownSync, mkdirSync, rmSync, statSync } from 'node:fs';
import { join } from 'node:path';
import { promisify } from 'node:util';
import { type Cluster, type ClusterOptions, startCluster } from '../../src/demo/cluster/cluster.js';

const run = promisify(execFile);

/**
 * Copies the data directory of the cluster's primary, which is stopped meanwhile, to a folder in the cluster's own, which
 * goes with it. A test file that needs servers of its own begins with a copy: initdb and seeding take five times as long.
 */
export async function keepSeeded({ dir, primary }: Cluster): Promise<string> {
  const seeded = join(dir, 'seeded');
  mkdirSync(seeded, { mode: 0o700 });
  const { uid, gid } = statSync(primary.dir);
  chownSync(seeded, uid, gid);
  await primary.stop();
  await run('cp', ['-a', primary.dir, join(dir, 'password'), seeded]);
  await primary.start();
  return seeded;
}

/** Starts a cluster with a copy of the seeded data, in a folder that goes with its end. */
export async function startSeeded(seeded: string, options: ClusterOptions): Promise<Cluster> {
  const dir = join(seeded, '..', `seeded-${randomBytes(6).toString('hex')}`);
  await run('cp', ['-a', seeded, dir]);
  const cluster = await startCluster({ ...options, dir });
  const stop = cluster.stop.bind(cluster);
  cluster.stop = async () => {
    await stop();
    rmSync(dir, { recursive: true, force: true, maxRetries: 5 });
  };
  return cluster;
}
