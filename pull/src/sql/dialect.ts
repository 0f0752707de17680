import type { Column, Digits, Kind } from '../document.js';
import type { Row } from '../record.js';
import { isFree, longTextBytes } from '../record.js';

export type Value = string | number | boolean | null;

/** Parameters are $1, $2, … */
export interface Session {
  rows<T extends object>(sql: string, values?: readonly Value[]): Promise<T[]>;
  /** Adds rows to a temporary table of texts. */
  load(table: string, rows: readonly Row[]): Promise<void>;
}

/** A dialect spells what the statements of a copy need. */
export interface Dialect {
  readonly schema: string;
  readonly at: (table: string) => string;
  /** The name of a temporary table holds a space, which no resource name has. */
  readonly staged: (table: string) => string;
  /** Ends the statement that makes a temporary table: behind a pooler others get the session after the transaction. */
  readonly temporary: string;
  /** The type holds values of a kind with so many digits at least; `document` has those that the document allows. */
  readonly typeOf: (kind: Kind, need: Digits, document: Digits | null) => string;
  readonly print: (kind: Kind, column: string) => string;
  /** Converts a column to another type, or is null if only another pass can tell. */
  readonly converted: (column: string, type: string) => string;
  readonly viewsOn: (session: Session, table: string, column: string) => Promise<string[]>;
  /** Returns 32 hexadecimal digits. */
  readonly md5: (text: string) => string;
  /** Returns 64 hexadecimal digits. */
  readonly sha256: (text: string) => string;
  readonly bytesOf: (text: string) => string;
  /** Puts `|` between texts that are not null in one step: a chain of `||` would copy the first ones again and again. */
  readonly joined: (texts: readonly string[]) => string;
  /** Combines the first 16 digits of a hash over a group, as 16 hexadecimal digits. */
  readonly xorOf: (hash: string) => string;
  /** A verification of so many records goes through them in these shares, which fit into memory. */
  readonly shares: (records: number) => readonly ((column: string) => string)[];
  /** The query reads the texts in the JSON array $1. */
  readonly texts: string;
  /** Without indexes the database finds rows by the order of its blocks, and would keep all of an index in memory. */
  readonly hasIndexes: boolean;
}

export const quoteName = (name: string): string => `"${name.replaceAll('"', '""')}"`;

export const quoteLiteral = (text: string): string => `'${text.replaceAll("'", "''")}'`;

export async function runInTransaction<T>(session: Session, work: () => Promise<T>): Promise<T> {
  await session.rows('begin');
  try {
    const result = await work();
    await session.rows('commit');
    return result;
  } catch (error) {
    await session.rows('rollback').catch(() => undefined); // a lost connection has rolled back
    throw error;
  }
}

/** record.ts makes the same text of what came: the hash of both is the same while nothing was lost. */
export function writeRow(dialect: Dialect, columns: readonly (readonly [Column, Kind])[]): string {
  const pieces = columns.map(([{ name }, kind]) => {
    const column = quoteName(name);
    const text = dialect.print(kind, column);
    if (!isFree(kind)) return `coalesce(${text}, '-')`;
    const bytes = dialect.bytesOf(text);
    return `coalesce(case when ${bytes} > ${longTextBytes} then '#' || ${dialect.md5(text)} else cast(${bytes} as varchar) || ':' || ${text} end, '-')`;
  });
  return dialect.joined(pieces);
}
