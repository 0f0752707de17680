import type pg from 'pg';
import type { Cluster } from '../../demo/cluster/cluster.js';
import { readProject } from '../../src/base/paths.js';
import { createToken } from '../../src/cli/tokens.js';
import { createIndexes } from '../../src/operate/migrate/indexes.js';
import { migrate } from '../../src/operate/migrate/migrations.js';
import { runAsAdmin } from '../../src/postgres/admin.js';
import type { WorkspaceId } from '../../src/postgres/statement.js';
import { makeWorkspaceMac } from '../../src/postgres/workspace-mac.js';

/** Workspaces of a size: the numbers of the first and the last, and the rows of each. */
export interface Tenants {
  readonly first: number;
  readonly last: number;
  readonly workOrders: number;
  readonly logEntries: number;
}

export interface DataSet {
  readonly database: string;
  /** The first has a single workspace, number 0, which is measured. */
  readonly tenants: readonly Tenants[];
}

/** Settings for loading: no WAL for rows that come into tables made empty by the same transaction (PostgreSQL 14.4.7), few checkpoints. */
export const loadingSettings = {
  wal_level: 'minimal',
  max_wal_senders: '0',
  fsync: 'off',
  full_page_writes: 'off',
  autovacuum: 'off',
  checkpoint_timeout: '1h',
  max_wal_size: '8GB',
  shared_buffers: '1GB',
  work_mem: '128MB',
  maintenance_work_mem: '1GB',
  max_parallel_maintenance_workers: '0',
};

/** WALL_KEY of the data sets. */
export const wallKey = Buffer.alloc(32, 'wall').toString('base64');

const computeMac = makeWorkspaceMac(wallKey);
/** A workspace as the tenant wall accepts it. */
export const makeMac = (workspace: string): string => computeMac(workspace as WorkspaceId);

/** The workspace of a number. */
export function workspaceOf(number: number): string {
  return `00000000-0000-4000-8000-${number.toString(16).padStart(12, '0')}`;
}

/** Tables in the order in which they are filled; those of one list one after the other, the lists side by side. */
const lists = [
  [
    { table: 'app.werkbonnen', rows: () => readProject('bench/scale/work_orders.sql') },
    {
      table: 'app.werkbon_handelingen',
      rows: () => `insert into app.werkbon_handelingen (id, workspace_id, werkbon_id, volgorde, code, omschrijving)
        select gen_random_uuid(), workspace_id, id, 1, 'LEK-01', 'Lekdichtheidscontrole' from app.werkbonnen`,
    },
    {
      table: 'app.werkbon_uren', // for every second work order
      rows: () => `insert into app.werkbon_uren (id, workspace_id, werkbon_id, medewerker, datum, van, tot, uren)
        select gen_random_uuid(), workspace_id, id, 'Jan', datum, '08:00', '09:00', 1 from app.werkbonnen
        where right(nummer, 1) in ('0', '2', '4', '6', '8')`,
    },
  ],
  [{ table: 'app.logboeken', rows: () => readProject('bench/scale/log.sql') }],
] as const;

/** Makes a database with the reference app, the gateway's schema and the data set; its indexes are built when the rows are there. */
export async function makeData(cluster: Cluster, { database, tenants }: DataSet): Promise<void> {
  await cluster.primary.query(`create database ${database}`);
  const url = cluster.primary.url(database);
  const sizes = tenants.map(({ first, last, workOrders, logEntries }) => [first, last, workOrders, logEntries]);
  await runAsAdmin(url, async (client) => {
    await client.query(readProject('sql/apps/first/schema.sql'));
    const values = sizes.map((row) => `(${row.join(', ')})`).join(', ');
    await client.query(readProject('bench/scale/tenants.sql').replace(/\$SIZES(?=\) sizes)/, values));
  });
  await migrate(url, { wallKey });
  await createIndexes(url);
  const tables = lists.flat().map(({ table }) => table);
  await runAsAdmin(url, async (client) => {
    const foreign = `select conrelid::regclass || ' drop constraint ' || quote_ident(conname) as change from pg_constraint
      where contype = 'f' and conparentid = 0 and conrelid = any ($1::regclass[])`;
    const { rows } = await client.query<{ change: string }>(foreign, [tables]);
    for (const { change } of rows) await client.query(`alter table ${change}`);
  });
  await Promise.all(
    lists.map((list) =>
      runAsAdmin(url, async (client) => {
        for (const { table, rows } of list) await fill(client, table, rows());
      }),
    ),
  );
  await runAsAdmin(url, (client) => client.query('analyze'));
}

async function fill(client: pg.Client, table: string, rows: string): Promise<void> {
  const restored = await dropIndexes(client, table);
  await client.query(`begin; truncate ${table}; ${rows}; commit`);
  for (const text of restored) await client.query(text);
  // Without a visibility map no scan is index-only.
  await client.query(`vacuum (freeze, analyze, parallel 0) ${table}`);
}

/** Drops the indexes of a table, those of its constraints included; the statements make them again. */
async function dropIndexes(client: pg.Client, table: string): Promise<string[]> {
  const { rows } = await client.query<{ name: string; definition: string; constraint: string | null }>(
    `select i.indexrelid::regclass::text as name, replace(pg_get_indexdef(i.indexrelid), ' ON ONLY ', ' ON ') as definition,
       quote_ident(c.conname) || ' ' || pg_get_constraintdef(c.oid) as constraint
     from pg_index i left join pg_constraint c on c.conindid = i.indexrelid and c.contype in ('p', 'u')
     where i.indrelid = $1::regclass`,
    [table],
  );
  const restored: string[] = [];
  for (const { name, definition, constraint } of rows) {
    const ofConstraint = constraint?.split(' ')[0];
    await client.query(
      constraint === null ? `drop index ${name}` : `alter table ${table} drop constraint ${ofConstraint}`,
    );
    restored.push(constraint === null ? definition : `alter table ${table} add constraint ${constraint}`);
  }
  return restored;
}

/** A token of a workspace for all reads. */
export async function readToken(url: string, workspaceId: string): Promise<string> {
  const scopes = ['read:klanten', 'read:installaties', 'read:werkbonnen', 'read:logboeken'];
  const order = { workspaceId, ownerId: workspaceId, name: 'bench', scopes, expiresAt: null };
  return (await runAsAdmin(url, (client) => createToken(client, order))).token;
}

/** Bytes of a database and the rows of its measured tables. */
export async function sizesOf(
  url: string,
): Promise<{ bytes: number; tables: { table: string; rows: number; heapBytes: number; indexBytes: number }[] }> {
  return runAsAdmin(url, async (client: pg.Client) => {
    const { rows: size } = await client.query<{ bytes: string }>(
      'select pg_database_size(current_database()) as bytes',
    );
    const tables = [];
    for (const { table } of lists.flat()) {
      const { rows } = await client.query<{ rows: string; heap: string; indexes: string }>(
        `select (select count(*) from ${table}) as rows, sum(pg_table_size(relid)) as heap, sum(pg_indexes_size(relid)) as indexes
         from (select relid from pg_partition_tree('${table}') union select '${table}'::regclass) parts`,
      );
      const [row] = rows;
      tables.push({ table, rows: Number(row?.rows), heapBytes: Number(row?.heap), indexBytes: Number(row?.indexes) });
    }
    return { bytes: Number(size[0]?.bytes), tables };
  });
}
