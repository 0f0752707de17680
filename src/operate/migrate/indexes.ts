import { existsSync } from 'node:fs';
import { join } from 'node:path';
import pg from 'pg';
import { readProject } from '../../base/paths.js';
import { shortenName } from '../../postgres/statement.js';
import { holdMigrationLock, type LockOptions } from './migrations.js';
import { defaultViewsDir, listSqlNames, MigrationFailed, readSqlText } from './sql-files.js';

interface Proposal {
  readonly index: string;
  readonly schema: string;
  readonly table: string;
  readonly columns: string;
}

/** Creates missing indexes without blocking writes, and replaces an invalid one of an interrupted run. Throws MigrationFailed. */
export async function createIndexes(
  adminUrl: string,
  {
    viewsDir = defaultViewsDir,
    onCreated = () => undefined,
    ...wait
  }: LockOptions & { viewsDir?: string; onCreated?: (index: string) => void } = {},
): Promise<void> {
  const proposals = readProposals(viewsDir);
  return holdMigrationLock(adminUrl, wait, async (client) => {
    await client.query('set statement_timeout = 0');
    for (const proposal of proposals) {
      await createIndex(client, proposal, onCreated).catch((error: Error) => {
        const failed = new MigrationFailed(`The index ${proposal.index}: ${error.message}.`, { cause: error });
        throw error instanceof MigrationFailed ? error : failed;
      });
      const { schema, index, table } = proposal;
      await client.query(noteIndex, [`${schema}.${index}`, `${schema}.${table}`]); // so that `check` misses it
    }
  });
}

const noteIndex = `insert into gateway.applied_files (root, name, hash, objects)
  select 'indexes', $1, '', array['index ' || $1, format('table %I.%I', n.nspname, c.relname)]
  from pg_class c join pg_namespace n on n.oid = c.relnamespace where c.oid = to_regclass($2)
  on conflict (root, name) do update set objects = excluded.objects`;

/** Leaves an existing index of the table as it is, whatever its columns. */
async function createIndex(client: pg.Client, proposal: Proposal, note: (index: string) => void): Promise<void> {
  const { index, schema, table, columns } = proposal;
  const [relation, path] = [`${schema}.${table}`, `${schema}.${index}`];
  type IndexState = { kind: string | null; valid: boolean | null; other: string | null };
  const { rows } = await client.query<IndexState>(
    `select c.relkind as kind, i.indisvalid as valid, case when i.indrelid <> c.oid then i.indrelid::regclass::text end as other
     from (values (1)) one left join pg_class c on c.oid = to_regclass($1) left join pg_index i on i.indexrelid = to_regclass($2)`,
    [relation, path],
  );
  const { kind, valid, other: otherTable } = rows[0] as IndexState;
  if (kind === null) throw new MigrationFailed(`The index ${index} is for ${relation}, which does not exist.`);
  if (otherTable !== null)
    throw new MigrationFailed(
      `The index ${path} is for ${relation}, but belongs to ${otherTable}: drop or rename it, then run this again.`,
    );
  if (valid === true) return;
  await client.query('insert into gateway.undo (statement) values ($1)', [`drop index if exists ${path}`]);
  if (kind === 'p') {
    // PostgreSQL builds no partitioned index concurrently: each partition gets its index, which is then attached.
    if (valid === null)
      await client.query(
        `set lock_timeout = '10s'; create index ${index} on only ${relation} ${columns}; set lock_timeout = 0`,
      );
    const unattached = readProject('sql/catalog/partitions.sql');
    const partitions = await client.query<{ schema: string; table: string }>(unattached, [relation, path]);
    for (const partition of partitions.rows) {
      const own = pg.escapeIdentifier(shortenName(`${index}_${partition.table}`.replaceAll('"', '')));
      await createIndex(client, { index: own, columns, ...partition }, note);
      await client.query(`alter index ${path} attach partition ${partition.schema}.${own}`);
    }
  } else {
    if (valid === false) await client.query(`drop index concurrently ${path}`);
    await client.query(`create index concurrently ${index} on ${relation} ${columns}`);
  }
  note(index);
}

const identifier = String.raw`(\w+|"(?:[^"]|"")+")`;
const createIndexForm = new RegExp(
  String.raw`^create index concurrently if not exists ${identifier}\s+on ${identifier}\.${identifier}\s+(\(.+\))\s*;$`,
  'is',
);

function readProposals(viewsDir: string): Proposal[] {
  listSqlNames(viewsDir); // throws if the folder of views cannot be read
  const folder = join(viewsDir, 'indexes');
  return (existsSync(folder) ? listSqlNames(folder) : []).map((file) => {
    const sql = readSqlText(folder, file)
      .replace(/^--.*$/gm, '')
      .trim();
    const [, index, schema, table, columns] = createIndexForm.exec(sql) ?? [];
    if (index && schema && table && columns) return { index, schema, table, columns };
    throw new MigrationFailed(`${file} is no "create index concurrently if not exists NAME on SCHEMA.TABLE (…);".`);
  });
}
