import { createHash } from 'node:crypto';
import { UnusableDestination } from '../destination.js';
import {
  type Column,
  hashColumn,
  type Kind,
  type PartTable,
  type Resource,
  type Table,
  versionColumn,
  workspaceColumn,
} from '../document.js';
import { shortenName } from '../names.js';
import { type Dialect, quoteLiteral, quoteName, type Session } from './dialect.js';
import type { Shape } from './shape.js';

export interface WholeTable extends Table {
  /** Columns of each row of a record or part, in the order of its texts. */
  readonly staged: readonly Column[];
  readonly key: readonly string[];
  /** Column with the id of the record; null: the table holds the records themselves. */
  readonly owner: string | null;
  /** Columns of an export: all except those that `pull` keeps for itself. */
  readonly shown: readonly Column[];
}

const makeColumn = (name: string, kind: Kind, comment: string): Column => ({
  name,
  path: [],
  kind,
  isRequired: true,
  digits: null,
  comment,
});

const makeOptional = (column: Column): Column => ({ ...column, isRequired: false });

/** Adds the columns of `pull`. */
export function planTables(resource: Resource, hasWorkspace: boolean): WholeTable[] {
  const workspace = hasWorkspace ? [makeColumn(workspaceColumn, 'text', 'Workspace of the record.')] : [];
  const ofPull = [
    makeOptional(makeColumn(versionColumn, 'text', 'Version of the record, as the gateway gave it.')),
    makeOptional(makeColumn(hashColumn, 'text', 'Hash of the record and its parts as they came.')),
  ];
  const { table } = resource;
  const main: WholeTable = {
    ...table,
    columns: [...workspace, ...table.columns, ...ofPull],
    staged: [...table.columns, ...ofPull],
    key: [getIdColumn(resource)],
    owner: null,
    shown: [...workspace, ...table.columns],
  };
  return [main, ...resource.parts.map((part) => describeWholePart(part, table.name, workspace))];
}

function describeWholePart(part: PartTable, record: string, workspace: readonly Column[]): WholeTable {
  const staged = [
    makeColumn(part.owner, 'text', `Refers to the id in ${record}.`),
    makeColumn('position', 'integer', 'Place in the record, from 1.'),
    ...part.columns,
  ];
  const columns = [...workspace, ...staged];
  return { ...part, columns, staged, key: [part.owner, 'position'], shown: columns };
}

/** The column of `id`, which no earlier member can have. */
export const getIdColumn = ({ table }: Resource): string =>
  (table.columns.find(({ path }) => path.join() === 'id') as Column).name;

/** Names an index with a point, which no table has. */
export const nameIndex = (table: Table, { name }: Column): string => shortenName(`${table.name}.${name}`);

interface StoredColumn {
  readonly name: string;
  readonly type: string;
  readonly nullable: string;
}

/** Returns an empty map if the table does not exist. */
async function listColumnsIn(session: Session, schema: string, table: string): Promise<Map<string, StoredColumn>> {
  const columns = await session.query<StoredColumn>(
    `select column_name as name, data_type as type, is_nullable as nullable from information_schema.columns
     where table_schema = $1 and table_name = $2`,
    [schema, table],
  );
  return new Map(columns.map((column) => [column.name, column]));
}

export async function isTable(session: Session, schema: string, table: string): Promise<boolean> {
  return (await listColumnsIn(session, schema, table)).size > 0;
}

/**
 * Makes the tables, or their missing columns, and gives columns their current type. Returns whether everything must be read again. Must run
 * in a transaction.
 */
export async function makeTables(
  session: Session,
  dialect: Dialect,
  tables: readonly WholeTable[],
  shape: Shape,
): Promise<boolean> {
  let isStale = false;
  for (const table of tables) {
    const present = await listColumnsIn(session, dialect.schema, table.name);
    if (present.size === 0) await createTable(session, dialect, table, shape);
    if (present.size === 0 || (await alterTable(session, dialect, table, shape, present))) isStale = true;
    shape.add(table);
    for (const column of table.columns) shape.add(table, column);
    await describe(session, dialect, table, shape);
  }
  return isStale;
}

/** Gives a table and its columns the comments of the document, if these have changed. */
async function describe(session: Session, dialect: Dialect, table: WholeTable, shape: Shape): Promise<void> {
  const tableName = dialect.at(table.name);
  const comments = [
    `comment on table ${tableName} is ${quoteLiteral(table.comment)}`,
    ...table.columns.map(
      ({ name, comment }) => `comment on column ${tableName}.${quoteName(name)} is ${quoteLiteral(comment)}`,
    ),
  ];
  if (!shape.noteComments(table.name, createHash('md5').update(comments.join()).digest('hex'))) return;
  for (const comment of comments) await session.query(comment);
}

