import { type Cluster, startCluster } from '../../demo/cluster/cluster.js';
import type { PgNode } from '../../demo/cluster/node.js';
import { type BenchGateway, startGateway } from '../gateway.js';
import { type CaseResult, figure } from '../result.js';
import { combinationsOf } from './combinations.js';
import { type DataSet, loadingSettings, makeData, readToken, sizesOf, workspaceOf } from './data.js';
import { plansOf } from './plans.js';
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
export async function runScale(
  workOrders: number,
  onStarted: (cluster: Cluster) => void,
): Promise<CaseResult & { postgresVersion: string }> {
  const rows = { werkbonnen: workOrders, logboeken: workOrders * 2 };
  const large: DataSet = {
    database: 'large',
    tenants: [{ first: 0, last: 0, workOrders, logEntries: rows.logboeken }, ...neighbours(1000)],
  };
  const startedMs = performance.now();
  const elapsedS = (): number => Math.round((performance.now() - startedMs) / 1000);
  const cluster = await startCluster({ replicas: 0, settings: loadingSettings, replicaSettings: servingSettings });
  onStarted(cluster);
  const gateways: BenchGateway[] = [];
  try {
    for (const set of [small, large]) {
      process.stderr.write(`Loading ${set.database} …\n`);
      await makeData(cluster, set);
    }
    const loadedS = elapsedS();
    const replica = await addReplica(cluster);
    const builtS = elapsedS();
    const subjectIn = async (database: string): Promise<Subject> => {
      const gateway = await startGateway({ database, primary: cluster.primary, replicas: [replica] });
      gateways.push(gateway);
      const token = await readToken(cluster.primary.url(database), workspaceOf(0));
      return {
        gateway,
        token,
        readerUrl: replica.url(database, 'gateway_reader'),
        replicaUrl: replica.url(database),
        replicaPid: replica.pid,
      };
    };
    const [subject, reference] = [await subjectIn(large.database), await subjectIn(small.database)];
    await cluster.caughtUp();
    const results = [await sizesTable(cluster.primary.url(large.database), { loadedS, builtS })];
    for (const [name, measure] of [
      ['plans', () => plansOf(subject)],
      ['combinations of filters', () => combinationsOf(subject, reference)],
      ['walks', () => walksOf(subject, rows)],
    ] as const) {
      process.stderr.write(`Measuring ${name} (after ${elapsedS()} s) …\n`);
      results.push(await measure().catch((error: Error) => brokenOff(name, error)));
    }
    const [version] = await replica.query<{ server_version: string }>('show server_version');
    return {
      verdicts: results.flatMap(({ verdicts }) => verdicts),
      tables: results.flatMap(({ tables }) => tables),
      skipped: results.flatMap(({ skipped }) => skipped),
      postgresVersion: version?.server_version ?? 'unknown',
    };
  } finally {
    await Promise.all(gateways.map((gateway) => gateway.stop()));
    await cluster.stop();
  }
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

async function sizesTable(url: string, { loadedS, builtS }: { loadedS: number; builtS: number }): Promise<CaseResult> {
  const { bytes, tables } = await sizesOf(url);
  const rows = tables.map(({ table, rows: count, heapBytes, indexBytes }) => [
    table,
    count.toLocaleString('en'),
    ...[heapBytes, indexBytes].map((size) => figure(size / 1e9)),
  ]);
  const note = `The database has ${figure(bytes / 1e9)} GB, and its replica as many. Made in ${loadedS} s, and copied to the replica in ${builtS - loadedS} s.`;
  return {
    verdicts: [],
    skipped: [],
    tables: [{ title: 'The data', note, head: ['', 'rows', 'rows, GB', 'indexes, GB'], rows }],
  };
}

/** A part that breaks off is told in the report; the others go on. */
function brokenOff(name: string, error: Error): CaseResult {
  process.exitCode = 1;
  return { verdicts: [], tables: [], skipped: [`The measurement of ${name} broke off: ${error.message}.`] };
}
