import type { Knex } from 'knex';
import type { Direction } from './resource.js';

/**
 * So many rows that a filter finds are sorted; of more the list is walked in its order. Counting to it costs 0.2 ms; with one row more,
 * a page of 100 in a workspace of 5,000,000 rows walks a tenth of their index entries, by calculation 12 ms.
 */
const fewMax = 1000;

/** The clauses at the end of a statement, for which knex takes only numbers. */
export type Tail = readonly ('limit' | 'skip')[];

/** A read of a list by a filter with an index of its own. */
interface Read {
  readonly columns: readonly string[];
  readonly key: readonly string[];
  readonly reading: Direction;
  readonly tail: Tail;
  /** All rows of the workspace in the order of the filter's index, of which `place` are the columns. */
  readonly all: () => Knex.QueryBuilder;
  readonly place: readonly string[];
  /** Leaves of the rows those of the filter. */
  readonly found: (from: Knex.QueryBuilder) => Knex.QueryBuilder;
  /** The rows of the filter in any order. */
  readonly many: Knex.QueryBuilder;
  /** The columns of the other filters. */
  readonly others: readonly string[];
  /** The rows of all filters within the bounds, in order. */
  readonly walked: Knex.QueryBuilder;
  /** Leaves of the rows of the filter those of the other filters within the bounds, in order. */
  readonly narrowed: (few: Knex.QueryBuilder) => Knex.QueryBuilder;
}

/**
 * Selects the columns in one of two ways: where the filter finds many rows, by the index of the list's order, which has the filter's column
 * behind it; where it finds few, by the index that begins with the column. `many` is a row if there are more than `fewMax`, and PostgreSQL
 * begins only the way whose condition on it holds. Of few rows the keys are sorted and
 * cut first, so that the parts of a record are made for those of the page. "order by" the column keeps PostgreSQL from the other
 * index; without an index of its own it leaves a sort, which `check` reports.
 */
export function fewOrMany(builder: Knex, read: Read): Knex.Raw {
  const { columns, key, reading, tail, all, place, found, others, walked, narrowed } = read;
  const many = builder.raw(`(? offset ${fewMax} limit 1)`, [read.many.select(builder.raw('1 as n'))]);
  const walk = walked.where(builder.raw('(select n from many) is not null')).select(columns);
  const few = found(all())
    .where(builder.raw('(select n from many) is null'))
    .select([...new Set([...place, ...others])])
    .orderBy([...place]);
  const keysOfFew = (selected: readonly string[]): Knex.Raw =>
    cut(builder, narrowed(builder.from(builder.raw(`(? limit ${fewMax}) as few`, [few]))).select(selected), tail);
  const isKey = columns.every((each) => key.includes(each));
  const ofFew = isKey ? keysOfFew(columns) : recordsAt(builder, keysOfFew(place), place, all().select(columns));
  const ways = [cut(builder, walk, tail), ofFew];
  const order = key.map(() => `?? ${reading}`).join(', ');
  return builder.raw(`with many as materialized ? ? union all ? order by ${order}`, [many, ...ways, ...key]);
}

/**
 * The rows of `all` at these places of the index that begins with the filter's column: each is the first from its place on. A condition on the
 * id alone leaves PostgreSQL the choice of an index: with statistics of one row per workspace it read the whole workspace for each row.
 */
function recordsAt(
  builder: Knex,
  places: Knex.Raw,
  place: readonly string[],
  all: Knex.QueryBuilder,
): Knex.QueryBuilder {
  const row = (columns: readonly string[]): Knex.Raw =>
    builder.raw(`(${columns.map(() => '??').join(', ')})`, [...columns]);
  const from = all
    .where(builder.raw('? >= ?', [row(place), row(place.map((each) => `places.${each}`))]))
    .orderBy([...place]);
  return builder
    .select('record.*')
    .from(builder.raw('? as places', [places]))
    .crossJoin(builder.raw('lateral (? limit 1) as record', [from]));
}

/** The query with these clauses. */
function cut(builder: Knex, query: Knex.QueryBuilder, tail: Tail): Knex.Raw {
  const clauses = tail.map((word) => ` ${word === 'skip' ? 'offset' : word} ?`);
  return builder.raw(`(?${clauses.join('')})`, [query, ...tail]);
}
