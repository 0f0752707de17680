import { type DuckDBResult, JsonDuckDBValueConverter, StatementType } from '@duckdb/node-api';
import { OutOfMemory } from '../destination.js';
import { stateTable, statusTable } from '../document.js';
import { quoted } from '../sql/dialect.js';
import { type OpenDuckdb, openDuckdb } from '../sql/duckdb.js';

/** Bounds of one question; ask.ts bounds its time. */
const bounds = { rows: 1000, characters: 200_000, memoryMb: 512 };

/** A statement that the copy does not run. The message is for the assistant. */
class NotAnswered extends Error {}

/** The rows of a query, in the order of its columns. */
interface Answer {
  readonly columns: readonly string[];
  readonly rows: readonly (readonly unknown[])[];
  /** Why rows are missing; null: all are there. */
  readonly cut: string | null;
}

/** A table of the copy. */
interface CopiedTable {
  readonly name: string;
  readonly description: string | null;
  readonly rows: number;
}

interface CopiedColumn {
  readonly name: string;
  readonly type: string;
  readonly required: boolean;
  readonly description: string | null;
}

/**
 * Runs `work` over the file, and closes it, so that `pull` can go on between two questions. Nothing can be written, and no statement
 * reaches a file, the network or an extension: all are locked before the first statement.
 */
async function open<T>(file: string, work: (copy: OpenDuckdb) => Promise<T>): Promise<T> {
  const copy = await openDuckdb(file, { memoryMb: bounds.memoryMb, isReadOnly: true }).catch((error: Error) => {
    if (/conflicting lock/i.test(error.message))
      throw new NotAnswered('The copy is being updated. Ask again in a moment.');
    throw new NotAnswered(`The copy cannot be opened: ${error.message.split('\n')[0]}`);
  });
  try {
    // Without disabled_filesystems the copy and its log could still be written: pull would replay that log.
    await copy.connection.run(
      `set temp_directory = ''; set enable_external_access = false; set disabled_filesystems = 'LocalFileSystem'; set lock_configuration = true`,
    );
    return await work(copy);
  } catch (error) {
    if (error instanceof OutOfMemory || /out of memory/i.test((error as Error).message))
      throw new NotAnswered(`The statement needs more than ${bounds.memoryMb} MB: aggregate, or add a condition.`);
    throw error instanceof NotAnswered ? error : new NotAnswered((error as Error).message);
  } finally {
    copy.close();
  }
}

/** The tables with their descriptions, and the moment of the oldest of them: the copy has everything committed before it. */
function tablesOf(file: string): Promise<{ data_as_of: string | null; tables: CopiedTable[] }> {
  return open(file, async ({ session }) => {
    const found = await session.rows<{ name: string; description: string | null }>(
      `select table_name as name, comment as description from duckdb_tables()
       where schema_name = 'main' and not internal and table_name not in ($1, $2) order by 1`,
      [stateTable, statusTable],
    );
    const tables: CopiedTable[] = [];
    for (const { name, description } of found) {
      const [row] = await session.rows<{ rows: string }>(`select count(*) as rows from main.${quoted(name)}`);
      tables.push({ name, description, rows: Number(row?.rows) });
    }
    const [status] = await session.rows<{ moment: string | null }>(
      `select strftime(min(data_as_of), '%Y-%m-%dT%H:%M:%SZ') as moment from main.${statusTable}`,
    );
    return { data_as_of: status?.moment ?? null, tables };
  });
}

/** The columns of a table. Rejects with NotAnswered where there is none of that name. */
function columnsOf(file: string, table: string): Promise<{ table: string; columns: CopiedColumn[] }> {
  return open(file, async ({ session }) => {
    const columns = await session.rows<CopiedColumn>(
      `select column_name as name, data_type as type, not is_nullable as required, comment as description
       from duckdb_columns() where schema_name = 'main' and table_name = $1 order by column_index`,
      [table],
    );
    if (columns.length === 0)
      throw new NotAnswered(`There is no table "${table}". list_tables names those that exist.`);
    return { table, columns };
  });
}

/** DuckDB makes a SELECT of some PRAGMA statements, so the first word is looked at as well. */
const questions = /^\s*(?:\(|(?:select|with|from|values|describe|show|summarize)\b)/i;
const comments = /^(?:\s|--[^\n]*\n|\/\*[\s\S]*?\*\/)+/;

/** Runs one SELECT. Rejects with NotAnswered, whose message says why. */
function query(file: string, sql: string): Promise<Answer> {
  return open(file, async ({ connection }) => {
    const refused = new NotAnswered('Only SELECT is answered: the copy is read only.');
    if (!questions.test(sql.replace(comments, ''))) throw refused;
    const statements = await connection.extractStatements(sql);
    if (statements.count !== 1) throw new NotAnswered('Give exactly one statement.');
    const statement = await statements.prepare(0);
    if (statement.statementType !== StatementType.SELECT) throw refused;
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

const answers = { list_tables: tablesOf, describe_table: columnsOf, query };

/** The name of a tool. */
export type Tool = keyof typeof answers;

/** The answer of the process to its question. */
export type Reply = { readonly answer: unknown } | { readonly refusal: string };

// A process for one question: ask.ts starts it, and ends it.
process.once('disconnect', () => process.kill(process.pid, 'SIGKILL'));
process.once('message', async ([tool, file, argument]: [Tool, string, string]) => {
  const reply = await answers[tool](file, argument).then(
    (answer): Reply => ({ answer }),
    (error: Error): Reply => ({ refusal: error.message }),
  );
  process.send?.(reply);
});
