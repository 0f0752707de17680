import { LRUCache } from 'lru-cache';
import type { Statement } from '../../postgres/statement.js';
import { fieldType } from '../definition/field-types.js';
import { type Filter, filterCondition, hasValue } from '../definition/filter-kinds.js';
import { columnsOf, type Direction, leaves, type OrderColumn, type Resource } from '../definition/resource.js';
import { orderBy, quoted, quotedList, type Sql, statement, typed, where } from './sql.js';
import { orderFrom, viewInOrder } from './walls.js';

/** Where a chunk begins and ends: nothing, behind a key, up to a key, or both. */
export type Bounds = 'all' | 'after' | 'until' | 'between';

/** The statements of one combination of filters and direction. */
export interface ListStatements {
  /** Rows in order, `limit` of them. Parameters: workspace, filters, after0/after1, until0/until1, limit. */
  readonly rows: Readonly<Record<Bounds, Statement>>;
  /** Keys only, skipping `skip`, by an index-only scan. `before` reads backwards, from the row before the key until0/until1. */
  readonly keys: Readonly<Record<'all' | 'after' | 'before', Statement>>;
  /** The last key of all. */
  readonly last: Statement;
  /** The exact number of rows. */
  readonly count: Statement;
}

/** The statements of a resource. Those of a combination of filters and members are built when a client first uses it, and kept. */
export interface ResourceStatements {
  /** The statements for the filters of these names, in any order; ascending and of whole rows unless told otherwise. */
  readonly list: (filters: readonly string[], direction?: Direction, cut?: Cut | null) => ListStatements;
  readonly detail: Statement | null;
}

/** The part of the rows that is read where a client asked for some members of the records. */
export interface Cut {
  /** The names of the members. */
  readonly fields: readonly string[];
  readonly columns: readonly string[];
}

/** How many combinations of filters, order and members are kept; the least recently used one makes room. */
const combinationsKept = 256;

/** Builds the statements of the resource, each over the view that has its order. */
export function compileStatements(resource: Resource): ResourceStatements {
  const lists = new LRUCache<string, ListStatements>({ max: combinationsKept });
  const list: ResourceStatements['list'] = (filters, direction = 'asc', cut = null) => {
    const names = [...filters].sort();
    const key = JSON.stringify([direction, names, cut?.fields]);
    let made = lists.get(key);
    if (made === undefined) {
      made = compileList(resource, names, direction, cut);
      if (cut !== null) made = { ...list(names, direction), rows: made.rows };
      lists.set(key, made);
    }
    return made;
  };
  return { list, detail: resource.detail ? statement(`${resource.name}.detail`, byId(resource, '{id}')) : null };
}

export const limit = ` limit {limit}`;
export const limitBehindSkipped = `${limit} offset {skip}`;

/** The operators with which a list goes on behind a key, and those with which it ends at one. */
const operators = { asc: ['>', '<='], desc: ['<', '>='] } as const;
/** The side of a range at which a statement that reads in a direction ends. */
const farEnd = { asc: 'upper', desc: 'lower' } as const;

/**
 * Up to this many matches are sorted; beyond it the list is scanned in order. Counting to it costs 0.2 ms; with one row more,
 * a page of 100 in a workspace of 5,000,000 rows walks a tenth of their index entries, by calculation 12 ms.
 */
const fewMax = 1000;

