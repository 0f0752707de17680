import { randomBytes } from 'node:crypto';
import { type Cluster, startCluster } from '../../demo/cluster/cluster.js';
import type { PgNode } from '../../demo/cluster/node.js';
import { startGatewayProcess } from '../../demo/gateway-process.js';
import { figure, type Measured } from '../report.js';
import { combinationsOf } from './combinations.js';
import { type DataSet, loadingSettings, makeData, readToken, sizesOf, workspaceOf } from './data.js';
import type { Subject } from './subject.js';
import { walksOf } from './walk.js';

/** The small set, of the same kind, and its neighbours. */
const small: DataSet = {
  database: 'small',
  tenants: [{ first: 0, last: 0, workOrders: 10_000, logEntries: 20_000 }, ...neighbours(10)],
};

/** A workspace with ten rows of each list, and others with a hundred work orders. */
function neighbours(count: number): DataSet['tenants'] {
  return [
    { first: 1, last: 1, workOrders: 10, logEntries: 10 },
    { first: 2, last: count + 1, workOrders: 100, logEntries: 200 },
  ];
}

/** The settings of the servers while they are measured: those of the demo, with more memory. */
const servingSettings = {
  ...Object.fromEntries(Object.keys(loadingSettings).map((name) => [name, null])),
  shared_buffers: '2GB',
};

/** A workspace with so many work orders and twice as many log entries, beside a thousand small ones and beside the small set. */
export async function runScale(workOrders: number): Promise<Measured & { postgresVersion: string }> {
  const rows = { werkbonnen: workOrders, logboeken: workOrders * 2 };
  const large: DataSet = {
    database: 'large',
    tenants: [{ first: 0, last: 0, workOrders, logEntries: rows.logboeken }, ...neighbours(1000)],
  };
  const cluster = await startCluster({ replicas: 0, settings: loadingSettings, replicaSettings: servingSettings });
  const gateways: ReturnType<typeof startGatewayProcess>[] = [];
  const stop = async (): Promise<void> => {
    await Promise.all(gateways.map((gateway) => gateway.stop(1000)));
    await cluster.stop();
  };
  for (const signal of ['SIGINT', 'SIGTERM'] as const)
    process.once(signal, () => void stop().finally(() => process.exit(1)));
  try {
    for (const set of [small, large]) {
      process.stderr.write(`Loading ${set.database} …\n`);
      await makeData(cluster, set);
    }
    const replica = await addReplica(cluster);
    const subjectIn = async (database: string): Promise<Subject> => {
      const gateway = startGateway(database, cluster.primary, replica);
      gateways.push(gateway);
      const ready = await gateway.ready;
      if (ready === undefined) throw new Error('A gateway ended before it served.');
      return {
        origin: ready.url,
        gatewayPid: gateway.pid,
        token: await readToken(cluster.primary.url(database), workspaceOf(0)),
        readerUrl: replica.url(database, 'gateway_reader'),
        replicaUrl: replica.url(database),
        replicaPid: replica.pid,
      };
    };
    const [subject, reference] = [await subjectIn(large.database), await subjectIn(small.database)];
    await cluster.caughtUp();
    const sizes = await sizesTable(cluster.primary.url(large.database));
    process.stderr.write('Measuring combinations of filters …\n');
    const combinations = await combinationsOf(subject, reference);
    process.stderr.write('Measuring walks …\n');
    const walks = await walksOf(subject, rows);
    const [version] = await replica.query<{ server_version: string }>('show server_version');
    return {
      figures: { ...combinations.figures, ...walks.figures },
      tables: [sizes, ...combinations.tables, ...walks.tables],
      postgresVersion: version?.server_version ?? 'unknown',
    };
  } finally {
    await stop();
  }
}

/** `serve` with its limits lifted: 60 requests a minute cannot be measured. */
function startGateway(database: string, primary: PgNode, replica: PgNode): ReturnType<typeof startGatewayProcess> {
  return startGatewayProcess(['--port', '0', '--ops-port', '0'], {
    ...process.env,
    NODE_ENV: 'production',
    HOST: '127.0.0.1',
    LOG_LEVEL: 'error',
    RATE_LIMIT_PER_MINUTE: '100000000',
    REPLICA_URLS: replica.url(database, 'gateway_reader'),
    PRIMARY_URLS: primary.url(database, 'gateway_writer'),
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

async function sizesTable(url: string): Promise<Measured['tables'][number]> {
  const { bytes, tables } = await sizesOf(url);
  const rows = tables.map(({ table, rows: count, heapBytes, indexBytes }) => [
    table,
    count.toLocaleString('en'),
    ...[heapBytes, indexBytes].map((size) => figure(size / 1e9)),
  ]);
  const note = `The database has ${figure(bytes / 1e9)} GB, and its replica as many.`;
  return { title: 'The data', note, head: ['', 'rows', 'rows, GB', 'indexes, GB'], rows };
}
