import type pg from 'pg';
import { toSnakeCase } from '../../../base/words.js';
import { toSingular } from '../names.js';
import type { Column, ForeignKey, Point, Table, Tenant } from '../schema.js';
import { askOnceAbout, findColumn, listKeysTo, provesAll } from '../schema.js';
import { drawSample } from '../sql.js';
import { findMostFrequent, isSameKind } from './tenant.js';

// References without foreign keys: a column X_id beside a table X, unless a sample has values without a row there.

const rowsMax = 200; // values to look for: a column that refers to something else misses most of them

export async function addGuessedKeys(client: pg.Client, tables: readonly Table[]): Promise<Table[]> {
  const guesses: Guess[] = [];
  for (const table of tables) {
    const all = listGuesses(table, tables);
    const misses = await countMisses(client, table, all);
    guesses.push(...all.flatMap((guess, i) => (misses[i] ? [] : [{ ...guess, isShown: misses[i] === false }])));
  }
  // Where a table has no values, other tables tell which column such a reference leads to.
  const isLikely = ({ target, to, isShown }: Guess): boolean =>
    isShown === true || guesses.some((other) => other.isShown && other.target === target && other.to === to);
  const sorted = guesses.sort((a, b) => Number(isLikely(b)) - Number(isLikely(a)));
  const kept = sorted.filter(({ from }, i) => sorted.findIndex((each) => each.from === from) === i);
  const guessed = tables.map((table) => ({
    ...table,
    foreignKeys: [
      ...table.foreignKeys,
      ...kept.flatMap(({ from, key }) => (table.columns.includes(from) ? [key] : [])),
    ],
  }));
  const named = new Map(guessed.map(({ name }) => [name, findNamedColumn(name, guessed)]));
  const usual = findMostFrequent([...named.values()].flatMap((name) => name ?? []));
  const usualIn = ({ name, columns, primaryKey }: Table): string | undefined =>
    named.get(name) ??
    (primaryKey.join() !== usual && columns.some((column) => column.name === usual) ? usual : undefined);
  return guessed.map((table) => ({ ...table, named: isNamedByKey(table, guessed) ? undefined : usualIn(table) }));
}

function listRowNames(name: string, tables: readonly Table[]): ReadonlySet<string> {
  const keys = listKeysTo({ name }, tables).filter(({ key }) => key.columns.length === 1);
  return new Set(keys.map(({ key }) => key.references[0] as string));
}

function isNamedByKey({ name, primaryKey }: Table, tables: readonly Table[]): boolean {
  return listRowNames(name, tables).has(primaryKey[0] ?? '');
}

/** Finds a column other than the primary key by which other tables name its rows. */
function findNamedColumn(name: string, tables: readonly Table[]): string | undefined {
  const [only, ...others] = listRowNames(name, tables);
  const { primaryKey = [] } = tables.find((table) => table.name === name) ?? {};
  return others.length === 0 && only !== primaryKey[0] ? only : undefined;
}

interface Guess {
  readonly key: ForeignKey;
  readonly from: Column;
  readonly target: Table;
  readonly to: Column;
  /** Nine tenths of a sample have a row there; false: the table holds no value. */
  readonly isShown?: boolean;
}

/**
 * Takes "customer_id", "customerId" and "customer_record_id" beside a single table "customer" or "customers" as references to its primary
 * key, or else to another unique column of that kind. Beside "customer_type" the column refers to rows of several tables, each with a
 * workspace of its own.
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
    const unique = target.indexes.flatMap((index) =>
      provesAll(index) && index.columns.length === 1 ? index.columns : [],
    );
    return [...new Set([target.primaryKey[0], ...unique])].flatMap((name) => {
      const to = findColumn(target, name ?? undefined);
      if (!to?.notNull || !isSameKind(from, to)) return [];
      const names = { table: target.name, columns: [from.name], references: [to.name] };
      return [{ key: { ...names, cascades: false, survives: false, isGuess: true as const }, from, target, to }];
    });
  });
}

/** Reports guesses for which more than a tenth of a sample has no row: without a foreign key some rows can be lost. */
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

/** Leaves out the columns of the workspace, which have their own point. */
export function describeGuesses(table: Table, { columnIn }: Tenant): Point | false {
  const guessed = table.foreignKeys.flatMap(({ isGuess, columns: [column], table: to }) =>
    isGuess && column !== columnIn(table)?.name ? `${column} to ${to}` : [],
  );
  const text =
    'No foreign key proves these references, which their names alone tell: remove "references" and the filter where a name means something else.';
  return askOnceAbout(text, table, guessed);
}
