import pg from 'pg';
import { listed } from '../../base/listed.js';
import { projectText } from '../../base/paths.js';
import { snakeCase } from '../words.js';
import { untaken } from './names.js';
import { AdoptRefused, type Column, type Table } from './schema.js';
import { sampled } from './sql.js';

/** Throws AdoptRefused when there are none. */
export async function readCatalog(client: pg.Client, schema: string): Promise<Table[]> {
  const { rows: tables } = await client.query<Table>(projectText('sql/adopt/tables.sql'), [schema]);
  if (tables.length === 0) {
    const { rows } = await client.query<{ name: string }>(
      `select distinct schemaname as name from pg_tables where schemaname not in ('pg_catalog', 'information_schema', 'gateway') order by 1`,
    );
    throw new AdoptRefused(
      `There is no table in a schema "${schema}". Schemas with tables: ${listed(rows.map(({ name }) => name)) || 'none'}.`,
    );
  }
  refuseUnprintable(schema, tables);
  return tables.map((table) => ({ ...table, columns: withViewNames(table) }));
}

/** In a name they could add to a draft what its reader does not see. */
const unprintable = /[\p{Cc}\p{Zl}\p{Zp}\p{Bidi_Control}]/u;

function refuseUnprintable(schema: string, tables: readonly Table[]): void {
  const ofColumns = tables.flatMap(({ columns }) =>
    columns.flatMap(({ name, type, sequence }) => [name, type, sequence ?? '']),
  );
  const refused = [schema, ...tables.map(({ name }) => name), ...ofColumns].filter((name) => unprintable.test(name));
  if (refused.length === 0) return;
  const names = [...new Set(refused.map((name) => JSON.stringify(name)))];
  throw new AdoptRefused(
    `Nothing is drafted from names with control characters, line ends or marks of direction: ${listed(names)}. Rename them.`,
  );
}

const gatewayColumns = ['id', 'workspace_id', 'row_xid', 'sync_version', 'sync_source'];

/** A name that fits as it is goes before those that have to be put in small letters. */
function withViewNames({ name: table, columns }: Table): Column[] {
  const fits = (name: string): boolean => /^[a-z_][a-z0-9_]{0,62}$/.test(name);
  const taken = new Set<string>();
  const names = new Map<string, string>();
  for (const { name } of columns.toSorted((a, b) => Number(fits(b.name)) - Number(fits(a.name)))) {
    const snake = fits(name) ? name : snakeCase(name);
    names.set(name, untaken(gatewayColumns.includes(snake) ? `own_${snake}` : snake, taken));
  }
  return columns.map((column) => ({ ...column, table, inView: names.get(column.name) as string, values: [] }));
}

const rowsMax = 200;
const sampledMax = 20_000;
const charactersMax = 20_000;

/** Of a small table evenly chosen, of a large one from some pages. Cut at 20,000 characters. */
export async function sample(client: pg.Client, table: Table): Promise<void> {
  const { columns, primaryKey } = table;
  if (columns.length === 0) return;
  const order = primaryKey.map((name) => `${pg.escapeIdentifier(name)}::text`).join(` || ' ' || `);
  const { rows } = await client.query<(string | null)[]>({
    text: `select ${columns.map(cut).join(', ')} from ${sampled(table, sampledMax)}
      ${order === '' ? '' : `order by md5(${order})`} limit ${rowsMax}`,
    rowMode: 'array',
  });
  for (const [i, { values }] of columns.entries()) values.push(...rows.flatMap((row) => row[i] ?? []));
}

/** Cut before PostgreSQL prints them: a file of 600 MB would be an error. */
function cut({ type, quoted }: Column): string {
  if (type === 'bytea') return `substr(${quoted}, 1, ${charactersMax / 2 - 1})::text`;
  return `left(${quoted}::text, ${charactersMax})`;
}
