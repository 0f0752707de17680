import { mkdtempSync, readdirSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { Client } from '@modelcontextprotocol/client';
import { StdioClientTransport } from '@modelcontextprotocol/client/stdio';
import { projectRoot } from '../../src/base/paths.js';
import { records } from '../support/lists.js';
import { duckdbCopy, runPull } from '../support/pull/copy.js';
import { gatewayTest, type TestContext } from '../support/workspace.js';

const test = gatewayTest();
const folder = mkdtempSync(join(tmpdir(), 'mcp-'));
const file = join(folder, 'copy.duckdb');
const assistant = new Client({ name: 'assistant', version: '1.0.0' });

test.before(async (t) => {
  const { gateway, token } = t.context as TestContext;
  writeFileSync(join(folder, 'token'), token, { mode: 0o600 });
  const base = new URL(gateway.url).origin;
  const pulled = await runPull(['--base', base, '--token-file', join(folder, 'token'), '--to', file]);
  if (pulled.code !== 0) throw new Error(pulled.stderr);
  const program = join(projectRoot, 'dist/pull/src/mcp/main.js');
  await assistant.connect(new StdioClientTransport({ command: process.execPath, args: [program, '--copy', file] }));
});
test.after.always(async () => {
  await assistant.close();
  rmSync(folder, { recursive: true });
});

async function call(name: string, args: Record<string, unknown> = {}) {
  const { content, isError } = await assistant.callTool({ name, arguments: args });
  const [{ text = '' } = {}] = content as { text?: string }[];
  return { isError: isError === true, text, json: <T>() => JSON.parse(text) as T };
}
const ask = (sql: string) => call('query', { sql });

test.serial('an assistant finds the tables with their rows, and the moment of the copy', async (t) => {
  const { tools } = await assistant.listTools();
  t.deepEqual(tools.map(({ name }) => name).sort(), ['describe_table', 'list_tables', 'query']);
  const found = (await call('list_tables')).json<{ data_as_of: string; tables: { name: string; rows: number }[] }>();
  t.regex(found.data_as_of, /^\d{4}-\d\d-\d\dT\d\d:\d\d:\d\dZ$/);
  const orders = await records(t.context.client, '/werkbonnen?perPage=10000');
  t.is(found.tables.find(({ name }) => name === 'werkbonnen')?.rows, orders.length);
  t.false(found.tables.some(({ name }) => name.startsWith('pull_')));
});

test.serial(
  'an assistant reads the columns of a table with their descriptions, and is told of a name that is wrong',
  async (t) => {
    const { columns } = (await call('describe_table', { table: 'werkbonnen' })).json<{
      columns: { name: string; type: string; description: string | null }[];
    }>();
    t.is(columns.find(({ name }) => name === 'datum')?.type, 'DATE');
    t.true(columns.some(({ description }) => (description ?? '') !== ''));
    const wrong = await call('describe_table', { table: 'orders' });
    t.true(wrong.isError);
    t.regex(wrong.text, /no table "orders"/);
  },
);

test.serial('an assistant counts by SQL, and an answer says when rows are missing', async (t) => {
  const orders = await records(t.context.client, '/werkbonnen?perPage=10000');
  const counted = (await ask('select count(*) as orders from werkbonnen')).json<{
    columns: string[];
    rows: string[][];
  }>();
  t.deepEqual(counted.columns, ['orders']);
  t.is(Number(counted.rows[0]?.[0]), orders.length);
  const many = (await ask('select i from range(5000) as numbers(i)')).json<{ rows: unknown[]; cut: string | null }>();
  t.is(many.rows.length, 1000);
  t.regex(many.cut ?? '', /first 1000 rows/);
  const few = (await ask('select i from range(1000) as numbers(i)')).json<{ rows: unknown[]; cut: string | null }>();
  t.deepEqual([few.rows.length, few.cut], [1000, null]);
  const long = (await ask("select repeat('x', 50000) from range(10)")).json<{ rows: unknown[]; cut: string | null }>();
  t.true(long.rows.length < 10 && long.cut !== null);
});

const secret = join(folder, 'token');
for (const sql of [
  `copy werkbonnen to '${folder}/stolen.csv'`,
  `copy (select 1) to '${folder}/stolen.csv'`,
  `attach '${folder}/other.duckdb' as other`,
  'install httpfs',
  'load httpfs',
  'pragma database_list',
  "pragma memory_limit='10GB'",
  'set enable_external_access = true',
  'reset enable_external_access',
  `select * from read_csv('${secret}', header = false)`,
  `select content from read_text('${secret}')`,
  `select * from '${secret}'`,
  `select * from glob('${folder}/*')`,
  `export database '${folder}/out'`,
  'create table mine as select 1',
  'create temp table mine as select 1',
  'delete from werkbonnen',
  "update werkbonnen set status = 'x'",
  'drop table werkbonnen',
  'select 1; drop table werkbonnen',
  'checkpoint',
  'call pragma_version()',
  // DuckDB allows access to the file itself: the next run of pull would replay a log that stands beside it.
  `explain analyze copy werkbonnen to '${file}.wal'`,
  `explain analyze copy werkbonnen to '${file}' (use_tmp_file false)`,
  `select size from read_blob('${file}')`,
  `from glob('${file}')`,
  `from enable_logging('QueryLog', storage := 'file', storage_path := '${folder}/log')`,
  `from enable_profiling(format := 'json', save_location := '${folder}/profile.json')`,
  'explain analyze create temp table mine as select 1',
  `from query('from read_text(''${secret}'')')`,
  `from json_execute_serialized_sql(json_serialize_sql('from read_text(''${secret}'')'))`,
  `from query_table('${secret}')`,
  'from duckdb_secrets()',
  "select getenv('PATH')",
  'prepare p as select 1',
  '',
  '-- nothing',
])
  test.serial(`refused: ${sql.replaceAll(folder, 'FOLDER')}`, async (t) => {
    const answer = await ask(sql);
    t.true(answer.isError, answer.text);
    t.false(answer.text.includes(readFileSync(secret, 'utf8')));
    t.deepEqual(readdirSync(folder).sort(), ['copy.duckdb', 'token']);
  });

test.serial('a statement that does not end is stopped, and the next is answered', async (t) => {
  const endless = await ask('select count(*) from range(1000000000000) as numbers(i) where i % 7 = 8');
  t.true(endless.isError);
  t.regex(endless.text, /longer than 10 seconds/);
  // A function of DuckDB that heeds no interrupt.
  const deaf = await ask("select levenshtein(repeat('a', 200000), repeat('b', 200000))");
  t.regex(deaf.text, /longer than 10 seconds/);
  t.false((await ask('select 1')).isError);
});

test.serial('the copy is as before, and free for pull between two questions', async (t) => {
  const { sql } = duckdbCopy(file);
  const [row] = await sql('select count(*)::int as orders from werkbonnen');
  t.is(row?.orders, (await records(t.context.client, '/werkbonnen?perPage=10000')).length);
});
