import pg from 'pg';
import Cursor from 'pg-cursor';
import { type Destination, type ExportFormat, Unusable } from './destination.js';
import type { Column, Resource } from './document.js';
import {
  type Dialect,
  danglingIn,
  prepareState,
  quoted,
  type Session,
  sqlCopy,
  tablesOf,
  type Value,
} from './sql-copy.js';

/** Serializes the processes that pull into a database: two would overwrite newer records with older ones. */
const lockKey = 7_205_759_403;
const exportRowsPerRead = 5_000;

const dialect: Dialect = {
  schema: 'workspace_data',
  temporary: 'pg_temp',
  types: {
    text: 'text',
    timestamp: 'timestamp with time zone',
    date: 'date',
    integer: 'bigint',
    number: 'numeric',
    boolean: 'boolean',
    json: 'jsonb',
  },
  valueIn: (json, { path, type }) => {
    const place = `'{${path.map((name) => `"${name.replace(/["\\]/g, '\\$&')}"`).join(',')}}'`.replace(
      /(?<=.)'(?=.*'$)/g,
      "''",
    );
    if (type === 'json') return `nullif(${json} #> ${place}, 'null')`;
    const text = `(${json} #>> ${place})`;
    return type === 'text' ? text : `${text}::${dialect.types[type]}`;
  },
  elements: ({ member }) => {
    const place = `r -> '${member.replaceAll("'", "''")}'`;
    return `page cross join lateral jsonb_array_elements(case jsonb_typeof(${place}) when 'array' then ${place} else '[]' end)
      with ordinality as elements(e, position)`;
  },
  md5: (text) => `md5(${text})`,
  sha256: (text) => `encode(sha256(convert_to(${text}, 'UTF8')), 'hex')`,
  xorOf: (hash) => `lpad(to_hex(bit_xor(('x' || left(${hash}, 16))::bit(64)::bigint)), 16, '0')`,
  shares: () => [() => 'true'],
  rowText: (columns) => `row(${columns.join(', ')})::text`,
  texts: 'select jsonb_array_elements_text($1::jsonb)',
  hasIndexes: true,
};

/** A copy in the schema workspace_data of PostgreSQL 14 or later. Throws Unusable. */
export async function postgresDestination(url: string): Promise<Destination> {
  const db = new pg.Client({
    connectionString: url,
    application_name: 'workspace-data-pull',
    connectionTimeoutMillis: 10_000,
  });
  db.on('error', () => undefined); // the next statement reports a connection that died
  await db.connect().catch((error: Error & { code?: string }) => {
    throw new Unusable(`The destination cannot be reached: ${error.message || error.code}.`);
  });
  try {
    const session: Session = {
      rows: async <T extends object>(sql: string, values: readonly Value[] = []) =>
        (await db.query<T>(sql, [...values])).rows ?? [],
      makePage: async (_, records) => {
        await db.query('create temporary table if not exists page (id text, n bigint, r jsonb); truncate page');
        const text = `insert into page select r ->> 'id', n, r from jsonb_array_elements($1::jsonb) with ordinality as data(r, n)`;
        await db.query(text, [`[${records.join(',')}]`]);
      },
    };
    // The hash of a row is that of its text.
    await db.query(
      `set timezone = 'UTC'; set datestyle = 'ISO'; set extra_float_digits = 1; set client_min_messages = warning`,
    );
    const { rows } = await db.query('select pg_try_advisory_lock($1) as mine', [lockKey]);
    if (!rows[0].mine) throw new Unusable('Another process pulls into this destination.');
    await db.query(`create schema if not exists ${dialect.schema}`);
    const changeFiles = await prepareState(session, dialect);
    return {
      changeFiles,
      open: (resource) => sqlCopy(session, dialect, resource),
      dangling: (resources) => danglingIn(session, dialect, resources),
      export: (resource, folder, format) => exportTables(db, resource, folder, format),
      close: () => db.end(),
    };
  } catch (error) {
    await db.end().catch(() => undefined);
    throw error;
  }
}

/** Streams each table into files. */
async function exportTables(db: pg.Client, resource: Resource, folder: string, format: ExportFormat): Promise<void> {
  const { exportRows } = await import('./duckdb.js');
  for (const table of tablesOf(resource)) {
    const text = ({ name, type }: Column): string => (type === 'json' ? quoted(name) : `${quoted(name)}::text`);
    const columns = table.columns.map((column) => `${text(column)} as ${quoted(column.name)}`);
    const query = `select to_json(t)::text as line from (select ${columns.join(', ')} from ${dialect.schema}.${quoted(table.name)}) t`;
    await exportRows(table, folder, format, linesOf(db, query));
  }
}

async function* linesOf(db: pg.Client, query: string): AsyncGenerator<string[]> {
  const cursor = db.query(new Cursor<{ line: string }>(query));
  try {
    for (;;) {
      const rows = await cursor.read(exportRowsPerRead);
      if (rows.length === 0) return;
      yield rows.map(({ line }) => line);
    }
  } finally {
    await cursor.close();
  }
}
