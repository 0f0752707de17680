import { type FileHandle, open, rename, rm } from 'node:fs/promises';
import { join } from 'node:path';
import type { ExportFormat } from '../destination.js';
import type { Kind } from '../document.js';
import type { Row } from '../record.js';

export interface ExportColumn {
  readonly name: string;
  readonly kind: Kind;
}

/** Writes rows of canonical texts in a format. */
interface TextFormat {
  readonly formatHead: (columns: readonly ExportColumn[]) => string;
  readonly makeLineFormatter: (columns: readonly ExportColumn[]) => (row: Row) => string;
}

export const nameFile = (table: string, format: ExportFormat): string =>
  `${table}.${format === 'excel-csv' ? 'csv' : format}`;

/** Replaces FOLDER/NAME in one step by the file of `write`. */
export async function replaceFile(folder: string, name: string, write: (part: string) => Promise<void>): Promise<void> {
  const file = join(folder, name);
  const part = `${file}.part`;
  await rm(part, { force: true });
  try {
    await write(part);
    const written = await open(part, 'r+');
    await written.sync().finally(() => written.close());
    await rename(part, file);
  } catch (error) {
    await rm(part, { force: true });
    throw error;
  }
}

const batchLength = 1_000_000;

/** Writes rows into a new file. */
export async function exportRows(
  file: string,
  format: Exclude<ExportFormat, 'parquet'>,
  columns: readonly ExportColumn[],
  batches: AsyncIterable<readonly Row[]>,
): Promise<void> {
  const { formatHead, makeLineFormatter } = textFormats[format];
  const formatLine = makeLineFormatter(columns);
  const handle: FileHandle = await open(file, 'w', 0o600);
  try {
    await handle.writeFile(formatHead(columns));
    for await (const rows of batches) {
      let text = '';
      for (const row of rows) {
        text += formatLine(row);
        if (text.length < batchLength) continue;
        await handle.writeFile(text);
        text = '';
      }
      await handle.writeFile(text);
    }
  } finally {
    await handle.close();
  }
}

const textFormats: Readonly<Record<Exclude<ExportFormat, 'parquet'>, TextFormat>> = {
  csv: makeSeparated({ first: '', separator: ',', lineEnd: '\n', formatCell: (text) => text }),
  'excel-csv': makeSeparated({ first: '\ufeff', separator: ';', lineEnd: '\r\n', formatCell: formatExcelCell }),
  ndjson: {
    formatHead: () => '',
    makeLineFormatter: (columns) => {
      const names = columns.map(({ name }) => `${JSON.stringify(name)}:`);
      return (row) =>
        `{${row.map((value, i) => names[i] + formatJson(value, columns[i] as ExportColumn)).join(',')}}\n`;
    },
  },
};

/** Writes null as an empty cell, and an empty text as two quotes. */
function makeSeparated(form: {
  readonly first: string;
  readonly separator: string;
  readonly lineEnd: string;
  readonly formatCell: (text: string, kind: Kind) => string;
}): TextFormat {
  const special = new RegExp(`["\\r\\n${form.separator}]`);
  const quoteCell = (value: string | null, kind: Kind): string => {
    if (value === null) return '';
    const text = form.formatCell(value, kind);
    return text === '' || special.test(text) ? `"${text.replaceAll('"', '""')}"` : text;
  };
  const joinCells = (cells: readonly string[]): string => cells.join(form.separator) + form.lineEnd;
  return {
    formatHead: (columns) => form.first + joinCells(columns.map(({ name }) => quoteCell(name, 'json'))),
    makeLineFormatter: (columns) => (row) =>
      joinCells(row.map((value, i) => quoteCell(value, (columns[i] as ExportColumn).kind))),
  };
}

/** Keeps a value on one line: JSON has line ends only between its tokens. */
function formatJson(value: string | null, { kind }: ExportColumn): string {
  if (value === null) return 'null';
  if (kind === 'json') return value.replace(/[\r\n]+/g, ' ');
  return kind === 'integer' || kind === 'number' || kind === 'boolean' ? value : JSON.stringify(value);
}

/** Bounds of Excel: digits of a number, and characters in a text of a formula. */
const excelDigitsMax = 15;
const excelTextMax = 255;
/** Excel's largest number that can be typed is 9.99999999999999E+307; a longer one becomes a text, which keeps all digits. */
const excelWholeMax = 308;
/** Excel would take the text for a number, a date, a truth value, an error or a formula. */
const excelReads = /^\s*(?:[=+\-@.,(#\d\p{Sc}]|\p{L}{3,9}\.?[-/ .]?\d|(?:true|false|waar|onwaar)\s*$)|^[\t\r]/iu;
const excelRuns = /^[=+\-@\t\r]/;

/**
 * Makes Excel show the value: `="007"` is a text, and so is a whole number of 16 to 255 digits. Other texts that Excel would run get an
 * apostrophe.
 */
function formatExcelCell(text: string, kind: Kind): string {
  if (kind === 'date' || kind === 'boolean') return text;
  if (kind === 'timestamp') return text.replace('T', ' ').replace(/(\.\d+)?Z$/, '');
  const isNumber = kind === 'integer' || kind === 'number';
  const digits = text.replace('-', '').length;
  if (isNumber && (text.includes('.') || digits <= excelDigitsMax || digits > excelTextMax))
    return roundNumber(text).replace('.', ',');
  if (!isNumber && !excelReads.test(text)) return text;
  if (text.length <= excelTextMax && !/[\r\n]/.test(text)) return `="${text.replaceAll('"', '""')}"`;
  return excelRuns.test(text) ? `'${text}` : text;
}

/** Writes a number without exponent, with as many digits as Excel keeps: it would take a longer one for a text. */
function roundNumber(number: string): string {
  const [, sign, whole, part = ''] = /^(-?)(\d+)(?:\.(\d+))?$/.exec(number) as unknown as [
    string,
    string,
    string,
    string?,
  ];
  const digits = (whole + part).replace(/^0+/, '');
  const over = digits.length - excelDigitsMax;
  if (over <= 0 || whole.length > excelWholeMax) return number;
  const kept = BigInt(digits.slice(0, excelDigitsMax)) + (Number(digits[excelDigitsMax]) >= 5 ? 1n : 0n);
  const scale = part.length - over;
  if (scale <= 0) return sign + kept + '0'.repeat(-scale);
  const padded = String(kept).padStart(scale + 1, '0');
  return `${sign}${padded.slice(0, -scale)}.${padded.slice(-scale)}`.replace(/\.?0+$/, '');
}
