import { randomBytes } from 'node:crypto';
import { join } from 'node:path';
import { type Cluster, startCluster } from '../../demo/cluster/cluster.js';
import type { PgNode } from '../../demo/cluster/node.js';
import { startGatewayProcess } from '../../demo/gateway-process.js';
import { projectRoot } from '../../src/base/paths.js';
import { type DataSet, loadingSettings, makeData, readToken, wallKey, workspaceOf } from './data.js';
import type { Subject } from './subject.js';

/** The settings of the servers while they are measured: those of the demo, with more memory. */
const servingSettings = {
  ...Object.fromEntries(Object.keys(loadingSettings).map((name) => [name, null])),
  shared_buffers: '2GB',
};

/** The servers of data sets. */
export interface Servers {
  readonly cluster: Cluster;
  readonly replica: PgNode;
}

/** Makes the data sets on a primary, each with a gateway of its own on the same replica, for as long as the work takes. */
export async function withSets<T>(
  sets: readonly DataSet[],
  requestsPerMinute: string,
  work: (servers: Servers, subjects: readonly Subject[]) => Promise<T>,
): Promise<T> {
  const cluster = await startCluster({ replicas: 0, settings: loadingSettings, replicaSettings: servingSettings });
  const gateways: ReturnType<typeof startGatewayProcess>[] = [];
  const stop = async (): Promise<void> => {
    await Promise.all(gateways.map((gateway) => gateway.stop(1000)));
    await cluster.stop();
  };
  for (const signal of ['SIGINT', 'SIGTERM'] as const)
    process.once(signal, () => void stop().finally(() => process.exit(1)));
  try {
    for (const set of sets) {
      process.stderr.write(`Loading ${set.database} …\n`);
      await makeData(cluster, set);
    }
    const replica = await addReplica(cluster);
    const subjects: Subject[] = [];
    for (const { database } of sets) {
      const gateway = startGateway(database, { cluster, replica }, requestsPerMinute);
      gateways.push(gateway);
      const ready = await gateway.ready;
      if (ready === undefined) throw new Error('A gateway ended before it served.');
      subjects.push({
        origin: ready.url,
        opsOrigin: ready.opsUrl,
        gatewayPid: gateway.pid,
        token: await readToken(cluster.primary.url(database), workspaceOf(0)),
        readerUrl: replica.url(database, 'gateway_reader'),
        replicaUrl: replica.url(database),
        replicaPid: replica.pid,
      });
    }
    await cluster.caughtUp();
    return await work({ cluster, replica }, subjects);
  } finally {
    await stop();
  }
}

function startGateway(
  database: string,
  { cluster, replica }: Servers,
  requestsPerMinute: string,
): ReturnType<typeof startGatewayProcess> {
  return startGatewayProcess(['--port', '0', '--ops-port', '0'], {
    ...process.env,
    NODE_ENV: 'production',
    HOST: '127.0.0.1',
    LOG_LEVEL: 'error',
    RATE_LIMIT_PER_MINUTE: requestsPerMinute,
    RESOURCES_DIR: join(projectRoot, 'config/resources'),
    REPLICA_URLS: replica.url(database, 'gateway_reader'),
    PRIMARY_URLS: cluster.primary.url(database, 'gateway_writer'),
    WALL_KEY: wallKey,
    DATA_KEYS: JSON.stringify({ k1: randomBytes(32).toString('base64') }),
  });
}

/** The primary is loaded without WAL, so the replica begins as a copy of the whole of it. */
async function addReplica(cluster: Cluster): Promise<PgNode> {
  const { primary } = cluster;
  await primary.query('checkpoint');
  await primary.configure(servingSettings);
  await primary.restart();
  await cluster.setPasswords(['gateway_reader', 'gateway_writer']);
  return cluster.addReplica();
}
