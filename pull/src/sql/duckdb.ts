import { mkdir, mkdtemp, rm } from 'node:fs/promises';
import { createRequire } from 'node:module';
import { tmpdir } from 'node:os';
import { dirname, join, resolve } from 'node:path';
import { type DuckDBConnection, DuckDBInstance } from '@duckdb/node-api';
import { type Destination, OutOfMemory, UnusableDestination } from '../destination.js';
import type { Digits, Kind } from '../document.js';
import { shortenName } from '../names.js';
import type { Row } from '../record.js';
import { type Dialect, quoteLiteral, quoteName, type Session, type Value } from './dialect.js';
import type { Shape } from './shape.js';
import { makeSqlDestination } from './sql-destination.js';
import { getType, type WholeTable } from './tables.js';

// The driver's decoder removes a byte order mark from each text that begins with one.
const { textDecoder } = createRequire(import.meta.url)('@duckdb/node-api/lib/vectors/dataAccessors.js');
const decoder = new TextDecoder('utf-8', { ignoreBOM: true });
textDecoder.decode = decoder.decode.bind(decoder);

/** Digits of a DECIMAL, at most. */
const digitsMax = 38;
/** Digits of a number that the document does not describe. */
const digitsUsual: Digits = { whole: 29, scale: 9 };

/** Chooses DECIMAL with the digits of the document, or more if values need it; VARCHAR if no DECIMAL holds all values. */
function chooseDecimal(need: Digits, document: Digits | null): string {
  const { whole, scale } = document ?? digitsUsual;
  const wanted = { whole: Math.max(whole, need.whole, 1), scale: Math.max(scale, need.scale) };
  if (wanted.whole + wanted.scale <= digitsMax) return `DECIMAL(${wanted.whole + wanted.scale},${wanted.scale})`;
  if (need.whole + need.scale > digitsMax) return 'VARCHAR';
  return `DECIMAL(${digitsMax},${Math.max(need.scale, Math.min(wanted.scale, digitsMax - need.whole))})`;
}

/** Digits that every BIGINT can hold. */
const bigintDigits = 18;

const types: Readonly<Record<Kind, (need: Digits, document: Digits | null) => string>> = {
  text: () => 'VARCHAR',
  timestamp: () => 'TIMESTAMP WITH TIME ZONE',
  date: () => 'DATE',
  integer: (need) =>
    need.whole <= bigintDigits && need.scale === 0 ? 'BIGINT' : chooseDecimal(need, { whole: digitsMax, scale: 0 }),
  number: chooseDecimal,
  boolean: () => 'BOOLEAN',
  json: () => 'JSON',
};

const recordsPerShare = 100_000;

const dialect: Dialect = {
  schema: 'main',
  at: (table) => `main.${quoteName(table)}`,
  staged: (table) => `temp.${quoteName(nameStaged(table))}`,
  temporary: '',
  chooseType: (kind, need, document) => types[kind](need, document),
  print: (kind, column) => {
    const text = `cast(${column} as varchar)`;
    if (kind === 'timestamp') return `regexp_replace(strftime(${column}, '%Y-%m-%dT%H:%M:%S.%f'), '000$', '') || 'Z'`;
    if (kind === 'number' || kind === 'integer')
      return `case when contains(${text}, '.') then rtrim(rtrim(${text}, '0'), '.') else ${text} end`;
    return text;
  },
  convert: (column, type) => (/^(VARCHAR|JSON)$/.test(type) ? `to_json(${column})` : `try_cast(${column} as ${type})`),
  listViewsOn: async () => [], // a view of DuckDB looks at its tables when it is read
  md5: (text) => `md5(${text})`,
  sha256: (text) => `sha256(${text})`,
  bytesOf: (text) => `strlen(${text})`,
  join: (texts) => `concat_ws('|', ${texts.join(', ')})`,
  xorOf: (hash) => `printf('%016x', bit_xor(('0x' || left(${hash}, 16))::UBIGINT))`,
  splitIntoShares: (records) => {
    const count = Math.max(1, Math.ceil(records / recordsPerShare));
    return Array.from({ length: count }, (_, i) => (column) => `hash(${column}) % ${count} = ${i}`);
  },
  texts: `select unnest(from_json($1, '["VARCHAR"]'))`,
  hasIndexes: false,
};

function nameStaged(table: string): string {
  return shortenName(`new ${table}`);
}

export interface OpenDuckdb {
  readonly connection: DuckDBConnection;
  readonly session: Session;
  close(): void;
}

export interface DuckdbOptions {
  readonly memoryMb?: number | undefined;
  readonly isReadOnly?: boolean;
}

