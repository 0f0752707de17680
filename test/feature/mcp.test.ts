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
const log = join(mkdtempSync(join(tmpdir(), 'mcp-log-')), 'questions.ndjson');
const assistant = new Client({ name: 'assistant', version: '1.0.0' });

test.before(async (t) => {
  const { gateway, token } = t.context as TestContext;
  writeFileSync(join(folder, 'token'), token, { mode: 0o600 });
  const base = new URL(gateway.url).origin;
  const pulled = await runPull(['--base', base, '--token-file', join(folder, 'token'), '--to', file]);
  if (pulled.code !== 0) throw new Error(pulled.stderr);
  await duckdbCopy(file).sql('create table "a""b" as select 1 as i');
  const program = join(projectRoot, 'dist/pull/src/mcp/main.js');
  const args = [program, '--copy', file, '--log', log];
  await assistant.connect(new StdioClientTransport({ command: process.execPath, args }));
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
  t.is(found.tables.find(({ name }) => name === 'a"b')?.rows, 1);
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

test.serial('all that leaves has a bound: errors, names of columns, and rows; texts leave as they are', async (t) => {
  const failed = await ask("select error(repeat('x', 1000000))");
  t.true(failed.isError && failed.text.length <= 1000);
  const named = await ask(`select 1 as "${'x'.repeat(300_000)}"`);
  t.true(named.isError && named.text.length <= 1000, named.text.slice(0, 100));
  const marked = (await ask("select chr(65279) || 'a' as a")).json<{ rows: string[][] }>();
  t.is(marked.rows[0]?.[0], '\ufeffa');
});

interface Order {
  readonly id: string;
  readonly installationId: string;
  readonly datum: string;
  readonly status: string;
  readonly ondertekendOp: string | null;
  readonly uren: readonly { readonly medewerker: string; readonly datum: string; readonly uren: number }[];
}
interface Installation {
  readonly id: string;
  readonly customerId: string;
  readonly bouwjaar: number | null;
  readonly koudemiddel: string | null;
  readonly vullingKg: number | null;
}
interface Customer {
  readonly id: string;
  readonly adres: { readonly plaats: string | null };
}
interface Entry {
  readonly entity: string;
  readonly entityId: string;
  readonly tijdstip: string;
  readonly wijzigingen: readonly { readonly veld: string }[];
}
interface Api {
  readonly orders: readonly Order[];
  readonly installations: readonly Installation[];
  readonly customers: readonly Customer[];
  readonly entries: readonly Entry[];
}

const counted = (keys: readonly string[], amounts: readonly number[] = keys.map(() => 1)): Record<string, number> => {
  const sums: Record<string, number> = {};
  for (const [i, key] of keys.entries()) sums[key] = (sums[key] ?? 0) + Math.round((amounts[i] as number) * 1000);
  return Object.fromEntries(Object.entries(sums).map(([key, sum]) => [key, sum / 1000]));
};
const numbered = (ids: readonly string[]): Record<string, number> =>
  Object.fromEntries([...new Set(ids)].map((id) => [id, 1]));
const localDay = new Intl.DateTimeFormat('sv-SE', { timeZone: 'Europe/Amsterdam' });

/** Questions, the SQL that follows from what list_tables and describe_table say, and the answer from the API: a number for each name. */
const questions: Readonly<Record<string, readonly [sql: string, right: (api: Api) => Record<string, number>]>> = {
  'work orders that are open': [
    "select 'open', count(*) from werkbonnen where status in ('gepland', 'in_uitvoering')",
    ({ orders }) => ({ open: orders.filter(({ status }) => /^(gepland|in_uitvoering)$/.test(status)).length }),
  ],
  'work orders by state': [
    'select status, count(*) from werkbonnen group by 1',
    ({ orders }) => counted(orders.map(({ status }) => status)),
  ],
  'hours of each technician in March': [
    'select medewerker, sum(uren) from werkbonnen_uren where month(datum) = 3 group by 1',
    ({ orders }) => {
      const hours = orders.flatMap(({ uren }) => uren).filter(({ datum }) => datum.slice(5, 7) === '03');
      return counted(
        hours.map(({ medewerker }) => medewerker),
        hours.map(({ uren }) => uren),
      );
    },
  ],
  'entries of the log by local month': [
    "select left(cast(tijdstip at time zone 'Europe/Amsterdam' as varchar), 7), count(*) from logboeken group by 1",
    ({ entries }) => counted(entries.map(({ tijdstip }) => localDay.format(new Date(tijdstip)).slice(0, 7))),
  ],
  'customers by town that have an installation older than ten years': [
    `select k.adres_plaats, count(distinct k.id) from klanten k join installaties i on i.customer_id = k.id
     where i.bouwjaar < 2016 and k.adres_plaats is not null group by 1`,
    ({ customers, installations }) => {
      const old = new Set(
        installations.filter((i) => i.bouwjaar !== null && i.bouwjaar < 2016).map((i) => i.customerId),
      );
      return counted(customers.filter(({ id }) => old.has(id)).flatMap(({ adres }) => adres.plaats ?? []));
    },
  ],
  'installations whose refrigerant changed': [
    `select distinct l.entity_id, 1 from logboeken l join logboeken_wijzigingen w on w.logboekregel_id = l.id
     where l.entity = 'installatie' and w.veld = 'koudemiddel'`,
    ({ entries }) =>
      numbered(
        entries
          .filter(
            (each) => each.entity === 'installatie' && each.wijzigingen.some(({ veld }) => veld === 'koudemiddel'),
          )
          .map(({ entityId }) => entityId),
      ),
  ],
  'installations without a work order': [
    'select id, 1 from installaties i where not exists (select 1 from werkbonnen w where w.installation_id = i.id)',
    ({ installations, orders }) => {
      const worked = new Set(orders.map(({ installationId }) => installationId));
      return numbered(installations.map(({ id }) => id).filter((id) => !worked.has(id)));
    },
  ],
  'kilograms of each refrigerant': [
    'select koudemiddel, sum(vulling_kg) from installaties where koudemiddel is not null and vulling_kg is not null group by 1',
    ({ installations }) => {
      const filled = installations.filter(({ koudemiddel, vullingKg }) => koudemiddel !== null && vullingKg !== null);
      return counted(
        filled.map(({ koudemiddel }) => String(koudemiddel)),
        filled.map(({ vullingKg }) => Number(vullingKg)),
      );
    },
  ],
  'work orders done without a signature, by year': [
    "select cast(year(datum) as varchar), count(*) from werkbonnen where status = 'afgerond' and ondertekend_op is null group by 1",
    ({ orders }) =>
      counted(
        orders
          .filter((each) => each.status === 'afgerond' && each.ondertekendOp === null)
          .map(({ datum }) => datum.slice(0, 4)),
      ),
  ],
  'hours by customer': [
    `select i.customer_id, sum(u.uren) from werkbonnen_uren u join werkbonnen w on w.id = u.werkbon_id
     join installaties i on i.id = w.installation_id group by 1`,
    ({ orders, installations }) => {
      const owners = new Map(installations.map(({ id, customerId }) => [id, customerId]));
      const hours = orders.flatMap(({ installationId, uren }) =>
        uren.map((hour) => [owners.get(installationId), hour.uren] as const),
      );
      return counted(
        hours.map(([customer]) => String(customer)),
        hours.map(([, amount]) => amount),
      );
    },
  ],
};

test.serial('an assistant that knows only what the tools say answers ten questions as the API does', async (t) => {
  const { client } = t.context;
  const [orders, installations, customers, entries] = await Promise.all([
    records<Order>(client, '/werkbonnen?perPage=10000'),
    records<Installation>(client, '/installaties?perPage=10000'),
    records<Customer>(client, '/klanten?perPage=10000'),
    records<Entry & { id: string }>(client, '/logboeken?perPage=10000'),
  ]);
  const listed = await call('list_tables');
  const { tables } = listed.json<{ tables: { name: string }[] }>();
  let said = listed.text;
  for (const { name } of tables) said += (await call('describe_table', { table: name })).text;
  for (const [question, [sql, right]] of Object.entries(questions)) {
    for (const [, value] of sql.matchAll(/'([^']+)'/g))
      if (value !== 'open') t.true(said.includes(value as string), `${question}: no tool says ${value}`);
    const answer = (await ask(sql)).json<{ rows: [string, string][]; time_zone: string; age_seconds: number }>();
    const expected = right({ orders, installations, customers, entries });
    t.deepEqual(Object.fromEntries(answer.rows.map(([name, n]) => [name, Number(n)])), expected, question);
    t.true(answer.time_zone === 'Europe/Amsterdam' && answer.age_seconds >= 0);
  }
  const lines = readFileSync(log, 'utf8').trim().split('\n');
  const last = JSON.parse(lines.at(-1) as string) as { tool: string; argument: string; rows: number };
  t.is(last.tool, 'query');
  t.true(last.argument.includes('customer_id') && last.rows > 0);
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
