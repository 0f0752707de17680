import type pg from 'pg';
import { toSnakeCase } from '../../../base/words.js';
import { toSingular } from '../names.js';
import type { Column, ForeignKey, Point, Table, Tenant } from '../schema.js';
import { askAbout, findColumn, listKeysTo, provesAll } from '../schema.js';
import { drawSample } from '../sql.js';
import { findMostFrequent, isSameKind } from './tenant.js';

// References without foreign keys. Example: `orders.customer_id` beside a table `customers` is taken for a reference to its primary key, if
// at most a tenth of the sampled values has no customer. `orders.subject_id` beside `subject_type` names rows of several tables: it is an
// open reference, of which a draft only speaks.

const rowsMax = 200; // values to look for: a column that refers to something else misses most of them

/** Adds to each table the guessed keys, and the column by which other tables name its rows, if that is not the primary key. */
export async function addGuessedKeys(client: pg.Client, tables: readonly Table[]): Promise<Table[]> {
  const guesses: Guess[] = [];
  for (const table of tables) guesses.push(...(await tryGuesses(client, table, listGuesses(table, tables))));
  const kept = chooseGuesses(guesses);
  const keysOf = ({ columns }: Table): ForeignKey[] =>
    kept.flatMap(({ from, key }) => (columns.includes(from) ? [key] : []));
  const guessed = tables.map((table) => ({ ...table, foreignKeys: [...table.foreignKeys, ...keysOf(table)] }));
  return addNamingColumns(guessed);
}

/** Drops the guesses that the sample refutes. */
async function tryGuesses(client: pg.Client, table: Table, guesses: readonly Guess[]): Promise<Guess[]> {
  const misses = await countMisses(client, table, guesses);
  return guesses.flatMap((guess, i) => (misses[i] ? [] : [{ ...guess, isShown: misses[i] === false }]));
}

/** Keeps one guess for each column. If a table has no values, other tables tell which column such a reference leads to. */
function chooseGuesses(guesses: readonly Guess[]): Guess[] {
  const isLikely = ({ target, to, isShown }: Guess): boolean =>
    isShown === true || guesses.some((other) => other.isShown && other.target === target && other.to === to);
  const sorted = guesses.toSorted((a, b) => Number(isLikely(b)) - Number(isLikely(a)));
  return sorted.filter(({ from }, i) => sorted.findIndex((each) => each.from === from) === i);
}

/** Adds the column by which other tables name the rows; of a table that none names, the column that is usual in the schema. */
function addNamingColumns(tables: readonly Table[]): Table[] {
  const namesOf = (table: Table): string[] =>
    listKeysTo(table, tables).flatMap(({ key }) => (key.columns.length === 1 ? key.references : []));
  const onlyName = (table: Table): string | undefined => {
    const [only, ...others] = new Set(namesOf(table));
    return others.length === 0 && only !== table.primaryKey[0] ? only : undefined;
  };
  const usual = findMostFrequent(tables.flatMap((table) => onlyName(table) ?? []));
  return tables.map((table): Table => {
    const { columns, primaryKey } = table;
    if (namesOf(table).includes(primaryKey[0] ?? '')) return { ...table, namingColumn: undefined };
    const hasUsual = primaryKey.join() !== usual && columns.some(({ name }) => name === usual);
    return { ...table, namingColumn: onlyName(table) ?? (hasUsual ? usual : undefined) };
  });
}

interface Guess {
  readonly key: ForeignKey;
  readonly from: Column;
  readonly target: Table;
  readonly to: Column;
  /** At least nine tenths of the sampled values have a row there; false: the column has no value. */
  readonly isShown?: boolean;
}

/**
 * Guesses by names: "customer_id", "customerId" and "customer_record_id" refer to the only table "customer" or "customers". They lead to
 * its primary key, or to another unique column of the same type.
 */
