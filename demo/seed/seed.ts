import type pg from 'pg';
import { readProject } from '../../src/base/paths.js';
import type { SeededApp } from './apps.js';
import type { Keys } from './encrypt.js';
import { loadSignatures } from './signatures.js';
import { type Sizes, secondSizesOf, sizesOf } from './sizes.js';

export interface SeedOptions {
  /** Work orders of the first workspace: small is 3,000 (some 20,000 rows in all), large 200,000, else a number. */
  rows: string;
  /** The moment that counts as today; the history ends the day before and began eight years earlier. */
  now?: Date;
  /** AES-256 keys of 32 bytes: k1 (oldest), k2 and k3. */
  keys: Keys;
  /** Called after each step with the share of the work that is done (0 to 1) and the name of the next step. */
  onProgress?(done: number, what: string): void;
}

export interface Seeded {
  workspaces: { id: string; name: string; ownerId: string }[];
}

interface Workspace extends Sizes {
  readonly index: number;
  readonly id: string;
  readonly name: string;
  readonly users: number;
}

const batchSize = 1_000;
const insertCustomers = 'insert into seed_customers select * from jsonb_populate_recordset(null::seed_customers, $1)';
const weightOfCustomers = 4;
const weightOfVacuum = 15;

/**
 * Fills a reference app (its schema.sql has run, as the same superuser, on the primary) in one transaction, then
 * vacuums and analyzes it. The same options give the same rows, but for the bytes of encrypted values.
 */
export async function seed(client: pg.Client, app: SeededApp, options: SeedOptions): Promise<Seeded> {
  const workspaces = workspacesOf(app, sizesOf(options.rows));
  const progress = progressOf(app, options);
  await client.query('begin');
  try {
    await fill(client, app, options, workspaces, progress);
    await client.query('commit');
  } catch (error) {
    // A broken connection has rolled back already.
    await client.query('rollback').catch(() => undefined);
    throw error;
  }
  progress(0, 'vacuum and analyze');
  await client.query(`vacuum (analyze) ${app.tables.join(', ')}`);
  progress(weightOfVacuum, 'done');
  return {
    workspaces: workspaces.map(({ index, id, name }) => ({ id, name, ownerId: app.ownerId(index) })),
  };
}

async function fill(
  client: pg.Client,
  app: SeededApp,
  options: SeedOptions,
  workspaces: Workspace[],
  progress: (weight: number, next: string) => void,
): Promise<void> {
  // Foreign keys hold by construction, so their checks are skipped. JIT takes longer here than it saves.
  await client.query(`set local session_replication_role = replica; set local timezone = 'UTC'; set local jit = off;
    set local work_mem = '128MB'; set local wal_compression = on`);
  const run = (file: string) => client.query(readProject(`sql/apps/${app.name}/seed/${file}.sql`));
  await client.query(readProject('sql/apps/seed.sql'));
  await run('01_frame');
  await insertWorkspaces(client, workspaces, options.now ?? new Date());
  await loadSignatures(client);
  const customer = app.customers(options.keys);
  const total = workspaces.reduce((sum, each) => sum + each.customers, 0);
  for (const workspace of workspaces)
    for (let done = 0; done < workspace.customers; done += batchSize) {
      const length = Math.min(batchSize, workspace.customers - done);
      const rows = Array.from({ length }, (_, i) => customer(workspace, done + i + 1));
      await client.query(insertCustomers, [JSON.stringify(rows)]);
      progress((length * weightOfCustomers) / total, 'encrypted customers');
    }
  await client.query('analyze seed_customers; analyze seed_signatures; analyze seed_workspaces');
  for (const step of app.steps) {
    progress(0, step.what);
    await run(step.file);
    progress(step.weight, step.what);
  }
}

function workspacesOf(app: SeededApp, sizes: Sizes): Workspace[] {
  return [
    { index: 0, id: app.workspaceId(0), name: 'Koeltechniek De Vries B.V.', users: 8, ...sizes },
    { index: 1, id: app.workspaceId(1), name: 'Klimaatservice Noord', users: 3, ...secondSizesOf(sizes) },
  ];
}

async function insertWorkspaces(client: pg.Client, workspaces: Workspace[], now: Date): Promise<void> {
  const rows = workspaces.map(({ index, name, workOrders, logEntries, ...same }) => ({
    ...same,
    workspace: index,
    naam: name,
    work_orders: workOrders,
    log_entries: logEntries,
  }));
  await client.query(
    `insert into seed_workspaces
     select workspace, id, naam, users, customers, installations, work_orders, log_entries,
       (day.today - interval '8 years')::date, day.today
     from jsonb_populate_recordset(null::seed_workspaces, $1),
       (select ($2::timestamptz at time zone 'Europe/Amsterdam')::date as today) day`,
    [JSON.stringify(rows), now.toISOString()],
  );
}

function progressOf({ steps }: SeededApp, options: SeedOptions): (weight: number, next: string) => void {
  const total = steps.reduce((sum, each) => sum + each.weight, weightOfCustomers + weightOfVacuum);
  let done = 0;
  return (weight, next) => {
    done = Math.min(total, done + weight);
    options.onProgress?.(done / total, next);
  };
}
