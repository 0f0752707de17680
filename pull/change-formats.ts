import { members } from './json-text.js';

/** A form of change files: texts of their lines. Columns are the names of the members of a record, `id` among them. */
export interface ChangeFormat {
  /** First line of each file. */
  header(columns: readonly string[]): string;
  /** A record in its new state; `record` is its JSON text. */
  upsert(seq: number, id: string, record: string, columns: readonly string[]): string;
  delete(seq: number, id: string, columns: readonly string[]): string;
}

export const changeFormats = {
  ndjson: {
    header: () => '',
    upsert: (seq, id, record) =>
      `{"seq":${seq},"change":"upsert","id":${JSON.stringify(id)},"record":${oneLine(record)}}\n`,
    delete: (seq, id) => `{"seq":${seq},"change":"delete","id":${JSON.stringify(id)}}\n`,
  },
  csv: {
    header: (columns) => row(['seq', 'change', 'id', ...others(columns)].map(quoted)),
    upsert: (seq, id, record, columns) => {
      const cells = new Map(members(record));
      return row([seq, quoted('upsert'), quoted(id), ...others(columns).map((name) => cell(cells.get(name)))]);
    },
    delete: (seq, id, columns) => row([seq, quoted('delete'), quoted(id), ...others(columns).map(() => '')]),
  },
} satisfies Readonly<Record<string, ChangeFormat>>;

export type FormatName = keyof typeof changeFormats;

/** Line ends stand between the tokens of JSON only. */
const oneLine = (json: string): string => json.replace(/[\r\n]/g, ' ');

const others = (columns: readonly string[]): string[] => columns.filter((name) => name !== 'id');

/** RFC 4180, section 2: a quote within quotes is doubled. */
const quoted = (text: string): string => `"${text.replaceAll('"', '""')}"`;

const row = (cells: readonly (string | number)[]): string => `${cells.join(',')}\r\n`;

/** Text is quoted, so that an empty text differs from null, which is an empty cell; objects and arrays are JSON. */
function cell(json = 'null'): string {
  if (json === 'null') return '';
  if (json.startsWith('"')) return quoted(JSON.parse(json) as string);
  return /^[[{]/.test(json) ? quoted(json) : json;
}
