import { type DuckDBResult, JsonDuckDBValueConverter, StatementType } from '@duckdb/node-api';
import { OutOfMemory } from '../destination.js';
import { stateTable, statusTable } from '../document.js';
import { type OpenDuckdb, openDuckdb } from '../sql/duckdb.js';

/** Bounds of one question. */
const bounds = { ms: 10_000, rows: 1000, characters: 200_000, memoryMb: 512 };

/** A statement that the copy does not run, or that took too long. The message is for the assistant. */
export class NotAnswered extends Error {
  override readonly name = 'NotAnswered';
}

/** The rows of a query, in the order of its columns. */
export interface Answer {
  readonly columns: readonly string[];
  readonly rows: readonly (readonly unknown[])[];
  /** Why rows are missing; null: all are there. */
  readonly cut: string | null;
}

/** A table of the copy. */
export interface CopiedTable {
  readonly name: string;
  readonly description: string | null;
  readonly rows: number;
}

export interface CopiedColumn {
  readonly name: string;
  readonly type: string;
  readonly required: boolean;
  readonly description: string | null;
}

/**
 * Runs `work` over the file, opened for it alone and closed afterwards, so that `pull` can go on between two questions. Nothing can be
 * written, and no statement reaches another file, the network or an extension: both are locked before the first statement.
 */
function open<T>(file: string, work: (copy: OpenDuckdb) => Promise<T>): Promise<T> {
  const mine = others.then(() => openAlone(file, work));
  others = mine.catch(() => undefined);
  return mine;
}

/** The question before: a process opens a file of DuckDB once at a time. */
let others: Promise<unknown> = Promise.resolve();

async function openAlone<T>(file: string, work: (copy: OpenDuckdb) => Promise<T>): Promise<T> {
  const copy = await openDuckdb(file, { memoryMb: bounds.memoryMb, isReadOnly: true }).catch((error: Error) => {
    if (/conflicting lock/i.test(error.message))
      throw new NotAnswered('The copy is being updated. Ask again in a moment.');
    throw new NotAnswered(`The copy cannot be opened: ${error.message.split('\n')[0]}`);
  });
  const timer = setTimeout(() => copy.connection.interrupt(), bounds.ms);
  try {
    await copy.connection.run(
      `set temp_directory = ''; set enable_external_access = false; set lock_configuration = true`,
    );
    return await work(copy);
  } catch (error) {
    if (/interrupt/i.test((error as Error).message))
      throw new NotAnswered(`The statement took longer than ${bounds.ms / 1000} seconds and was stopped.`);
    if (error instanceof OutOfMemory || /out of memory/i.test((error as Error).message))
      throw new NotAnswered(`The statement needs more than ${bounds.memoryMb} MB: aggregate, or add a condition.`);
    throw error instanceof NotAnswered ? error : new NotAnswered((error as Error).message);
  } finally {
    clearTimeout(timer);
    copy.close();
  }
}

/** The tables with their descriptions, and the moment of the oldest of them: the copy has everything committed before it. */
export function tablesOf(file: string): Promise<{ tables: CopiedTable[]; dataAsOf: string | null }> {
  return open(file, async ({ session }) => {
    const found = await session.rows<{ name: string; description: string | null }>(
      `select table_name as name, comment as description from duckdb_tables()
       where schema_name = 'main' and not internal and table_name not in ($1, $2) order by 1`,
      [stateTable, statusTable],
    );
    const tables: CopiedTable[] = [];
    for (const { name, description } of found) {
      const [row] = await session.rows<{ rows: string }>(`select count(*) as rows from main."${name}"`);
      tables.push({ name, description, rows: Number(row?.rows) });
    }
    const [status] = await session.rows<{ moment: string | null }>(
      `select strftime(min(data_as_of), '%Y-%m-%dT%H:%M:%SZ') as moment from main.${statusTable}`,
    );
    return { tables, dataAsOf: status?.moment ?? null };
  });
}

/** The columns of a table. Rejects with NotAnswered where there is none of that name. */
export function columnsOf(file: string, table: string): Promise<CopiedColumn[]> {
  return open(file, async ({ session }) => {
    const rows = await session.rows<CopiedColumn>(
      `select column_name as name, data_type as type, not is_nullable as required, comment as description
       from duckdb_columns() where schema_name = 'main' and table_name = $1 order by column_index`,
      [table],
    );
    if (rows.length === 0) throw new NotAnswered(`There is no table "${table}". list_tables names those that exist.`);
    return rows;
  });
}

/** DuckDB makes a SELECT of some PRAGMA statements, so the first word is looked at as well. */
const questions = /^\s*(?:\(|(?:select|with|from|values|explain|describe|show|summarize)\b)/i;
const comments = /^(?:\s|--[^\n]*\n|\/\*[\s\S]*?\*\/)+/;

/** Runs one SELECT. Rejects with NotAnswered, whose message says why. */
export function query(file: string, sql: string): Promise<Answer> {
  return open(file, async ({ connection }) => {
    const statements = await connection.extractStatements(sql);
    if (statements.count !== 1) throw new NotAnswered('Give exactly one statement.');
    const statement = await statements.prepare(0);
    const isQuestion = questions.test(sql.replace(comments, ''));
    if (!isQuestion || ![StatementType.SELECT, StatementType.EXPLAIN].includes(statement.statementType))
      throw new NotAnswered('Only SELECT is answered: the copy is read only.');
    const result = await statement.stream();
    return { columns: result.columnNames(), ...(await shownOf(result)) };
  });
}

/** Row by row: a thousand rows of large values would take gigabytes at once. */
async function shownOf(result: DuckDBResult): Promise<Pick<Answer, 'rows' | 'cut'>> {
  const rows: (readonly unknown[])[] = [];
  let characters = 0;
  for await (const chunk of result)
    for (let at = 0; at < chunk.rowCount; at++) {
      if (rows.length === bounds.rows) return { rows, cut: cutOf(rows.length, 'aggregate, or add a condition') };
      const row = chunk.convertRowValues(at, JsonDuckDBValueConverter);
      characters += JSON.stringify(row).length;
      if (characters > bounds.characters)
        return { rows, cut: cutOf(rows.length, `an answer has at most ${bounds.characters} characters`) };
      rows.push(row);
    }
  return { rows, cut: null };
}

const cutOf = (shown: number, reason: string): string => `Only the first ${shown} rows: ${reason}.`;
