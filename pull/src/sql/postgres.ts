import pg from 'pg';
import Cursor from 'pg-cursor';
import { type Destination, OutOfMemory, UnusableDestination } from '../destination.js';
import type { Kind } from '../document.js';
import { shortenName } from '../names.js';
import type { Row } from '../record.js';
import { type Dialect, quoteName, type Session, type Value } from './dialect.js';
import { lockSchema, type SchemaLock } from './lock.js';
import { composeTexts, makeSqlDestination } from './sql-destination.js';

/** Rows, and about characters, that an export reads at once. */
const rowsPerReadMax = 5_000;
const readLength = 2_000_000;

const types: Readonly<Record<Kind, string>> = {
  text: 'text',
  timestamp: 'timestamp with time zone',
  date: 'date',
  integer: 'bigint',
  number: 'numeric',
  boolean: 'boolean',
  json: 'json', // jsonb would sort members and drop repeated ones
};
/** Digits that every bigint can hold. */
const bigintDigits = 18;

const makeDialect = (schema: string): Dialect => ({
  schema,
  at: (table) => `${quoteName(schema)}.${quoteName(table)}`,
  staged: (table) => `pg_temp.${quoteName(shortenName(`new ${table}`))}`,
  temporary: 'on commit drop',
  chooseType: (kind, { whole, scale }) =>
    kind === 'integer' && (whole > bigintDigits || scale > 0) ? types.number : types[kind],
  print: (kind, column) => {
    if (kind === 'timestamp') {
      const text = `to_char(${column} at time zone 'UTC', 'YYYY-MM-DD"T"HH24:MI:SS.US')`;
      return `regexp_replace(${text}, '000$', '') || 'Z'`;
    }
    return kind === 'number' || kind === 'integer' ? `trim_scale(${column}::numeric)::text` : `${column}::text`;
  },
  convert: (column, type) => {
    if (type === types.text) return `${column}::text`;
    if (type === types.json) return `to_json(${column})`;
    return type === types.number ? `nullif(${column}::text, '')::numeric` : 'null';
  },
  listViewsOn: makeViewLister(schema),
  md5: (text) => `md5(${text})`,
  sha256: (text) => `encode(sha256(convert_to(${text}, 'UTF8')), 'hex')`,
  bytesOf: (text) => `octet_length(${text})`,
  join: (texts) => `array_to_string(array[${texts.join(', ')}], '|')`,
  xorOf: (hash) => `lpad(to_hex(bit_xor(('x' || left(${hash}, 16))::bit(64)::bigint)), 16, '0')`,
  splitIntoShares: () => [() => 'true'],
  texts: 'select jsonb_array_elements_text($1::jsonb)',
  hasIndexes: true,
});

const makeViewLister =
  (schema: string): Dialect['listViewsOn'] =>
  async (session, table, column) => {
    const rows = await session.query<{ view: string }>(
      `select distinct r.ev_class::regclass::text as view from pg_depend d join pg_rewrite r on r.oid = d.objid
       join pg_attribute a on a.attrelid = d.refobjid and a.attnum = d.refobjsubid
       where d.classid = 'pg_rewrite'::regclass and d.refobjid = to_regclass($1) and a.attname = $2 and r.ev_class <> d.refobjid`,
      [`${quoteName(schema)}.${quoteName(table)}`, column],
    );
    return rows.map(({ view }) => view);
  };

/** Needs PostgreSQL 15 or later. Throws Unusable. */
export async function openPostgresDestination(
  url: string,
  schema: string,
  hasWorkspace: boolean,
  memoryMb: number,
): Promise<Destination> {
  const db = await connectClient(url);
  let lock: SchemaLock | null = null;
  const close = async (): Promise<void> => {
    await db.end().catch(() => undefined);
    await lock?.release();
  };
  try {
    const { rows } = await db.query(
      `select current_setting('server_encoding') as encoding, current_setting('server_version_num')::integer / 10000 as version`,
    );
    const [{ encoding, version }] = rows;
    if (encoding !== 'UTF8')
      throw new UnusableDestination(`The database has the encoding ${encoding}: give one that has UTF8.`);
    if (version < 15)
      throw new UnusableDestination(`The server is PostgreSQL ${version}: the copy needs PostgreSQL 15 or later.`);
    lock = await lockSchema(() => connectClient(url), schema, db);
    const session = makeSession(db, lock);
    await makeSchema(session, schema);
    const dialect = makeDialect(schema);
    return await makeSqlDestination(session, dialect, hasWorkspace, {
      readRows: (query) => readRows(db, query),
      exportParquet: async (table, shape, file) => {
        const { exportParquet } = await import('./duckdb.js');
        await exportParquet(table, shape, file, readRows(db, composeTexts(dialect, table, shape)), memoryMb);
      },
      close,
    });
  } catch (error) {
    await close().catch(() => undefined);
    throw error;
  }
}