/** The statements of a combination of filters, of all columns or of a cut. */
function compileList(
  resource: Resource,
  filters: readonly string[],
  direction: Direction,
  cut: Cut | null,
): ListStatements {
  const opposite = direction === 'asc' ? 'desc' : 'asc';
  const key = keyOf(resource);
  const record = cut?.columns ?? columnsOf(resource);
  const columnOf = (name: string): string => (resource.filters[name] as Filter).column;
  const conditions = (names: readonly string[], end: 'upper' | 'lower' | null): Sql[] =>
    names.map((name) => filterCondition(name, resource, end));
  const isListed = filters.includes('ids');
  const unlisted = filters.filter((name) => name !== 'ids');
  const rare = isListed ? undefined : unlisted.find((name) => resource.filters[name]?.nearlyUnique);
  const compared = rare === undefined ? [] : unlisted.filter((name) => name !== rare && !key.includes(columnOf(name)));
  const indexed = unlisted.filter((name) => !compared.includes(name));
  const isFew = isListed || rare !== undefined;
  const own = isFew ? undefined : unlisted.find((name) => resource.filters[name]?.ownIndex);
  // The order names the index of a nearly unique value.
  const order = rare === undefined ? key : orderFrom(columnOf(rare), resource);

  /** The rows of the filters in the view, for a statement that reads in the direction. */
  const filtered = (columns: string, view: string, reading: Direction, more: readonly Sql[]): Sql => {
    const from = isListed ? fewRows(resource, record) : quoted(view);
    const beside = conditions(compared, null).map(withoutIndex);
    return `select ${columns} from ${from}${where([...conditions(indexed, farEnd[reading]), ...beside, ...more])}`;
  };
  /** The columns of the rows within bounds, in the order in which the statement reads; `tail` ends it. */
  const read = (columns: readonly string[], bounds: readonly Sql[], reading: Direction, tail: Sql): Sql => {
    const inOrder = viewInOrder(resource, order, reading);
    const walked = (...more: readonly Sql[]): Sql =>
      filtered(quotedList(columns), inOrder, reading, [...bounds, ...more]);
    // The view has the order. PostgreSQL hands the limit on to the view only without an ORDER BY here: else it would plan for all of the
    // view's rows, and make the parts of a record before a sort.
    if (own === undefined) return `${walked()}${isListed ? orderBy(order, reading) : ''}${tail}`;
    const many = walked(`(select n from many) is not null`);
    return fewOrMany(own, columns, bounds, `${orderBy(key, reading)}${tail}`, `${many}${tail}`, orderBy(key, reading));
  };
  /**
   * Reads in one of two ways, of which PostgreSQL begins one alone: many rows of the filter `own` by the index of the list's order, few by the
   * index of the filter ("order by" its column chooses it). Of few rows the keys are sorted and cut first, then each row is found by its whole
   * place in the index: by the id alone PostgreSQL may read the whole workspace for each.
   */
  const fewOrMany = (
    own: string,
    columns: readonly string[],
    bounds: readonly Sql[],
    cutAt: Sql,
    walked: Sql,
    sorted: Sql,
  ): Sql => {
    const others = unlisted.filter((name) => name !== own);
    const found = conditions([own], null);
    const place = orderFrom(columnOf(own), resource);
    const view = quoted(viewInOrder(resource, place, 'asc'));
    const many = `select 1 as n from ${quoted(resource.view)}${where(found)} offset ${fewMax} limit 1`;
    const few = `select ${quotedList([...new Set([...place, ...others.map(columnOf)])])} from ${view}
    ${where([...found, `(select n from many) is null`])}${orderBy(place)} limit ${fewMax}`;
    const keysOfFew = (selected: readonly string[]): Sql =>
      `select ${quotedList(selected)} from (${few}) as few${where([...conditions(others, null), ...bounds])}${cutAt}`;
    const ofFew = columns.every((each) => key.includes(each))
      ? keysOfFew(columns)
      : `select record.* from (${keysOfFew(place)}) as places cross join lateral (
        select ${quotedList(columns)} from ${view}
        where (${quotedList(place)}) >= (${quotedList(place.map((each) => `places.${each}`))})${orderBy(place)} limit 1) as record`;
    return `with many as materialized (${many})
    (${walked}) union all (${ofFew})${sorted}`;
  };
  const count = (): Sql => {
    // By its own index alone all rows are counted faster than in their order; with other filters each of them would be read. A nearly
    // unique value needs the order.
    const isAlone = own === undefined || unlisted.length === 1;
    if (isAlone && rare === undefined) return filtered('count(*)', resource.view, direction, []);
    return `select count(*) from (${read(key, [], direction, '')}) as found`;
  };

  const label = resource.versionSeed === undefined ? resource.name : `${resource.name}.versioned`;
  const named = (part: string, made: Sql): Statement => statement(`${label}.${part}`, made);
  const within = (bounds: Bounds): Sql[] => bounded(resource.order, bounds, operators[direction], comparison);
  const keys = (part: string, bounds: readonly Sql[], reading: Direction): Statement =>
    named(`keys-${part}`, read(key, bounds, reading, limitBehindSkipped));
  return {
    rows: byBounds((bounds) => named(`rows-${bounds}`, read(record, within(bounds), direction, limit))),
    keys: {
      all: keys('all', [], direction),
      after: keys('after', within('after'), direction),
      before: keys('before', [beyond(resource.order, operators[opposite][0], 'until')], opposite),
    },
    last: named('last', read(key, [], opposite, limit)),
    count: named('count', count()),
  };
}

