import pg from 'pg';
import { readProject } from '../../../base/paths.js';
import { isNamed, toSnakeCase } from '../../../base/words.js';
import { fewMax, getDeletedWords, isState, listKeptRules, mayHideRows } from '../columns/deletions.js';
import { chooseUntaken, listItems } from '../names.js';
import { AdoptRefused, type Column, type Table, type Tenant } from '../schema.js';
import { alias, drawSample, quoteLiteral } from '../sql.js';

/** Throws AdoptRefused when the schema has no tables. */
export async function readCatalog(client: pg.Client, schema: string): Promise<Table[]> {
  const { rows: tables } = await client.query<Table>(
    readProject('sql/adopt/tables.sql').replace('{fills}', () => readProject('sql/catalog/fills.sql')),
    [schema],
  );
  if (tables.length === 0) {
    const { rows } = await client.query<{ name: string }>(
      `select distinct schemaname as name from pg_tables where schemaname not in ('pg_catalog', 'information_schema', 'gateway') order by 1`,
    );
    throw new AdoptRefused(
      `There is no table in a schema "${schema}". Schemas with tables: ${listItems(rows.map(({ name }) => name)) || 'none'}.`,
    );
  }
  refuseUnprintable(schema, tables);
  return tables.map((table) => ({ ...table, columns: addViewNames(table) }));
}

/** Names schemas that have most of these tables too, such as another tenant's. */
export async function describeTwins(client: pg.Client, schema: string, tables: readonly Table[]): Promise<string> {
  const { rows } = await client.query<{ name: string }>(
    `select schemaname as name from pg_tables where schemaname <> $1 and tablename = any ($2) group by 1 having count(*) * 5 > $3 * 4 order by 1`,
    [schema, tables.map(({ name }) => name), Math.max(tables.length, 3)],
  );
  if (rows.length === 0) return '';
  const names = listItems(rows.map(({ name }) => name));
  return ` The same tables are in ${names}: an app with a schema for each company does not fit, for one draft shows one schema.`;
}

/** With these characters a name could add to a draft what its reader does not see. */
const unprintable = /[\p{Cc}\p{Zl}\p{Zp}\p{Bidi_Control}]/u;

function refuseUnprintable(schema: string, tables: readonly Table[]): void {
  const ofColumns = tables.flatMap(({ columns }) =>
    columns.flatMap(({ name, type, sequence }) => [name, type, sequence ?? '']),
  );
  const refused = [schema, ...tables.map(({ name }) => name), ...ofColumns].filter((name) => unprintable.test(name));
  if (refused.length === 0) return;
  const names = [...new Set(refused.map((name) => JSON.stringify(name)))];
  throw new AdoptRefused(
    `Nothing is drafted from names with control characters, line ends or marks of direction: ${listItems(names)}. Rename them.`,
  );
}

const gatewayColumns = ['id', 'workspace_id', 'row_xid', 'sync_version', 'sync_source'];

/** Names that need no change are given first; the others, put in small letters, get a number where that name is taken. */
function addViewNames({ name: table, columns }: Table): Column[] {
  const fits = (name: string): boolean => /^[a-z_][a-z0-9_]{0,62}$/.test(name);
  const taken = new Set<string>();
  const names = new Map<string, string>();
  for (const { name } of columns.toSorted((a, b) => Number(fits(b.name)) - Number(fits(a.name)))) {
    const snake = fits(name) ? name : toSnakeCase(name);
    names.set(name, chooseUntaken(gatewayColumns.includes(snake) ? `own_${snake}` : snake, taken));
  }
  return columns.map((column) => {
    const inView = names.get(column.name) as string;
    return { ...column, table, inView, labels: listLabels(column), values: [], counts: [] };
  });
}

