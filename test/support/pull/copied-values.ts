import { mkdtempSync, readFileSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { DuckDBInstance } from '@duckdb/node-api';
import pg from 'pg';

export type TextRow = readonly (string | null)[];

export const formats = ['parquet', 'csv', 'excel-csv', 'ndjson'] as const;

/** Reads a table as texts, ordered by the first two columns; `place` is a table or a function that reads a file. */
export async function duckdbTexts(file: string, place: string): Promise<TextRow[]> {
  const instance = await DuckDBInstance.create(file);
  const connection = await instance.connect();
  try {
    await connection.run(`set timezone = 'UTC'`);
    const { columnCount, columnNames } = await columnsOf(connection, place);
    const texts = Array.from({ length: columnCount }, (_, i) => `"${columnNames[i]?.replaceAll('"', '""')}"::VARCHAR`);
    const read = await connection.runAndReadAll(`select ${texts.join(', ')} from ${place}`);
    return ordered(read.getRowsJS() as TextRow[]);
  } finally {
    connection.closeSync();
    instance.closeSync();
  }
}

async function columnsOf(
  connection: Awaited<ReturnType<DuckDBInstance['connect']>>,
  place: string,
): Promise<{ columnCount: number; columnNames: string[] }> {
  const reader = await connection.runAndReadAll(`select * from ${place} limit 0`);
  return { columnCount: reader.columnCount, columnNames: reader.columnNames() };
}

export async function postgresTexts(url: string, table: string): Promise<TextRow[]> {
  const client = new pg.Client(url);
  await client.connect();
  try {
    await client.query(`set timezone = 'UTC'`);
    const { fields } = await client.query(`select * from workspace_data."${table}" limit 0`);
    const texts = fields.map(({ name }) => `"${name}"::text`);
    const { rows } = await client.query({
      text: `select ${texts.join(', ')} from workspace_data."${table}"`,
      rowMode: 'array',
    });
    return ordered(rows as unknown as TextRow[]);
  } finally {
    await client.end();
  }
}

export async function exportedTexts(
  folder: string,
  table: string,
  format: (typeof formats)[number],
): Promise<TextRow[]> {
  if (format === 'parquet') {
    const scratch = mkdtempSync(join(tmpdir(), 'pull-read-'));
    try {
      return await duckdbTexts(join(scratch, 'read.duckdb'), `read_parquet('${folder}/${table}.parquet')`);
    } finally {
      rmSync(scratch, { recursive: true });
    }
  }
  const text = readFileSync(join(folder, `${table}.${format === 'excel-csv' ? 'csv' : format}`), 'utf8');
  if (format === 'ndjson') return ordered(text.split('\n').slice(0, -1).map(valuesOfLine));
  const rows = cellsOf(text.replace(/^\ufeff/, ''), format === 'csv' ? ',' : ';').slice(1);
  return ordered(format === 'csv' ? rows : rows.map((row) => row.map(fromExcel)));
}

const fromExcel = (cell: string | null): string | null =>
  /^="(.*)"$/s.exec(cell ?? '')?.[1]?.replaceAll('""', '"') ?? cell?.replace(/^(-?\d+),(\d+)$/, '$1.$2') ?? null;

function ordered(rows: TextRow[]): TextRow[] {
  const keyOf = (row: TextRow): string => JSON.stringify(row.slice(0, 2));
  return rows.sort((a, b) => (keyOf(a) < keyOf(b) ? -1 : 1));
}

function cellsOf(text: string, separator: string): (string | null)[][] {
  const rows: (string | null)[][] = [];
  let row: (string | null)[] = [];
  const form = new RegExp(
    `(?:"((?:[^"]|"")*)"|([^"${separator}\\r\\n][^${separator}\\r\\n]*)|)(${separator}|\\r?\\n)`,
    'y',
  );
  for (let match = form.exec(text); match !== null; match = form.exec(text)) {
    row.push(match[1]?.replaceAll('""', '"') ?? match[2] ?? null);
    if (match[3] === separator) continue;
    rows.push(row);
    row = [];
  }
  return rows;
}

function valuesOfLine(line: string): (string | null)[] {
  const values: (string | null)[] = [];
  const text = /"(?:[^"\\]|\\.)*"/y;
  const textAt = (at: number): string => {
    text.lastIndex = at;
    return text.exec(line)?.[0] ?? '';
  };
  for (let at = 1; line[at] === '"' || line[at] === ','; ) {
    if (line[at] === ',') at++;
    at += textAt(at).length + 1;
    const start = at;
    for (let depth = 0; depth > 0 || !/[,}]/.test(line[at] ?? '}'); ) {
      if (line[at] === '"') at += textAt(at).length - 1;
      if (/[{[]/.test(line[at] ?? '')) depth++;
      if (/[}\]]/.test(line[at] ?? '')) depth--;
      at++;
    }
    const value = line.slice(start, at);
    values.push(value === 'null' ? null : value.startsWith('"') ? (JSON.parse(value) as string) : value);
  }
  return values;
}
