import pg from 'pg';
import type { Column, Table } from './catalog.js';

/** Text forms of the values of a row, by column; null for NULL. */
export type SampleRow = ReadonlyMap<string, string | null>;

const rowsMax = 200;
const sampledMax = 20_000;
const charactersMax = 20_000;

/**
 * Some rows of a table: of a small one evenly chosen, of a large one from pages that are. Values are cut at 20,000 characters.
 * Nothing of them gets into a draft but forms, key ids and names of members.
 */
export async function sampleRows(client: pg.Client, table: Table, columns: readonly Column[]): Promise<SampleRow[]> {
  if (columns.length === 0) return [];
  const percent = Math.min(100, (100 * sampledMax) / Math.max(table.rows, 1));
  const values = columns.map(sampled).join(', ');
  const order = table.primaryKey.map((name) => `${pg.escapeIdentifier(name)}::text`).join(` || ' ' || `);
  const { rows } = await client.query<(string | null)[]>({
    text: `select ${values} from ${table.quoted} tablesample system (${percent}) repeatable (0)
      ${order === '' ? '' : `order by md5(${order})`} limit ${rowsMax}`,
    rowMode: 'array',
  });
  return rows.map((row) => new Map(columns.map(({ name }, i) => [name, row[i] ?? null])));
}

/** Bytes are cut before PostgreSQL prints them: a file of 20 MB would become 40 MB of text, and one of 600 MB an error. */
function sampled({ type, quoted }: Column): string {
  if (type === 'bytea') return `substr(${quoted}, 1, ${charactersMax / 2 - 1})::text`;
  return `left(${quoted}::text, ${charactersMax})`;
}

/** The values of a column that are not NULL. */
export function valuesOf(rows: readonly SampleRow[], column: string): string[] {
  return rows.flatMap((row) => row.get(column) ?? []);
}