function listGuesses(table: Table, tables: readonly Table[]): Guess[] {
  const columns = new Set(table.columns.map((column) => toSnakeCase(column.name)));
  return table.columns.flatMap((from): Guess[] => {
    const [, whole, name] = /^((.+?)(?:_record)?)_(?:id|uuid)$/.exec(toSnakeCase(from.name)) ?? [];
    const isKey = from.refers || table.primaryKey.join() === from.name;
    if (name === undefined || columns.has(`${whole}_type`) || isKey || from.isArray) return [];
    const isNamedSo = (other: Table): boolean => [name, toSingular(name)].includes(toSingular(toSnakeCase(other.name)));
    const [target, ...others] = tables.filter(isNamedSo);
    if (!target || others.length > 0 || target.primaryKey.length !== 1) return [];
    const keys = target.indexes.flatMap((index) =>
      provesAll(index) && index.columns.length === 1 ? index.columns : [],
    );
    return [...new Set([target.primaryKey[0], ...keys])].flatMap((name) => {
      const to = findColumn(target, name ?? undefined);
      if (!to?.notNull || !isSameKind(from, to)) return [];
      const names = { table: target.name, columns: [from.name], references: [to.name] };
      return [{ key: { ...names, cascades: false, survives: false, isGuess: true as const }, from, target, to }];
    });
  });
}

/** Tells of each guess whether more than a tenth of the sampled values has no row there; null if there is no value. */
async function countMisses(client: pg.Client, table: Table, guesses: readonly Guess[]): Promise<(boolean | null)[]> {
  if (guesses.length === 0) return [];
  const fractions = guesses.map(
    ({ from, to, target }) =>
      `count(*) filter (where not exists (select from ${target.quoted} o where o.${to.quoted} = s.${from.quoted})) * 10 > nullif(count(*), 0) as of`,
  );
  const { rows } = await client.query<(boolean | null)[]>({
    text: `with s as (select * from ${drawSample(table, rowsMax * 10)} limit ${rowsMax})
      select ${fractions.map((fraction, i) => `(select ${fraction} from s where s.${guesses[i]?.from.quoted} is not null)`).join(', ')}`,
    rowMode: 'array',
  });
  return rows[0] ?? [];
}

/** A column X_type holds the kind of the record that X_id names in one of several tables. */
export interface OpenReference {
  readonly table: Table;
  readonly type: Column;
  readonly id: Column;
  /** A sample holds the kinds of these tables. */
  readonly to: readonly Table[];
}

export async function findOpenReferences(client: pg.Client, tables: readonly Table[]): Promise<OpenReference[]> {
  const openOnes: OpenReference[] = [];
  for (const table of tables)
    for (const type of table.columns.filter(({ type }) => /^(text|character varying|enum)$/.test(type))) {
      const [, name] = /^(.+)_type$/.exec(toSnakeCase(type.name)) ?? [];
      const id = table.columns.find((column) => name !== undefined && toSnakeCase(column.name) === `${name}_id`);
      if (id === undefined || id.refers) continue;
      const { rows } = await client.query<{ kind: string }>(
        `select distinct ${type.quoted}::text as kind from ${drawSample(table, rowsMax * 10)} where ${type.quoted} is not null limit ${rowsMax}`,
      );
      const kinds = rows.map(({ kind }) => toSingular(toSnakeCase(kind.replace(/^.*[\\.:/]/, ''))));
      const to = tables.filter((each) => each !== table && kinds.includes(toSingular(toSnakeCase(each.name))));
      openOnes.push({ table, type, id, to });
    }
  return openOnes;
}

/** Does not speak of the column of the workspace, which has a point of its own. */
export function describeGuesses(table: Table, { columnIn }: Tenant): Point | false {
  const guessed = table.foreignKeys.flatMap(({ isGuess, columns: [column], table: to }) =>
    isGuess && column !== columnIn(table)?.name ? `${column} to ${to}` : [],
  );
  const text =
    'No foreign key proves these references, which their names alone tell: remove "references" and the filter where a name means something else.';
  return askAbout(text, table, guessed);
}