export const getType = (dialect: Dialect, table: Table, column: Column, shape: Shape): string => {
  const need = shape.getNeed(table.name, column);
  return dialect.chooseType(need.kind, need, column.digits);
};

const isRequiredIn = (table: Table, column: Column, shape: Shape): boolean =>
  column.isRequired && !shape.getNeed(table.name, column).hasNull;

async function createTable(session: Session, dialect: Dialect, table: WholeTable, shape: Shape): Promise<void> {
  const columns = table.columns.map((column) => {
    const isFull = isRequiredIn(table, column, shape);
    return `${quoteName(column.name)} ${getType(dialect, table, column, shape)}${isFull ? ' not null' : ''}`;
  });
  const primary = dialect.hasIndexes ? [`primary key (${table.key.map(quoteName).join(', ')})`] : [];
  await session.query(`create table ${dialect.at(table.name)} (${[...columns, ...primary].join(', ')})`);
}

/** Gives an existing table its columns, and touches no column that `pull` did not make. Null fills what a later pass brings. */
async function alterTable(
  session: Session,
  dialect: Dialect,
  table: WholeTable,
  shape: Shape,
  present: ReadonlyMap<string, StoredColumn>,
): Promise<boolean> {
  const foreign = table.columns.find(({ name }) => present.has(name) && !shape.has(table.name, name));
  if (foreign !== undefined)
    throw new UnusableDestination(
      `${table.name}.${foreign.name} was not made by pull, and the API now has a field of that name: rename the column, and run pull again.`,
    );
  const missing = table.columns.filter(({ name }) => !present.has(name));
  const wrong = table.columns.filter((column) => {
    const stored = present.get(column.name)?.type.toLowerCase();
    return stored !== undefined && stored !== getType(dialect, table, column, shape).toLowerCase();
  });
  const wanted = new Set(table.columns.filter((column) => isRequiredIn(table, column, shape)).map(({ name }) => name));
  const tooStrict = [...present.values()].filter(
    ({ name, nullable }) => nullable === 'NO' && !wanted.has(name) && shape.has(table.name, name),
  );
  if (missing.length + wrong.length + tooStrict.length === 0) return false;
  const tableName = dialect.at(table.name);
  await refuseViews(session, dialect, table, wrong, shape, present);
  for (const { name } of tooStrict)
    await session.query(`alter table ${tableName} alter column ${quoteName(name)} drop not null`);
  for (const column of missing) {
    const type = getType(dialect, table, column, shape);
    await session.query(`alter table ${tableName} add column ${quoteName(column.name)} ${type}`);
  }
  for (const column of wrong) {
    const name = quoteName(column.name);
    const stored = present.get(column.name) as StoredColumn;
    if (stored.nullable === 'NO' && wanted.has(column.name) && !table.key.includes(column.name))
      await session.query(`alter table ${tableName} alter column ${name} drop not null`);
    const type = getType(dialect, table, column, shape);
    if (dialect.hasIndexes) await session.query(`drop index if exists ${dialect.at(nameIndex(table, column))}`);
    await session.query(
      `alter table ${tableName} alter column ${name} type ${type} using ${dialect.convert(name, type)}`,
    );
  }
  return missing.length > 0 || wrong.length > 0;
}

/** Throws Unusable if views show a column whose type must change: the database would drop them with it. */
async function refuseViews(
  session: Session,
  dialect: Dialect,
  table: WholeTable,
  wrong: readonly Column[],
  shape: Shape,
  present: ReadonlyMap<string, StoredColumn>,
): Promise<void> {
  for (const column of wrong) {
    const views = await dialect.listViewsOn(session, table.name, column.name);
    if (views.length > 0)
      throw new UnusableDestination(
        `${table.name}.${column.name} is ${present.get(column.name)?.type}, and the API now has ${getType(dialect, table, column, shape)}. ` +
          `Views show it: ${views.join(', ')}. Keep what pg_get_viewdef prints of each, drop them, run pull, and create them again.`,
      );
  }
}

/** DuckDB changes no table that has an index, and only a reader makes one there. */
const hasIndex = (error: Error): boolean => /Dependency Error/.test(error.message);

/** Makes columns `not null` that the document requires, once all records are there. */
export async function requireValues(
  session: Session,
  dialect: Dialect,
  tables: readonly WholeTable[],
  shape: Shape,
): Promise<void> {
  for (const table of tables) {
    const present = await listColumnsIn(session, dialect.schema, table.name);
    for (const column of table.columns)
      if (isRequiredIn(table, column, shape) && present.get(column.name)?.nullable === 'YES')
        await session
          .query(`alter table ${dialect.at(table.name)} alter column ${quoteName(column.name)} set not null`)
          .catch((error: Error) => {
            if (!hasIndex(error)) throw error;
          });
  }
}