/** Opens a database file in this process alone, or for reading beside other readers. */
export async function openDuckdb(
  file: string,
  { memoryMb = 128, isReadOnly = false }: DuckdbOptions = {},
): Promise<OpenDuckdb> {
  // A whole path, because names such as `:memory:` and `md:x` mean something else to DuckDB.
  const instance = await DuckDBInstance.create(resolve(file), {
    memory_limit: `${memoryMb}MB`,
    threads: '1', // each thread has its own buffers
    preserve_insertion_order: 'false',
    ...(isReadOnly && { access_mode: 'READ_ONLY' }),
  });
  const connection = await instance.connect();
  await connection.run(`set timezone = 'UTC'; set autoinstall_known_extensions = false`);
  const session: Session = {
    query: <T extends object>(sql: string, values: readonly Value[] = []) =>
      runNamed(async () => (await connection.runAndReadAll(sql, [...values])).getRowObjectsJson() as T[]),
    load: (table, rows) => runNamed(() => appendRows(connection, nameStaged(table), rows)),
  };
  const close = (): void => {
    connection.closeSync();
    instance.closeSync();
  };
  return { connection, session, close };
}

/** Throws OutOfMemory instead of DuckDB's error. */
async function runNamed<T>(work: () => Promise<T>): Promise<T> {
  try {
    return await work();
  } catch (error) {
    const { message } = error as Error;
    if (/Out of Memory|failed to (pin|allocate)|could not allocate|bad.?alloc/i.test(message))
      throw new OutOfMemory(message, /FATAL|invalidated/.test(message));
    throw error;
  }
}

async function appendRows(connection: DuckDBConnection, table: string, rows: readonly Row[]): Promise<void> {
  const appender = await connection.createAppender(table, 'main', 'temp');
  try {
    for (const row of rows) {
      for (const value of row) {
        if (value === null) appender.appendNull();
        else appender.appendVarchar(value);
      }
      appender.endRow();
    }
  } finally {
    appender.closeSync();
  }
}

/** Throws Unusable. */
export async function openDuckdbDestination(
  file: string,
  hasWorkspace: boolean,
  memoryMb: number,
): Promise<Destination> {
  await mkdir(dirname(file), { recursive: true, mode: 0o700 });
  const { connection, session, close } = await openCopy(file, { memoryMb });
  try {
    return await makeSqlDestination(session, dialect, hasWorkspace, {
      readRows: (query) => readRows(connection, query),
      exportParquet: async (table, _, part) => {
        const shown = table.shown.map(({ name }) => quoteName(name)).join(', ');
        await session.query(copySql(`select ${shown} from ${dialect.at(table.name)}`, part));
      },
      close: async () => close(),
    });
  } catch (error) {
    close();
    throw error;
  }
}

const copySql = (query: string, file: string): string =>
  `copy (${query}) to ${quoteLiteral(file)} (format parquet, compression zstd, row_group_size 20480)`;

async function* readRows(connection: DuckDBConnection, query: string): AsyncGenerator<Row[]> {
  const result = await runNamed(() => connection.stream(query));
  for (;;) {
    const chunk = await runNamed(() => result.fetchChunk());
    if (chunk === null || chunk.rowCount === 0) return;
    yield chunk.getRows() as Row[];
  }
}

/** Writes texts of another database into a new Parquet file. */
export async function exportParquet(
  table: WholeTable,
  shape: Shape,
  file: string,
  batches: AsyncIterable<readonly Row[]>,
  memoryMb: number,
): Promise<void> {
  const scratch = await mkdtemp(join(tmpdir(), 'workspace-data-pull-'));
  const { session, close } = await openDuckdb(join(scratch, 'export.duckdb'), { memoryMb });
  try {
    const names = table.shown.map(({ name }) => quoteName(name));
    await session.query(
      `create temporary table ${dialect.staged(table.name)} (${names.map((name) => `${name} VARCHAR`).join(', ')})`,
    );
    for await (const rows of batches) await session.load(table.name, rows);
    const typed = table.shown.map(
      (column, i) => `cast(${names[i]} as ${getType(dialect, table, column, shape)}) as ${names[i]}`,
    );
    await session.query(copySql(`select ${typed.join(', ')} from ${dialect.staged(table.name)}`, file));
  } finally {
    close();
    await rm(scratch, { recursive: true, force: true });
  }
}

/** Reads a copy that another process can have open for reading too. Throws Unusable. */
export async function readDuckdb<T>(file: string, read: (session: Session) => Promise<T>): Promise<T> {
  const { session, close } = await openCopy(file, { isReadOnly: true });
  try {
    return await read(session);
  } finally {
    close();
  }
}

/** Opens a copy. Throws Unusable. */
export async function openCopy(file: string, options: DuckdbOptions = {}): Promise<OpenDuckdb> {
  return openDuckdb(file, options).catch((error: Error) => {
    if (/lock/i.test(error.message)) throw new UnusableDestination(`Another process has ${file} open.`, true);
    throw new UnusableDestination(
      `${file} cannot be opened: ${(error.message.split('\n')[0] as string).slice(0, 300)}`,
    );
  });
}