/** Reads the labels of a type, or of a CHECK that compares the column with texts alone. */
function listLabels({ type, labels, isArray }: Column): readonly string[] {
  if (type === 'enum' || isArray) return labels;
  const checks = labels.map((definition) => [definition.replace(/'(?:[^']|'')*'/g, ''), definition] as const);
  const [, check = ''] = checks.find(([bare]) => !/[<>~!]|[a-z_]\(|\b(NOT|AND|LIKE)\b/i.test(bare)) ?? [];
  return [...check.matchAll(/'((?:[^']|'')*)'/g)].map(([, label = '']) => label.replaceAll("''", "'"));
}

const rowsMax = 200; // each row brings a value of every column
const charactersMax = 20_000; // the beginning of a longer value shows its form

/** Adds sampled values to each column: from rows all over a small table, and from some pages of a large one. */
export async function sampleValues(client: pg.Client, table: Table): Promise<void> {
  const { columns, primaryKey } = table;
  const order = primaryKey.map((name) => `${pg.escapeIdentifier(name)}::text`).join(` || ' ' || `);
  const query = {
    text: `select ${columns.map(cutValue).join(', ')} from ${drawSample(table)}
      ${order === '' ? '' : `order by md5(${order})`} limit ${rowsMax}`,
    rowMode: 'array' as const,
  };
  const { rows } = await client.query<(string | null)[]>(query).catch(refuseHiddenRows(table));
  for (const [i, { values }] of columns.entries()) values.push(...rows.flatMap((row) => row[i] ?? []));
}

const refuseHiddenRows = (table: Table) => (error: Error) => {
  if (!table.hasRowSecurity) throw error;
  throw new AdoptRefused(
    `The rows of ${table.quoted} cannot be read, because a policy of its row-level security fails: ${error.message}. Give ADMIN_URL a role that no policy binds: a superuser, or alter role NAME bypassrls.`,
  );
};

/** Finds the tables in which the workspace of a sampled row is NULL. */
export async function readSharedTables(
  client: pg.Client,
  tables: readonly Table[],
  { columnIn }: Tenant,
): Promise<Set<Table>> {
  const shared = new Set<Table>();
  for (const table of tables) {
    const column = columnIn(table);
    if (column === undefined || column.notNull) continue;
    const text = `select from ${drawSample(table)} where ${column.quoted} is null limit 1`;
    if ((await client.query(text).catch(refuseHiddenRows(table))).rows.length > 0) shared.add(table);
  }
  return shared;
}

const countedMax = fewMax + 1; // one more tells that the values are not few

/** Adds to each column that may hide rows how many rows have each value; rows that another column hides are not counted. */
export async function countValues(client: pg.Client, table: Table): Promise<void> {
  const asked = table.columns.filter(mayHideRows);
  if (asked.length === 0) return;
  const deletions = listKeptRules(table).filter(({ column }) => isNamed('deleted', column.name));
  const values = asked.map(({ quoted }, i) => `(${i}, left(${alias}.${quoted}::text, 40))`).join(', ');
  const kept = deletions.map(({ column, kept }) => kept(`${alias}.${column.quoted}`));
  const isInUse = (state: Column): string =>
    `(${alias}.${state.quoted}::text ~* ${quoteLiteral(getDeletedWords(state).source)}) is not true`;
  const states = asked.filter(isState).map(isInUse);
  const { rows } = await client.query<{ i: number; value: string | null; rows: number }>(
    `select i, case when value is null or place <= ${countedMax} then value else '…' end as value, sum(rows)::int as rows from (
      select v.i, v.value, count(*) filter (where ${['true', ...states].join(' and ')})::int as rows, row_number() over (partition by v.i order by count(*) desc, v.value) as place
      from (select * from ${drawSample(table)}) ${alias}
        cross join lateral (values ${values}) v (i, value)
        where ${['true', ...kept].join(' and ')} group by 1, 2) c group by 1, 2 order by i, min(place)`,
  );
  for (const { i, value, rows: count } of rows) asked[i]?.counts.push({ value, rows: count });
}

/** PostgreSQL cuts the value, because it cannot print one of 600 MB. */
function cutValue({ type, quoted }: Column): string {
  if (type === 'bytea') return `substr(${quoted}, 1, ${charactersMax / 2 - 1})::text`;
  return `left(${/^jsonb?\[\]$/.test(type) ? `to_json(${quoted})` : quoted}::text, ${charactersMax})`;
}
