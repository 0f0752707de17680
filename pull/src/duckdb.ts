import { mkdir, mkdtemp, open, rename, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { dirname, join } from 'node:path';
import { type DuckDBConnection, DuckDBInstance } from '@duckdb/node-api';
import { type Destination, type ExportFormat, Unusable } from './destination.js';
import type { Column, ColumnType, Resource } from './document.js';
import {
  type Dialect,
  danglingIn,
  literal,
  prepareState,
  quoted,
  type Session,
  sqlCopy,
  tablesOf,
  type Value,
  type WholeTable,
} from './sql-copy.js';

export const types: Readonly<Record<ColumnType, string>> = {
  text: 'VARCHAR',
  timestamp: 'TIMESTAMP WITH TIME ZONE',
  date: 'DATE',
  integer: 'BIGINT',
  number: 'DECIMAL(38,9)',
  boolean: 'BOOLEAN',
  json: 'JSON',
};

const field = (json: string, path: readonly string[]): string => [json, ...path.map(quoted)].join('.');

const recordsPerShare = 100_000;

/** DuckDB keeps no index here: it skips blocks by their smallest and largest value, and its indexes stay in memory. */
const dialect: Dialect = {
  schema: 'main',
  temporary: 'temp',
  types,
  valueIn: (json, { path, type }) => (type === 'json' ? `nullif(${field(json, path)}, 'null')` : field(json, path)),
  elements: ({ member }) => {
    const place = field('r', [member]);
    return `(select id, unnest(${place}) as e, generate_subscripts(${place}, 1) as position from page)`;
  },
  md5: (text) => `md5(${text})`,
  sha256: (text) => `sha256(${text})`,
  xorOf: (hash) => `printf('%016x', bit_xor(('0x' || left(${hash}, 16))::UBIGINT))`,
  shares: (records) => {
    const count = Math.max(1, Math.ceil(records / recordsPerShare));
    return Array.from({ length: count }, (_, i) => (column) => `hash(${column}) % ${count} = ${i}`);
  },
  rowText: (columns) => `to_json([${columns.map((column) => `${column}::VARCHAR`).join(', ')}])::VARCHAR`,
  texts: `select unnest(from_json($1, '["VARCHAR"]'))`,
  hasIndexes: false,
};

/** The form of a record, for from_json. */
function formOf(resource: Resource): object {
  const form: Record<string, unknown> = { syncVersion: 'VARCHAR' };
  const put = (place: Record<string, unknown>, [name = '', ...rest]: readonly string[], type: string): void => {
    if (rest.length === 0) place[name] = type;
    else {
      place[name] ??= {};
      put(place[name] as Record<string, unknown>, rest, type);
    }
  };
  for (const { path, type } of resource.columns) put(form, path, types[type]);
  for (const { member, columns } of resource.parts) {
    const element: Record<string, unknown> = {};
    for (const { path, type } of columns) put(element, path, types[type]);
    form[member] = [element];
  }
  return form;
}

/** Makes numbers of more than 15 digits texts, which DuckDB then casts without the loss of a floating-point number. */
function longNumbersQuoted(resource: Resource): (record: string) => string {
  const all: readonly Column[] = [...resource.columns, ...resource.parts.flatMap(({ columns }) => columns)];
  const names = all.filter(({ type }) => type === 'number' || type === 'integer').map(({ path }) => path.at(-1));
  if (names.length === 0) return (record) => record;
  const long = new RegExp(`("(?:${names.join('|')})":)(-?[0-9.]{16,}(?:[eE][+-]?[0-9]+)?)`, 'g');
  return (record) => record.replace(long, '$1"$2"');
}

/** Makes the temporary table `lines` (n, line). A text in a parameter would be parsed into values one by one, outside of the bound of memory. */
async function appendLines(
  connection: DuckDBConnection,
  batches: AsyncIterable<readonly string[]> | Iterable<readonly string[]>,
): Promise<void> {
  await connection.run('create or replace temporary table lines (n BIGINT, line VARCHAR)');
  let n = 0n;
  for await (const batch of batches) {
    const appender = await connection.createAppender('lines', 'main', 'temp');
    for (const line of batch) {
      appender.appendBigInt(n++);
      appender.appendVarchar(line);
      appender.endRow();
    }
    appender.closeSync();
  }
}

/** Opens a database file in this process alone. */
export async function openDuckdb(
  file: string,
): Promise<{ connection: DuckDBConnection; session: Session; close: () => void }> {
  const instance = await DuckDBInstance.create(file, {
    memory_limit: '48MB',
    threads: '1', // each has buffers of its own
    preserve_insertion_order: 'false',
  });
  const connection = await instance.connect();
  await connection.run(`set timezone = 'UTC'; set autoinstall_known_extensions = false`);
  const session: Session = {
    rows: async <T extends object>(sql: string, values: readonly Value[] = []) =>
      (await connection.runAndReadAll(sql, [...values])).getRowObjectsJson() as T[],
    makePage: async (resource, records) => {
      await appendLines(connection, [records.map(longNumbersQuoted(resource))]);
      const form = literal(JSON.stringify(formOf(resource)));
      await connection.run(
        `create or replace temporary table page as select r.id as id, n, r from (select n, from_json(line, ${form}) as r from lines)`,
      );
      await connection.run('drop table lines');
    },
  };
  const close = (): void => {
    connection.closeSync();
    instance.closeSync();
  };
  return { connection, session, close };
}

/** A copy in a DuckDB file. Throws Unusable. */
export async function duckdbDestination(file: string): Promise<Destination> {
  await mkdir(dirname(file), { recursive: true, mode: 0o700 });
  const { connection, session, close } = await openDuckdb(file).catch((error: Error) => {
    if (/lock/i.test(error.message)) throw new Unusable(`Another process has ${file} open.`);
    throw new Unusable(`${file} cannot be opened: ${(error.message.split('\n')[0] as string).slice(0, 300)}`);
  });
  try {
    const changeFiles = await prepareState(session, dialect);
    return {
      changeFiles,
      open: (resource) => sqlCopy(session, dialect, resource),
      dangling: (resources) => danglingIn(session, dialect, resources),
      export: async (resource, folder, format) => {
        for (const table of tablesOf(resource)) await copyTo(connection, table, folder, format);
      },
      close: async () => close(),
    };
  } catch (error) {
    close();
    throw error;
  }
}

/** As the API writes moments. */
const moments = `timestampformat '%Y-%m-%dT%H:%M:%S.%gZ'`;
const options: Readonly<Record<ExportFormat, string>> = {
  parquet: 'format parquet, compression zstd, row_group_size 20480',
  csv: `format csv, header true, ${moments}`,
  ndjson: `format json, ${moments}`,
};

/** Replaces FOLDER/TABLE.FORMAT by the rows of a table, in one step. */
export async function copyTo(
  connection: DuckDBConnection,
  table: WholeTable,
  folder: string,
  format: ExportFormat,
): Promise<void> {
  const file = join(folder, `${table.name}.${format}`);
  const part = `${file}.part`;
  await rm(part, { force: true });
  const query = `select ${table.shown.map(quoted).join(', ')} from main.${quoted(table.name)}`;
  await connection.run(`copy (${query}) to ${literal(part)} (${options[format]})`);
  const written = await open(part, 'r+');
  await written.sync();
  await written.close();
  await rename(part, file);
}

/** The same for rows of another database, as lines of JSON whose values are texts. */
export async function exportRows(
  table: WholeTable,
  folder: string,
  format: ExportFormat,
  batches: AsyncIterable<readonly string[]>,
): Promise<void> {
  const scratch = await mkdtemp(join(tmpdir(), 'workspace-data-pull-'));
  const { connection, close } = await openDuckdb(join(scratch, 'export.duckdb'));
  try {
    await appendLines(connection, batches);
    const form = literal(
      JSON.stringify(Object.fromEntries(table.columns.map(({ name, type }) => [name, types[type]]))),
    );
    await connection.run(
      `create table main.${quoted(table.name)} as select r.* from (select from_json(line, ${form}) as r from lines)`,
    );
    await connection.run('drop table lines');
    await copyTo(connection, table, folder, format);
  } finally {
    close();
    await rm(scratch, { recursive: true, force: true });
  }
}
