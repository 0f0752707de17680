import type { Column, Digits, Kind } from '../document.js';
import type { Row } from '../record.js';
import { isFree, longTextBytes } from '../record.js';

export type Value = string | number | boolean | null;

/** Parameters are $1, $2, … */
export interface Session {
  query<T extends object>(sql: string, values?: readonly Value[]): Promise<T[]>;
  /** Adds rows to a temporary table of texts. */
  load(table: string, rows: readonly Row[]): Promise<void>;
}

/** The SQL of a database for the statements of a copy. */
export interface Dialect {
  readonly schema: string;
  readonly at: (table: string) => string;
  /** Name of a temporary table; it has a space, which no resource name has. */
  readonly staged: (table: string) => string;
  /** End of a statement that makes a temporary table: behind a pooler others get the session after the transaction. */
  readonly temporary: string;
  /** Type for values of a kind with at least these digits; `document` has the digits that the document allows. */
  readonly chooseType: (kind: Kind, need: Digits, document: Digits | null) => string;
  readonly print: (kind: Kind, column: string) => string;
  /** Converts a column to another type; null if only another pass can tell. */
  readonly convert: (column: string, type: string) => string;
  readonly listViewsOn: (session: Session, table: string, column: string) => Promise<string[]>;
  /** Gives 32 hexadecimal digits. */
  readonly md5: (text: string) => string;
  /** Gives 64 hexadecimal digits. */
  readonly sha256: (text: string) => string;
  readonly bytesOf: (text: string) => string;
  /** Puts `|` between texts that are not null in one step: a chain of `||` would copy the first ones again and again. */
  readonly join: (texts: readonly string[]) => string;
  /** Combines the first 16 digits of a hash over a group, as 16 hexadecimal digits. */
  readonly xorOf: (hash: string) => string;
  /** Shares in which a verification goes through that many records, so that each fits into memory. */
  readonly splitIntoShares: (records: number) => readonly ((column: string) => string)[];
  /** Query of the texts in the JSON array $1. */
  readonly texts: string;
  /** Without indexes DuckDB finds rows by the order of its blocks, while an index would be in memory whole. */
  readonly hasIndexes: boolean;
}

export const quoteName = (name: string): string => `"${name.replaceAll('"', '""')}"`;

export const quoteLiteral = (text: string): string => `'${text.replaceAll("'", "''")}'`;

export async function runInTransaction<T>(session: Session, work: () => Promise<T>): Promise<T> {
  await session.query('begin');
  try {
    const result = await work();
    await session.query('commit');
    return result;
  } catch (error) {
    await session.query('rollback').catch(() => undefined); // a lost connection has rolled back
    throw error;
  }
}

/** Writes the text that record.ts makes of the gateway's record: both have one hash while nothing was lost. */
export function composeRowText(dialect: Dialect, columns: readonly (readonly [Column, Kind])[]): string {
  const pieces = columns.map(([{ name }, kind]) => {
    const column = quoteName(name);
    const text = dialect.print(kind, column);
    if (!isFree(kind)) return `coalesce(${text}, '-')`;
    const bytes = dialect.bytesOf(text);
    return `coalesce(case when ${bytes} > ${longTextBytes} then '#' || ${dialect.md5(text)} else cast(${bytes} as varchar) || ':' || ${text} end, '-')`;
  });
  return dialect.join(pieces);
}
