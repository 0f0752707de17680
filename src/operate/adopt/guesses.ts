import type pg from 'pg';
import { listed } from '../../base/listed.js';
import { snakeCase } from '../words.js';
import { singular } from './names.js';
import { type Column, columnOf, type ForeignKey, type Table } from './schema.js';
import { isSameKind } from './tenant.js';

// References of a schema without foreign keys: a column X_id beside a table X, unless values of a sample are in no row of that table.

const rowsMax = 200;

/** The tables, with references that the names of their columns tell. */
export async function withGuessedKeys(client: pg.Client, tables: readonly Table[]): Promise<Table[]> {
  const guessed: Table[] = [];
  for (const table of tables) {
    const guesses = guessesOf(table, tables);
    const misses = await missesOf(client, table, guesses);
    const kept = guesses.filter((_, i) => !misses[i]);
    guessed.push(
      kept.length === 0 ? table : { ...table, foreignKeys: [...table.foreignKeys, ...kept.map(({ key }) => key)] },
    );
  }
  return guessed;
}

interface Guess {
  readonly key: ForeignKey;
  readonly from: Column;
  readonly target: Table;
  readonly to: Column;
}

/** "customer_id" and "customerId" beside a single table "customer" or "customers" whose primary key is one column of that kind. */
function guessesOf(table: Table, tables: readonly Table[]): Guess[] {
  return table.columns.flatMap((from): Guess[] => {
    const [, name] = /^(.+)_(?:id|uuid)$/.exec(snakeCase(from.name)) ?? [];
    if (name === undefined || from.refers || from.isArray || table.primaryKey.join() === from.name) return [];
    const [target, ...others] = tables.filter((each) =>
      [name, singular(name)].includes(singular(snakeCase(each.name))),
    );
    const to = target && columnOf(target, target.primaryKey[0]);
    if (!target || !to || others.length > 0 || target.primaryKey.length !== 1 || !isSameKind(from, to)) return [];
    const key = {
      table: target.name,
      columns: [from.name],
      references: [to.name],
      cascades: false,
      isGuess: true as const,
    };
    return [{ key, from, target, to }];
  });
}

/** Of each guess, whether more than a tenth of the values of a sample are in no row of its table: without a foreign key some can be lost. */
async function missesOf(
  client: pg.Client,
  { quoted, rows: estimate }: Table,
  guesses: readonly Guess[],
): Promise<boolean[]> {
  if (guesses.length === 0) return [];
  const percent = Math.min(100, (100 * rowsMax * 10) / Math.max(estimate, 1));
  const shares = guesses.map(
    ({ from, to, target }) =>
      `count(*) filter (where not exists (select from ${target.quoted} o where o.${to.quoted} = s.${from.quoted})) * 10 > count(*) as of`,
  );
  const { rows } = await client.query<boolean[]>({
    text: `with s as (select * from ${quoted} tablesample system (${percent}) repeatable (0) limit ${rowsMax})
      select ${shares.map((share, i) => `(select ${share} from s where s.${guesses[i]?.from.quoted} is not null)`).join(', ')}`,
    rowMode: 'array',
  });
  return rows[0] ?? [];
}

/** The open point of a schema whose references have no foreign keys. */
export function guessesPoint(tables: readonly Table[]): string | false {
  const guessed = tables.flatMap(({ name, foreignKeys }) =>
    foreignKeys.flatMap((key) => (key.isGuess ? [`${name}.${key.columns[0]} (${key.table})`] : [])),
  );
  return (
    guessed.length > 0 &&
    `no foreign key proves ${guessed.length} references, which their names alone tell: ${listed(guessed)}. Remove "references" and the filter where a name means something else.`
  );
}
