import { exportAgainstCopy } from '../cases/export.js';
import { figure, type Measured } from '../report.js';
import { combinationsOf } from './combinations.js';
import { type DataSet, makeMac, sizesOf, wallKey, workspaceOf } from './data.js';
import { withSets } from './served.js';
import type { Subject } from './subject.js';
import { syncOf } from './sync.js';
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

/** Compares a large workspace, whose log has twice as many entries, with a thousand small ones beside it and with the small set. */
export async function runScale(workOrders: number): Promise<Measured & { postgresVersion: string }> {
  const rows = { werkbonnen: workOrders, logboeken: workOrders * 2 };
  const large: DataSet = {
    database: 'large',
    tenants: [{ first: 0, last: 0, workOrders, logEntries: rows.logboeken }, ...neighbours(1000)],
  };
  // 60 requests a minute cannot be measured.
  return withSets([small, large], '100000000', async ({ cluster, replica }, [reference, subject]) => {
    if (reference === undefined || subject === undefined) throw new Error('A set is not served.');
    const sizes = await sizesTable(cluster.primary.url(large.database));
    process.stderr.write('Measuring combinations of filters …\n');
    const combinations = await combinationsOf(subject, reference);
    process.stderr.write('Measuring walks …\n');
    const walks = await walksOf(subject, rows);
    process.stderr.write('Measuring sync …\n');
    const sync = await syncOf(subject);
    process.stderr.write('Measuring export …\n');
    const exported = await exportOf(subject);
    const [version] = await replica.query<{ server_version: string }>('show server_version');
    return {
      figures: { ...combinations.figures, ...walks.figures, ...sync.figures, ...exported.figures },
      tables: [sizes, ...combinations.tables, ...walks.tables, ...sync.tables, ...exported.tables],
      postgresVersion: version?.server_version ?? 'unknown',
    };
  });
}

function exportOf(subject: Subject): Promise<Measured> {
  const of = { ...subject, workspace: workspaceOf(0), mac: makeMac(workspaceOf(0)), wallKey };
  return exportAgainstCopy(of, 1, 'all work orders');
}

/** Measures only sync and export of the workspace, beside a thousand small ones. */
export async function runScaleSync(workOrders: number): Promise<Measured & { postgresVersion: string }> {
  const large: DataSet = {
    database: 'large',
    tenants: [{ first: 0, last: 0, workOrders, logEntries: 10 }, ...neighbours(1000)],
  };
  return withSets([large], '100000000', async ({ replica }, [subject]) => {
    if (subject === undefined) throw new Error('The set is not served.');
    const [version] = await replica.query<{ server_version: string }>('show server_version');
    const [sync, exported] = [await syncOf(subject), await exportOf(subject)];
    const figures = { ...sync.figures, ...exported.figures };
    return {
      figures,
      tables: [...sync.tables, ...exported.tables],
      postgresVersion: version?.server_version ?? 'unknown',
    };
  });
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
