import type { Column, Digits, Kind } from '../document.js';
import type { Row } from '../record.js';
import { isFree, longTextBytes } from '../record.js';

/** A value of a parameter. */
export type Value = string | number | boolean | null;

/** A connection to a database. Parameters are $1, $2, … */
export interface Session {
  rows<T extends object>(sql: string, values?: readonly Value[]): Promise<T[]>;
  /** Adds rows to a temporary table of texts. */
  load(table: string, rows: readonly Row[]): Promise<void>;
}

/** How a database spells what the statements of a copy need. */
export interface Dialect {
  readonly schema: string;
  /** A table of the copy. */
  readonly at: (table: string) => string;
  /** A temporary table: its name holds a space, which no resource name has. */
  readonly staged: (table: string) => string;
  /** Ends the statement that makes a temporary table: behind a pooler others get the session after the transaction. */
  readonly temporary: string;
  /** The type of a column whose values are of a kind, with so many digits at least; `document`: those that the document allows. */
  readonly typeOf: (kind: Kind, need: Digits, document: Digits | null) => string;
  /** The canonical text of a value. */
  readonly print: (kind: Kind, column: string) => string;
  /** A column in another type, or null where only another pass can tell. */
  readonly converted: (column: string, type: string) => string;
  readonly viewsOn: (session: Session, table: string, column: string) => Promise<string[]>;
  /** MD5 of a text, 32 hexadecimal digits. */
  readonly md5: (text: string) => string;
  /** SHA-256 of a text, 64 hexadecimal digits. */
  readonly sha256: (text: string) => string;
  readonly bytesOf: (text: string) => string;
  /** Texts that are not null with `|` between them, made in one step: a chain of `||` would copy the first ones again and again. */
  readonly joined: (texts: readonly string[]) => string;
  /** The XOR of the first 16 digits of a hash over a group, 16 hexadecimal digits. */
  readonly xorOf: (hash: string) => string;
  /** Conditions on a column of ids, by which a verification of so many records goes through them in shares that fit into memory. */
  readonly shares: (records: number) => readonly ((column: string) => string)[];
  /** A query of the texts in the JSON array $1. */
  readonly texts: string;
  /** Keys and indexes help; without: the database finds rows by the order of its blocks, and would keep all of an index in memory. */
  readonly hasIndexes: boolean;
}

export const quoted = (name: string): string => `"${name.replaceAll('"', '""')}"`;

/** A text as a literal. */
export const literal = (text: string): string => `'${text.replaceAll("'", "''")}'`;

export async function inTransaction<T>(session: Session, work: () => Promise<T>): Promise<T> {
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

/** The text of a row as record.ts makes it of what came: the hash of both is the same while nothing was lost. */
export function rowText(dialect: Dialect, columns: readonly (readonly [Column, Kind])[]): string {
  const pieces = columns.map(([{ name }, kind]) => {
    const column = quoted(name);
    const text = dialect.print(kind, column);
    if (!isFree(kind)) return `coalesce(${text}, '-')`;
    const bytes = dialect.bytesOf(text);
    return `coalesce(case when ${bytes} > ${longTextBytes} then '#' || ${dialect.md5(text)} else cast(${bytes} as varchar) || ':' || ${text} end, '-')`;
  });
  return dialect.joined(pieces);
}
