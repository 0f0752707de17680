import { createHash } from 'node:crypto';
import { existsSync } from 'node:fs';
import { join } from 'node:path';
import pg from 'pg';
import { asAdmin } from '../postgres/admin.js';
import { type LockOptions, lock } from './lock.js';
import { defaultViewsDir, MigrationFailed, sqlNames, sqlText } from './sql-files.js';

const name = pg.escapeIdentifier;

/** One proposal: `create index concurrently if not exists NAME on SCHEMA.TABLE (…)`. */
interface Proposal {
  readonly index: string;
  readonly schema: string;
  readonly table: string;
  readonly columns: string;
}

/** Whether the folder of views has a folder of index proposals. Throws MigrationFailed when it cannot be read itself. */
export function hasIndexes(viewsDir: string): boolean {
  sqlNames(viewsDir);
  return existsSync(join(viewsDir, 'indexes'));
}

/**
 * Creates the proposed indexes that are missing, without blocking writes, and returns the names of those it made. An
 * index that an interrupted run left invalid is dropped and made again. Throws MigrationFailed or pg's error.
 */
export async function createIndexes(
  adminUrl: string,
  options: LockOptions & { viewsDir?: string; onCreated?: (index: string) => void } = {},
) {
  const proposals = readProposals(join(options.viewsDir ?? defaultViewsDir, 'indexes'));
  return asAdmin(adminUrl, async (client) => {
    await lock(client, options);
    await client.query('set statement_timeout = 0');
    const created: string[] = [];
    const note = (index: string): void => {
      created.push(index);
      options.onCreated?.(index);
    };
    for (const proposal of proposals) await create(client, proposal, note);
    return created;
  });
}

async function create(client: pg.Client, { index, schema, table, columns }: Proposal, note: (index: string) => void) {
  const relation = await client.query('select relkind from pg_class where oid = to_regclass($1)', [
    `${name(schema)}.${name(table)}`,
  ]);
  if (relation.rows.length === 0)
    throw new MigrationFailed(`The index ${index} is for ${schema}.${table}, which does not exist.`);
  await refuseOtherColumns(client, { index, schema, table, columns });
  if (relation.rows[0].relkind === 'p') await createPartitioned(client, { index, schema, table, columns }, note);
  else if (await createConcurrently(client, { index, schema, table, columns })) note(index);
}

const plainColumns = /^\(\w+(?:, \w+)*\)$/;

/** Throws MigrationFailed when the index exists with other columns, where both are plain: a proposal was edited, or the name is taken. */
async function refuseOtherColumns(client: pg.Client, { index, schema, table, columns }: Proposal): Promise<void> {
  const text = 'select pg_get_indexdef(to_regclass($1)) as definition';
  const { rows } = await client.query<{ definition: string | null }>(text, [`${name(schema)}.${name(index)}`]);
  const [, definition] = / using btree (.*)$/i.exec(rows[0]?.definition ?? '') ?? [];
  const [there, wanted] = [definition ?? '', columns].map(columnsOnly) as [string, string];
  const isComparable = [there, wanted].every((each) => plainColumns.test(each));
  if (!isComparable || there === wanted) return;
  throw new MigrationFailed(
    `The index ${index} on ${schema}.${table} exists with other columns, ${there} instead of ${wanted}: drop it, or give the proposal another name.`,
  );
}

/** '("a", b) where c' → "(a, b)". */
function columnsOnly(columns: string): string {
  const [list = ''] = columns.split(/\s+where\s/i);
  return list
    .replaceAll('"', '')
    .replace(/\s*([(),])\s*/g, '$1')
    .replaceAll(',', ', ')
    .toLowerCase();
}

/** PostgreSQL cannot build a partitioned index concurrently: the indexes of the partitions are, and are then attached. */
async function createPartitioned(client: pg.Client, parent: Proposal, note: (index: string) => void): Promise<void> {
  const { index, schema, table, columns } = parent;
  const before = await validity(client, schema, index);
  if (before === 'valid') return;
  if (before === 'missing') {
    await client.query(`set lock_timeout = '10s'`);
    await client.query(`create index ${name(index)} on only ${name(schema)}.${name(table)} ${columns}`);
    await client.query('set lock_timeout = 0');
  }
  const { rows } = await client.query(withoutPart, [
    `${name(schema)}.${name(table)}`,
    `${name(schema)}.${name(index)}`,
  ]);
  for (const part of rows as { schema: string; table: string }[]) {
    const partIndex = shortened(`${index}_${part.table}`);
    await create(client, { index: partIndex, columns, ...part }, note);
    await client.query(
      `alter index ${name(schema)}.${name(index)} attach partition ${name(part.schema)}.${name(partIndex)}`,
    );
  }
  note(index);
}

/** Partitions of $1 whose index is not attached to the index $2. */
const withoutPart = `
  select n.nspname as schema, c.relname as table
  from pg_inherits i join pg_class c on c.oid = i.inhrelid join pg_namespace n on n.oid = c.relnamespace
  where i.inhparent = to_regclass($1) and c.relkind in ('r', 'p') and not exists (
    select from pg_inherits a join pg_index x on x.indexrelid = a.inhrelid
    where a.inhparent = to_regclass($2) and x.indrelid = c.oid)
  order by c.relname`;

async function createConcurrently(client: pg.Client, { index, schema, table, columns }: Proposal): Promise<boolean> {
  const before = await validity(client, schema, index);
  if (before === 'valid') return false;
  if (before === 'invalid') await client.query(`drop index concurrently ${name(schema)}.${name(index)}`);
  await client.query(`create index concurrently ${name(index)} on ${name(schema)}.${name(table)} ${columns}`);
  return true;
}

async function validity(client: pg.Client, schema: string, index: string): Promise<'missing' | 'valid' | 'invalid'> {
  const text = 'select indisvalid from pg_index where indexrelid = to_regclass($1)';
  const { rows } = await client.query(text, [`${name(schema)}.${name(index)}`]);
  if (rows.length === 0) return 'missing';
  return rows[0].indisvalid ? 'valid' : 'invalid';
}

const identifier = String.raw`(\w+|"(?:[^"]|"")+")`;
const shape = new RegExp(
  String.raw`^create index concurrently if not exists ${identifier}\s+on ${identifier}\.${identifier}\s+(\(.+\))\s*;$`,
  'is',
);

/** The name that PostgreSQL takes from an identifier: small letters, unless it is quoted. */
function nameIn(identifier: string): string {
  return identifier.startsWith('"') ? identifier.slice(1, -1).replaceAll('""', '"') : identifier.toLowerCase();
}

function readProposals(folder: string): Proposal[] {
  return sqlNames(folder).map((file) => {
    const sql = sqlText(folder, file)
      .replace(/^--.*$/gm, '')
      .trim();
    const [, index, schema, table, columns] = shape.exec(sql) ?? [];
    if (index && schema && table && columns)
      return { index: nameIn(index), schema: nameIn(schema), table: nameIn(table), columns };
    throw new MigrationFailed(
      `${file} is not one "create index concurrently if not exists NAME on SCHEMA.TABLE (…);".`,
    );
  });
}

/** Identifiers are cut at 63 bytes by PostgreSQL; a hash keeps those of two partitions apart. */
function shortened(identifier: string): string {
  if (identifier.length <= 63) return identifier;
  return `${identifier.slice(0, 54)}_${createHash('sha256').update(identifier).digest('hex').slice(0, 8)}`;
}
