import { type DuckDBResult, JsonDuckDBValueConverter, StatementType } from '@duckdb/node-api';
import { OutOfMemory } from '../destination.js';
import { stateTable, statusTable } from '../document.js';
import { quoteName } from '../sql/dialect.js';
import { type OpenDuckdb, openDuckdb } from '../sql/duckdb.js';

/** Bounds of one question and its answer; ask.ts bounds its time. */
const bounds = { rows: 1000, characters: 200_000, refusal: 1000, memoryMb: 512 };

/** The copy does not run the statement; the message is for the assistant. */
class RefusedStatement extends Error {}

interface Age {
  /** The copy has every commit before this moment; null: unknown. */
  readonly data_as_of: string | null;
  readonly age_seconds: number | null;
  /** Zone in which the days of the API begin; moments of the copy are in UTC. */
  readonly time_zone: string | null;
}

interface Answer extends Age {
  readonly columns: readonly string[];
  readonly rows: readonly (readonly unknown[])[];
  /** Reason for missing rows; null: all are there. */
  readonly cut: string | null;
}

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
 * Runs `work` over the file, and closes it, so that `pull` can run between two questions. Before the first statement, writes and all access
 * to files, the network and extensions are locked.
 */
async function runOnCopy<T>(file: string, work: (copy: OpenDuckdb) => Promise<T>): Promise<T> {
  const copy = await openDuckdb(file, { memoryMb: bounds.memoryMb, isReadOnly: true }).catch((error: Error) => {
    if (/conflicting lock/i.test(error.message))
      throw new RefusedStatement('The copy is being updated. Ask again in a moment.');
    throw new RefusedStatement(`The copy cannot be opened: ${error.message.split('\n')[0]}`);
  });
  try {
    // Without disabled_filesystems the copy and its log could still be written: pull would replay that log.
    await copy.connection.run(
      `set temp_directory = ''; set enable_external_access = false; set disabled_filesystems = 'LocalFileSystem'; set lock_configuration = true`,
    );
    process.send?.('begun' satisfies Message);
    return await work(copy);
  } catch (error) {
    if (error instanceof OutOfMemory || /out of memory/i.test((error as Error).message))
      throw new RefusedStatement(`The statement needs more than ${bounds.memoryMb} MB: aggregate, or add a condition.`);
    throw error instanceof RefusedStatement ? error : new RefusedStatement((error as Error).message);
  } finally {
    copy.close();
  }
}

async function getAge({ session }: OpenDuckdb): Promise<Age> {
  const [age] = await session.query<Age>(
    `select strftime(min(data_as_of), '%Y-%m-%dT%H:%M:%SZ') as data_as_of, any_value(time_zone) as time_zone,
       cast(greatest(0, floor(extract(epoch from current_timestamp - min(data_as_of)))) as integer) as age_seconds
     from main.${statusTable} having count(*) = count(data_as_of)`,
  );
  return age ?? { data_as_of: null, age_seconds: null, time_zone: null };
}

function listTables(file: string): Promise<Age & { tables: CopiedTable[] }> {
  return runOnCopy(file, async (copy) => {
    const { session } = copy;
    const listed = await session.query<{ name: string; description: string | null }>(
      `select table_name as name, comment as description from duckdb_tables()
       where schema_name = 'main' and not internal and table_name not in ($1, $2) order by 1`,
      [stateTable, statusTable],
    );
    const tables: CopiedTable[] = [];
    for (const { name, description } of listed) {
      const [row] = await session.query<{ rows: string }>(`select count(*) as rows from main.${quoteName(name)}`);
      tables.push({ name, description, rows: Number(row?.rows) });
    }
    return { ...(await getAge(copy)), tables };
  });
}

/** Rejects with NotAnswered if there is no table of that name. */
function listColumns(file: string, table: string): Promise<Age & { table: string; columns: CopiedColumn[] }> {
  return runOnCopy(file, async (copy) => {
    const columns = await copy.session.query<CopiedColumn>(
      `select column_name as name, data_type as type, not is_nullable as required, comment as description
       from duckdb_columns() where schema_name = 'main' and table_name = $1 order by column_index`,
      [table],
    );
    if (columns.length === 0)
      throw new RefusedStatement(`There is no table "${table}". list_tables names those that exist.`);
    return { ...(await getAge(copy)), table, columns };
  });
}

/** DuckDB makes a SELECT of some PRAGMA statements, so the first word is looked at as well. */
const questions = /^\s*(?:\(|(?:select|with|from|values|describe|show|summarize)\b)/i;
const comments = /^(?:\s|--[^\n]*\n|\/\*[\s\S]*?\*\/)+/;

/** Runs one SELECT. Rejects with NotAnswered, whose message says why. */
function runQuery(file: string, sql: string): Promise<Answer> {
  return runOnCopy(file, async (copy) => {
    const { connection } = copy;
    const refused = new RefusedStatement('Only SELECT is answered: the copy is read only.');
    if (!questions.test(sql.replace(comments, ''))) throw refused;
    const statements = await connection.extractStatements(sql);
    if (statements.count !== 1) throw new RefusedStatement('Give exactly one statement.');
    const statement = await statements.prepare(0);
    if (statement.statementType !== StatementType.SELECT) throw refused;
    const age = await getAge(copy);
    const result = await statement.stream();
    const columns = result.columnNames();
    const length = JSON.stringify(columns).length;
    if (length > bounds.characters)
      throw new RefusedStatement('The names of the columns are too long: give them shorter ones.');
    return { ...age, columns, ...(await readRows(result, length)) };
  });
}

/** Reads row by row: a thousand rows of large values would take gigabytes at once. */
async function readRows(result: DuckDBResult, lengthBefore: number): Promise<Pick<Answer, 'rows' | 'cut'>> {
  const rows: (readonly unknown[])[] = [];
  let characters = lengthBefore;
  for await (const chunk of result)
    for (let at = 0; at < chunk.rowCount; at++) {
      if (rows.length === bounds.rows) return { rows, cut: describeCut(rows.length, 'aggregate, or add a condition') };
      const row = chunk.convertRowValues(at, JsonDuckDBValueConverter);
      characters += JSON.stringify(row).length;
      if (characters > bounds.characters)
        return { rows, cut: describeCut(rows.length, `an answer has at most ${bounds.characters} characters`) };
      rows.push(row);
    }
  return { rows, cut: null };
}

const describeCut = (shown: number, reason: string): string => `Only the first ${shown} rows: ${reason}.`;

const answers = { list_tables: listTables, describe_table: listColumns, query: runQuery };

export type Tool = keyof typeof answers;

/** The process first reports that the copy is open, and then the answer or the reason for none. */
export type Message = 'begun' | { readonly answer: string; readonly rows: number } | { readonly refusal: string };

function getMessage(answer: object): Message {
  const text = JSON.stringify(answer);
  if (text.length > 2 * bounds.characters) return { refusal: `An answer has at most ${bounds.characters} characters.` };
  const { rows, tables, columns } = answer as Readonly<Record<string, readonly unknown[] | undefined>>;
  return { answer: text, rows: (rows ?? tables ?? columns ?? []).length };
}

// The process of one question: ask.ts starts it, and ends it.
process.once('disconnect', () => process.kill(process.pid, 'SIGKILL'));
process.once('message', async ([tool, file, argument]: [Tool, string, string]) => {
  const message = await answers[tool](file, argument).then(
    getMessage,
    (error: Error): Message => ({
      refusal: error.message.slice(0, bounds.refusal),
    }),
  );
  process.send?.(message);
});