function keyOf({ order }: Pick<Resource, 'order'>): string[] {
  return order.map(({ column }) => column);
}

/**
 * The condition in a form that no index answers: beside a value that few rows have, PostgreSQL expects one row of every other index, too, and
 * may read thousands of that one. A column of the list's order is left out, as the index of every filter ends with it.
 */
const withoutIndex = (condition: Sql): Sql => `coalesce(${condition}, false)`;

/** A statement for each kind of bounds. */
export function byBounds(make: (bounds: Bounds) => Statement): Readonly<Record<Bounds, Statement>> {
  return { all: make('all'), after: make('after'), until: make('until'), between: make('between') };
}

type Ends = (typeof operators)[Direction];
type Operator = Ends[number];
type Order = readonly OrderColumn[];

/** The conditions of the bounds of a chunk: it begins with the one operator behind a key, and ends with the other at one. */
export function bounded(order: Order, bounds: Bounds, [onward, back]: Ends = operators.asc, atEnd = beyond): Sql[] {
  return [
    ...(bounds === 'after' || bounds === 'between' ? [beyond(order, onward, 'after')] : []),
    ...(bounds === 'until' || bounds === 'between' ? [atEnd(order, back, 'until')] : []),
  ];
}

/**
 * Compares the key of a row with the parameters after0, after1, … or until0, until1, …. The first column by itself is compared only where a
 * statement begins to read: between two bounds of a column a generic plan expects no row of an average workspace, so all indexes look alike.
 */
function comparison(order: Order, operator: Operator, end: 'after' | 'until'): Sql {
  const values = order.map(({ type }, i) => typed(type, `{${end}${i}}`));
  return `(${quotedList(keyOf({ order }))}) ${operator} (${values.join(', ')})`;
}

/** The same for the end where reading begins. The first column by itself repeats it, because PostgreSQL prunes partitions by that alone. */
function beyond(order: Order, operator: Operator, end: 'after' | 'until'): Sql {
  const { column, type } = order[0] as OrderColumn;
  const first = `${quoted(column)} ${operator.charAt(0)}= ${typed(type, `{${end}0}`)}`;
  return `${first} and ${comparison(order, operator, end)}`;
}

/** The row of an id. By name: the view has the version of a sync pass as well, which costs a look-up of the parts. */
function byId(resource: Resource, id: Sql, columns = columnsOf(resource)): Sql {
  const view = quoted(viewInOrder(resource, ['id'], 'asc'));
  return `select ${quotedList(columns)} from ${view} where ${hasValue('id', id, resource.idType)}${orderBy(['id'])}`;
}

/**
 * The rows that a list of ids names, at most 100, each looked up by itself: with `id = any(…)` a generic plan read the whole workspace, and so
 * did a look-up that is not materialized. OFFSET 0 keeps the query apart. For the CASE see `hasValue`. All plain columns are read, because
 * filters compare them, and an index that has all columns of a look-up seems the cheapest in any order.
 */
function fewRows(resource: Resource, record: readonly string[]): Sql {
  const plain = leaves(resource).filter(({ field: { codec, type } }) => codec === undefined && type !== 'json');
  const columns = [...new Set([...record, ...plain.map(({ field }) => field.column)])];
  const { idType, view } = resource;
  const ofView = `case when true then {ids} else array[(select id from ${quoted(view)} limit 0)] end`;
  const ids = idType === 'text' ? ofView : `{ids}::${fieldType(idType).columnTypes[0] as string}[]`;
  return `(select found.* from (select distinct unnest(${ids}) as id) as named cross join lateral (
    with one as materialized (${byId(resource, 'named.id', columns)}) select * from one) as found offset 0) as few`;
}