/** Sets the session so that values have one text. Throws Unusable. */
async function connectClient(url: string): Promise<pg.Client> {
  const db = new pg.Client({
    connectionString: url,
    application_name: 'workspace-data-pull',
    connectionTimeoutMillis: 10_000,
  });
  db.on('error', () => undefined); // the next statement reports a connection that died
  await db.connect().catch((error: Error & { code?: string }) => {
    throw new UnusableDestination(`The destination cannot be reached: ${error.message || error.code}.`, true);
  });
  // PgBouncer keeps these three apart for each of its clients, and no other setting.
  await db.query(`set timezone = 'UTC'; set datestyle = 'ISO'; set standard_conforming_strings = on`);
  return db;
}

/** Reads a copy. Throws Unusable. */
export async function readPostgres<T>(url: string, read: (session: Session) => Promise<T>): Promise<T> {
  const db = await connectClient(url);
  try {
    await db.query('begin read only');
    return await read(makeSession(db));
  } finally {
    await db.end().catch(() => undefined);
  }
}

/** Looks first, because a role that owns the schema need not be able to create one. */
async function makeSchema(session: Session, schema: string): Promise<void> {
  const [existing] = await session.query<{ usable: boolean }>(
    `select has_schema_privilege(oid, 'usage, create') and has_schema_privilege(oid, 'create') as usable from pg_namespace where nspname = $1`,
    [schema],
  );
  if (existing?.usable === true) return;
  const [who] = await session.query<{ role: string; database: string; may: boolean }>(
    `select quote_ident(current_user) as role, quote_ident(current_database()) as database,
       has_database_privilege(current_database(), 'create') as may`,
  );
  if (existing !== undefined)
    throw new UnusableDestination(
      `The role lacks the right to create tables: grant usage, create on schema ${quoteName(schema)} to ${who?.role}.`,
    );
  if (who?.may !== true)
    throw new UnusableDestination(
      `There is no schema ${schema}, and the role lacks the right to create it: create schema ${quoteName(schema)} authorization ${who?.role}, ` +
        `or grant create on database ${who?.database} to ${who?.role}.`,
    );
  await session.query(`create schema if not exists ${quoteName(schema)}`);
}

function makeSession(db: pg.Client, lock: SchemaLock | null = null): Session {
  const query = async <T extends object>(sql: string, values: readonly Value[] = []): Promise<T[]> => {
    if (lock?.isLost)
      throw new UnusableDestination('The connection that held the lock on the destination was lost.', true);
    try {
      return (await db.query<T>(sql, [...values])).rows ?? [];
    } catch (error) {
      const { code, message } = error as { code?: string; message: string };
      // 53200: out of memory; 54000: a value larger than the server takes.
      if (code === '53200' || code === '54000') throw new OutOfMemory(message, false);
      throw error;
    }
  };
  return {
    query,
    load: async (table, texts) => {
      const columns = texts[0]?.map((_, i) => `r ->> ${i}`).join(', ');
      const staged = `pg_temp.${quoteName(shortenName(`new ${table}`))}`;
      await query(`insert into ${staged} select ${columns} from jsonb_array_elements($1::jsonb) r`, [
        JSON.stringify(texts),
      ]);
    },
  };
}

async function* readRows(db: pg.Client, query: string): AsyncGenerator<Row[]> {
  const cursor = db.query(new Cursor<Row>(query, [], { rowMode: 'array' }));
  try {
    for (let count = 1; ; ) {
      const rows = await cursor.read(count);
      if (rows.length === 0) return;
      yield rows;
      const length = rows.reduce((sum, row) => row.reduce((all, value) => all + (value?.length ?? 0), sum), 1);
      count = Math.max(1, Math.min(rowsPerReadMax, 4 * count, Math.floor((rows.length * readLength) / length)));
    }
  } finally {
    await cursor.close();
  }
}
